// Loops over rows of numbers that compilers vectorise: weighted sums, the highest number, and ties for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "numerics/vectors.hpp"
#include "stream.hpp"

namespace banditree {

// out[l] = factor[0] row_0[l] + factor[1] row_1[l] + ..., for n columns; rows are `stride` apart. Terms are added in
// order, so a column gets the bits of a plain loop over its terms. 4 F columns are summed at once, in registers: with
// fewer, an addition waits for the one before, and more do not fit. The remaining columns go in smaller groups.
// `from_zero` replaces sums below 0 by 0.
template <bool from_zero = false, std::size_t F = 5>
BANDITREE_INLINE inline void weighted_sum(const double* factor, const double* row, std::size_t n_rows,
                                          std::size_t stride, double* __restrict out, std::size_t n) {
    for (; n >= 4 * F; n -= 4 * F, row += 4 * F, out += 4 * F) {
        Four sum[F] = {};
        for (std::size_t r = 0; r < n_rows; ++r) {
            const Four* entry = reinterpret_cast<const Four*>(row + r * stride);
            BANDITREE_UNROLL
            for (std::size_t f = 0; f < F; ++f) sum[f] += factor[r] * entry[f];
        }
        BANDITREE_UNROLL
        for (std::size_t f = 0; f < F; ++f) {
            if constexpr (from_zero) raise_to_zero(sum[f]);
            reinterpret_cast<Four*>(out)[f] = sum[f];
        }
    }
    if constexpr (F > 1) return weighted_sum<from_zero, F - 1>(factor, row, n_rows, stride, out, n);
    for (std::size_t l = 0; l < n; ++l) {
        double sum = 0.0;
        for (std::size_t r = 0; r < n_rows; ++r) sum += factor[r] * row[r * stride + l];
        if constexpr (from_zero) raise_to_zero(sum);
        out[l] = sum;
    }
}

// The highest of n numbers; minus infinity if there are none. NaN is ignored. Four at a time, because each
// comparison waits for the one before.
BANDITREE_INLINE inline double highest(const double* x, std::size_t n) {
    constexpr double least = -std::numeric_limits<double>::infinity();
    double top[4] = {least, least, least, least};
    for (; n >= 4; n -= 4, x += 4)
        for (std::size_t l = 0; l < 4; ++l) top[l] = x[l] > top[l] ? x[l] : top[l];
    for (std::size_t l = 0; l < n; ++l) top[l] = x[l] > top[l] ? x[l] : top[l];
    for (std::size_t l = 1; l < 4; ++l) top[0] = top[l] > top[0] ? top[l] : top[0];
    return top[0];
}

// The same for m adjacent columns of k >= 1 numbers, without branches: the highest of each, (m,), the position of the
// last number that is not below it, and how many are not: one if there is no tie, more if NaN is among them. The
// positions need no particular initial value, but are read.
BANDITREE_INLINE inline void highest_of_columns(const double* x, std::size_t k, std::size_t m, double* __restrict top,
                                                std::int32_t* __restrict place, std::int32_t* __restrict n_ties) {
    for (std::size_t j = 0; j < m; ++j) top[j] = x[j], n_ties[j] = 0;
    for (std::size_t i = 1; i < k; ++i) {
        const double* row = x + i * m;
        for (std::size_t j = 0; j < m; ++j) top[j] = row[j] > top[j] ? row[j] : top[j];
    }
    for (std::size_t i = 0; i < k; ++i) {
        const double* row = x + i * m;
        for (std::size_t j = 0; j < m; ++j) {
            const bool below = row[j] < top[j];
            place[j] = below ? place[j] : static_cast<std::int32_t>(i);
            n_ties[j] += !below;
        }
    }
}

// The position of the highest of n numbers, ties at random; -1 if one is NaN. For long arrays the highest is found
// first, without branches, and then the few numbers that are not below it.
inline std::int32_t highest_place(const double* x, std::size_t n, Stream& rng) {
    double top = n < 8 ? x[0] : highest(x, n);
    std::size_t place = 0;
    std::uint64_t n_ties = 0;
    for (std::size_t i = 0; i < n; ++i) {
        if (x[i] < top) continue;
        if (x[i] > top) top = x[i], n_ties = 0;
        if (x[i] != top) return -1;
        if (n_ties++ == 0) place = i;
    }
    for (std::uint64_t skip = n_ties > 1 ? rng.integers(n_ties) : 0; skip > 0; --skip) {
        do ++place;
        while (x[place] != top);
    }
    return static_cast<std::int32_t>(place);
}

}  // namespace banditree
