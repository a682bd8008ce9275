// Loops over rows of numbers, in shapes that compilers make vectors of: weighted sums, the highest, and ties for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "random.hpp"

namespace banditree {

// out[l] = add(0, l) where that is all there is yet, else add(out[l], l).
template <class Add>
void accumulate(bool first, double* __restrict out, std::size_t n, Add add) {
    if (first)
        for (std::size_t l = 0; l < n; ++l) out[l] = add(0.0, l);
    else
        for (std::size_t l = 0; l < n; ++l) out[l] = add(out[l], l);
}

// out[l] = factor[0] row_0[l] + factor[1] row_1[l] + ..., for n columns; rows lie `stride` apart. Terms are added in order,
// so a column gets the bits of a plain loop over its terms. Five rows go at once: a sum is read and written less often.
inline void weighted_sum(const double* factor, const double* row, std::size_t n_rows, std::size_t stride,
                         double* __restrict out, std::size_t n) {
    bool first = true;
    for (; n_rows >= 5; n_rows -= 5, factor += 5, row += 5 * stride, first = false) {
        const double *r1 = row + stride, *r2 = r1 + stride, *r3 = r2 + stride, *r4 = r3 + stride;
        const double f0 = factor[0], f1 = factor[1], f2 = factor[2], f3 = factor[3], f4 = factor[4];
        accumulate(first, out, n, [=](double sum, std::size_t l) {
            return sum + f0 * row[l] + f1 * r1[l] + f2 * r2[l] + f3 * r3[l] + f4 * r4[l];
        });
    }
    for (; n_rows > 0; --n_rows, ++factor, row += stride, first = false) {
        const double f0 = *factor;
        accumulate(first, out, n, [=](double sum, std::size_t l) { return sum + f0 * row[l]; });
    }
}

// The highest of n numbers; minus infinity where there is none. NaN is passed over. Four at a time, because each
// comparison waits for the one before.
inline double highest(const double* x, std::size_t n) {
    constexpr double least = -std::numeric_limits<double>::infinity();
    double top[4] = {least, least, least, least};
    for (; n >= 4; n -= 4, x += 4)
        for (std::size_t l = 0; l < 4; ++l) top[l] = x[l] > top[l] ? x[l] : top[l];
    for (std::size_t l = 0; l < n; ++l) top[l] = x[l] > top[l] ? x[l] : top[l];
    for (std::size_t l = 1; l < 4; ++l) top[0] = top[l] > top[0] ? top[l] : top[0];
    return top[0];
}

// The place of the highest of n numbers, ties at random; -1 where one is NaN. Where there are many, the highest is found
// first, without branches, and then the few that are not below it.
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
