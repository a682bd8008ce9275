// Gaussian beliefs, for unbounded rewards, whose standard deviation is known or learned. Twin of
// banditree/beliefs/gaussian.py.
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

// The standard deviation, and the mean around which arms lie, are estimated from the rewards of all arms, as
// LearnedGaussianRows in gaussian.py derives.
struct LearnedNoise {
    static constexpr bool learned = true;
    const double *count, *total;                  // (nodes,) evidence
    double *squares, *rows;                       // (nodes,) evidence
    const double *prior_mean, *is_arm, *follows;  // (nodes,)
    double centre, least, equal;
    std::size_t n_nodes;
    struct Sums {  // over arms
        double explained = 0.0, weighted = 0.0, weight = 0.0;
    };
    Sums sums = {};
    double mean = 0.0, sd = 1.0;  // the estimates
    std::size_t changes = 0;      // since they were last summed afresh
    bool summed = false, stale = true;

    double of(std::int32_t) {
        if (stale) estimate();
        return sd;
    }
    // What is added to the prior mean of a node.
    double moved(std::int32_t node) {
        if (stale) estimate();
        return follows[node] * mean;
    }
    void reset() { summed = false, stale = true; }
    // Called before and after the evidence of a node changes.
    void before(std::size_t node) {
        if (is_arm[node] > 0.0 && summed) add(node, -1.0);
    }
    void after(std::size_t node, double sum, double n) {
        squares[node] += (sum - n * centre) * (sum - n * centre) / n;
        rows[node] += 1.0;
        if (is_arm[node] > 0.0 && summed) add(node, 1.0);
        if (++changes % 4096 == 0) summed = false;
        stale = true;
    }

  private:
    // Adds one arm to the sums, or takes it away; d and the sum of its rewards are counted from the centre.
    void add(std::size_t arm, double sign) {
        const double n = count[arm], t = total[arm] - n * centre;
        const double d = follows[arm] > 0.0 ? 0.0 : prior_mean[arm] - centre;
        sums.explained += sign * ((d + t) * (d + t) / (1.0 + n) - d * d);
        sums.weighted += sign * follows[arm] * t / (1.0 + n);
        sums.weight += sign * follows[arm] * n / (1.0 + n);
    }
    void estimate() {
        stale = false;
        if (!summed) {
            sums = {}, summed = true;
            for (std::size_t node = 0; node < n_nodes; ++node)
                if (is_arm[node] > 0.0) add(node, 1.0);
        }
        const double seen = rows[0], n = count[0], all = squares[0];
        mean = 0.0, sd = 1.0;
        if (!(seen > 0.0 && n > 0.0)) return;
        const double t = total[0] - n * centre;
        if (sums.weight > 0.0) mean = sums.weighted / sums.weight;
        double around = all - sums.explained - mean * sums.weighted;
        around += (all - t * t / n) / std::max(seen, 1.0);
        sd = std::max(std::sqrt((around > equal * all ? around : all) / seen), least);
    }
};

template <class Noise>
struct GaussianRowsWith {
    static constexpr bool contextual = false;
    static constexpr double low = -std::numeric_limits<double>::infinity(), high = -low;
    double *count, *total;                    // (nodes,) evidence
    const double *prior_plays, *prior_total;  // (nodes,) prior
    Noise noise;

    std::size_t dim() const { return 0; }
    void reset() { noise.reset(); }
    std::size_t stride() const { return 0; }
    void prepare(const double*, double*) const {}
    double plays(std::int32_t node) const { return count[node]; }
    double rewards(std::int32_t node) const { return total[node]; }
    double mean(std::int32_t node, const double*) {
        double known = prior_total[node];
        if constexpr (Noise::learned) known += noise.moved(node);
        return (known + total[node]) / (prior_plays[node] + count[node]);
    }
    double spread(std::int32_t node, const double*) {
        return noise.of(node) / std::sqrt(prior_plays[node] + count[node]);
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
template <>
inline constexpr bool shares_means<LearnedGaussianRows> = true;

}  // namespace banditree
