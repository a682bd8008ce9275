// Counts of plays and empirical means, without a prior. Twin of banditree/beliefs/counts.py.
#pragma once

#include <cmath>
#include <limits>

#include "stream.hpp"
#include "tree/shape.hpp"

namespace banditree {

struct CountsRows {
    static constexpr bool contextual = false;
    static constexpr double low = -std::numeric_limits<double>::infinity(), high = -low;
    double *count, *total;  // (nodes,) evidence

    std::size_t dim() const { return 0; }
    void reset() {}
    std::size_t stride() const { return 0; }
    void prepare(const double*, double*) const {}
    double plays(std::int32_t node) const { return count[node]; }
    double rewards(std::int32_t node) const { return total[node]; }
    double mean(std::int32_t node, const double*) const { return count[node] > 0.0 ? total[node] / count[node] : 0.0; }
    double spread(std::int32_t node, const double*) const { return 1.0 / std::sqrt(count[node]); }
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
