// Inverses (w^-2 + A)^-1 of small symmetric matrices A >= 0, for a width w of the first coordinate and one of all
// others. Lower triangles are packed row by row; those of eight matrices, with a vector b after each, lie side by side.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "numerics/lanes.hpp"
#include "numerics/vectors.hpp"

namespace banditree {

// The place of an entry of a lower triangle, j <= i.
inline std::size_t packed(std::size_t i, std::size_t j) { return i * (i + 1) / 2 + j; }

BANDITREE_INLINE inline Eight broadcast(double x) {
    Eight all;
    for (std::size_t l = 0; l < Eight::size; ++l) all.set(l, x);
    return all;
}

// w^-2 + A = L L', L^-1, ln|I + w A w|, and b' (w^-2 + A)^-1 b = |L^-1 b|^2. No pivot is below that of w^-2, up to
// rounding.
BANDITREE_INLINE inline void decompose(std::size_t p, const Eight* given, const Eight& l0, const Eight& l1,
                                       Eight* low_part, Eight* inverse, Eight& log_part, Eight& fit) {
    log_part = fit = Eight{};
    for (std::size_t i = 0; i < p; ++i) {
        const Eight li = i ? l1 : l0;
        Eight* const row_i = low_part + packed(i, 0);
        for (std::size_t j = 0; j < i; ++j) {
            Eight total = given[packed(i, j)];
            const Eight* row_j = low_part + packed(j, 0);
            for (std::size_t k = 0; k < j; ++k) total -= row_i[k] * row_j[k];
            row_i[j] = total * inverse[packed(j, j)];
        }
        Eight pivot = given[packed(i, i)] + li;
        for (std::size_t k = 0; k < i; ++k) pivot -= row_i[k] * row_i[k];
        double pivots[Eight::size], least[Eight::size], logs[Eight::size], roots[Eight::size];
        std::memcpy(pivots, &pivot, sizeof pivots), std::memcpy(least, &li, sizeof least);
        for (std::size_t l = 0; l < Eight::size; ++l) {
            pivots[l] = pivots[l] > least[l] ? pivots[l] : least[l];
            logs[l] = ln_lane(pivots[l] / least[l]);
            roots[l] = 1.0 / std::sqrt(pivots[l]);
        }
        Eight log_of, last;
        std::memcpy(&pivot, pivots, sizeof pivots), std::memcpy(&log_of, logs, sizeof logs),
            std::memcpy(&last, roots, sizeof roots);
        log_part += log_of;
        inverse[packed(i, i)] = last;
        row_i[i] = pivot * last;
        for (std::size_t j = 0; j < i; ++j) {
            Eight total = row_i[j] * inverse[packed(j, j)];
            for (std::size_t k = j + 1; k < i; ++k) total += row_i[k] * inverse[packed(k, j)];
            inverse[packed(i, j)] = -1.0 * (total * last);
        }
        Eight total = last * given[p * (p + 1) / 2 + i];
        for (std::size_t j = 0; j < i; ++j) total += inverse[packed(i, j)] * given[p * (p + 1) / 2 + j];
        fit += total * total;
    }
}

// P = (w^-2 + A)^-1 = L^-T L^-1, and what `decompose` finds.
BANDITREE_INLINE inline void invert_eight(std::size_t p, const Eight* given, const Eight& l0, const Eight& l1,
                                          Eight* to, Eight* inverse, Eight& log_part, Eight& fit) {
    decompose(p, given, l0, l1, to, inverse, log_part, fit);
    for (std::size_t i = 0; i < p; ++i)
        for (std::size_t j = 0; j <= i; ++j) {
            Eight total = inverse[packed(i, i)] * inverse[packed(i, j)];
            for (std::size_t k = i + 1; k < p; ++k) total += inverse[packed(k, i)] * inverse[packed(k, j)];
            to[packed(i, j)] = total;
        }
}

// The whole matrix (w^-2 + A)^-1, (p, p), of entries of A that lie `stride` apart.
inline void invert(std::size_t p, const double* evidence, std::size_t stride, double l0, double l1, double* work,
                   double* to) {
    double *low_part = work, *inverse = work + p * (p + 1) / 2;
    for (std::size_t i = 0; i < p; ++i) {
        const double li = i ? l1 : l0;
        for (std::size_t j = 0; j <= i; ++j) {
            double sum_here = evidence[packed(i, j) * stride] + (i == j ? li : 0.0);
            for (std::size_t k = 0; k < j; ++k) sum_here -= low_part[packed(i, k)] * low_part[packed(j, k)];
            if (i == j) {
                low_part[packed(i, i)] = std::sqrt(std::max(sum_here, li));
                inverse[packed(i, i)] = 1.0 / low_part[packed(i, i)];
            } else {
                low_part[packed(i, j)] = sum_here * inverse[packed(j, j)];
            }
        }
        for (std::size_t j = 0; j < i; ++j) {
            double sum_here = 0.0;
            for (std::size_t k = j; k < i; ++k) sum_here -= low_part[packed(i, k)] * inverse[packed(k, j)];
            inverse[packed(i, j)] = sum_here * inverse[packed(i, i)];
        }
    }
    std::fill_n(to, p * p, 0.0);
    for (std::size_t k = 0; k < p; ++k)
        for (std::size_t i = 0; i <= k; ++i) {
            const double factor = inverse[packed(k, i)];
            for (std::size_t j = 0; j <= k; ++j) to[i * p + j] += factor * inverse[packed(k, j)];
        }
}

// out = matrix x, for a symmetric matrix.
inline void multiply(std::size_t p, const double* matrix, const double* x, double* out) {
    in_vectors([&]() BANDITREE_INLINE {
        double* __restrict to = out;
        for (std::size_t i = 0; i < p; ++i) to[i] = matrix[i] * x[0];
        for (std::size_t j = 1; j < p; ++j) {
            const double* __restrict column = matrix + j * p;
            const double factor = x[j];
            for (std::size_t i = 0; i < p; ++i) to[i] += column[i] * factor;
        }
    });
}

}  // namespace banditree
