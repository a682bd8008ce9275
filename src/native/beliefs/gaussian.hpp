// Gaussian beliefs, for unbounded rewards with a known standard deviation. Twin of banditree/beliefs/gaussian.py.
#pragma once

#include <cmath>
#include <limits>

#include "stream.hpp"
#include "tree/shape.hpp"

namespace banditree {

struct GaussianRows {
    static constexpr bool contextual = false;
    static constexpr double low = -std::numeric_limits<double>::infinity(), high = -low;
    double *count, *total;                                // (nodes,) evidence
    const double *sd, *prior_plays, *prior_total;         // (nodes,) prior
    double* scale;                                        // weight of the stored evidence, which falls as it fades

    std::size_t dim() const { return 0; }
    void reset() {}
    std::size_t stride() const { return 0; }
    void prepare(const double*, double*) const {}
    double plays(std::int32_t node) const { return count[node] * *scale; }
    double rewards(std::int32_t node) const { return total[node] * *scale; }
    double mean(std::int32_t node, const double*) const {
        return (prior_total[node] + total[node] * *scale) / (prior_plays[node] + count[node] * *scale);
    }
    double spread(std::int32_t node, const double*) const {
        return sd[node] / std::sqrt(prior_plays[node] + count[node] * *scale);
    }
    void sample(std::int32_t first, std::size_t k, const Decisions& decisions, Stream& rng, double* out) const {
        for (std::size_t i = 0; i < k; ++i) {
            const std::int32_t node = first + static_cast<std::int32_t>(i);
            const double centre = mean(node, nullptr), width = spread(node, nullptr);
            for (std::size_t j = 0; j < decisions.m; ++j) *out++ = centre + width * rng.standard_normal();
        }
    }
    void observe(std::int32_t node, double sum, double n, const double*) {
        count[node] += n;
        total[node] += sum;
    }
    void rescale(std::int32_t node, double by) {
        count[node] *= by;
        total[node] *= by;
    }
};

}  // namespace banditree
