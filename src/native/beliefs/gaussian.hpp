// Gaussian beliefs, for unbounded rewards, whose standard deviation is known or learned. Twin of banditree/beliefs/gaussian.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "stream.hpp"
#include "tree/shape.hpp"

namespace banditree {

// What the standard deviation of rewards is: one number per node.
struct KnownNoise {
    static constexpr bool learned = false;
    const double* sd;  // (nodes,)
    double of(std::int32_t node) const { return sd[node]; }
    void reset() {}
};

// The standard deviation is estimated from the rewards of all arms, as LearnedGaussianRows in gaussian.py derives.
struct LearnedNoise {
    static constexpr bool learned = true;
    const double *count, *total;                      // (nodes,) evidence
    double *squares, *rows;                           // (nodes,) evidence
    const double *prior_mean, *is_arm;                // (nodes,)
    double centre, least;
    const double* scale;
    std::size_t n_nodes;
    double known = 0.0, known_at = 0.0, sd = 1.0;     // what the means of arms explain, the scale it is for, and the result
    std::size_t changes = 0;                          // since it was last summed afresh
    bool stale = true;

    double of(std::int32_t) {
        if (stale) estimate();
        return sd;
    }
    void reset() { known_at = 0.0, stale = true; }
    // Of one arm; d and the sum of its rewards are counted from the centre.
    double known_of(std::size_t arm) const {
        const double n = count[arm] * *scale, d = prior_mean[arm] - centre, t = total[arm] * *scale - n * centre;
        return d * d - (d + t) * (d + t) / (1.0 + n);
    }
    // Called before and after the evidence of a node changes.
    void before(std::size_t node) {
        if (is_arm[node] > 0.0 && known_at == *scale) known -= known_of(node);
    }
    void after(std::size_t node, double sum, double n) {
        squares[node] += (sum - n * centre) * (sum - n * centre) / n;
        rows[node] += 1.0 / *scale;
        if (is_arm[node] > 0.0 && known_at == *scale) known += known_of(node);
        if (++changes % 4096 == 0) known_at = 0.0;
        stale = true;
    }

  private:
    void estimate() {
        stale = false;
        if (known_at != *scale) {
            known = 0.0, known_at = *scale;
            for (std::size_t node = 0; node < n_nodes; ++node)
                if (is_arm[node] > 0.0) known += known_of(node);
        }
        const double n = rows[0] * *scale, variance = n > 0.0 ? (squares[0] * *scale + known) / n : 1.0;
        sd = std::max(std::sqrt(std::max(variance, 0.0)), n > 0.0 ? least : 1.0);
    }
};

template <class Noise>
struct GaussianRowsWith {
    static constexpr bool contextual = false;
    static constexpr double low = -std::numeric_limits<double>::infinity(), high = -low;
    double *count, *total;                     // (nodes,) evidence
    const double *prior_plays, *prior_total;   // (nodes,) prior
    double* scale;                             // weight of the stored evidence, which falls as it fades
    Noise noise;

    std::size_t dim() const { return 0; }
    void reset() { noise.reset(); }
    std::size_t stride() const { return 0; }
    void prepare(const double*, double*) const {}
    double plays(std::int32_t node) const { return count[node] * *scale; }
    double rewards(std::int32_t node) const { return total[node] * *scale; }
    double mean(std::int32_t node, const double*) const {
        return (prior_total[node] + total[node] * *scale) / (prior_plays[node] + count[node] * *scale);
    }
    double spread(std::int32_t node, const double*) {
        return noise.of(node) / std::sqrt(prior_plays[node] + count[node] * *scale);
    }
    void sample(std::int32_t first, std::size_t k, const Decisions& decisions, Stream& rng, double* out) {
        for (std::size_t i = 0; i < k; ++i) {
            const std::int32_t node = first + static_cast<std::int32_t>(i);
            const double centre = mean(node, nullptr), width = spread(node, nullptr);
            for (std::size_t j = 0; j < decisions.m; ++j) *out++ = centre + width * rng.standard_normal();
        }
    }
    void observe(std::int32_t node, double sum, double n, const double*) {
        if constexpr (Noise::learned) noise.before(static_cast<std::size_t>(node));
        count[node] += n;
        total[node] += sum;
        if constexpr (Noise::learned) noise.after(static_cast<std::size_t>(node), sum, n);
    }
    void rescale(std::int32_t node, double by) {
        count[node] *= by;
        total[node] *= by;
        if constexpr (Noise::learned) noise.squares[node] *= by, noise.rows[node] *= by;
    }
};

using GaussianRows = GaussianRowsWith<KnownNoise>;
using LearnedGaussianRows = GaussianRowsWith<LearnedNoise>;
template <>
inline constexpr bool learns_by_row<LearnedGaussianRows> = true;  // a row says something about the noise

}  // namespace banditree
