// Linear-Gaussian beliefs: the expected reward is linear in a context. Twin of banditree/beliefs/linear.py.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "../random.hpp"
#include "../tree.hpp"

namespace banditree {

struct LinearRows {
    static constexpr bool contextual = true;
    static constexpr double low = -std::numeric_limits<double>::infinity(), high = -low;
    static constexpr std::int64_t refresh = 512;  // rewards between two inversions from scratch
    static constexpr double steep = 1e4;          // an update that shrinks the variance by more than this needs one
    static constexpr double singular = 1e-13;     // below this ratio of pivots an inversion has no digits to give
    double *count, *total, *gram, *moment;        // (nodes,), (nodes,), (nodes, d, d), (nodes, d) evidence
    const double *precision, *prior_mean;         // (nodes,), (nodes, d) prior
    double *inverse, *coefficients;               // (d, d, nodes), (d, nodes) derived; nodes side by side, to be scored so
    std::size_t d;
    double v;
    std::size_t n_nodes;
    std::vector<double> work;  // scratch: (d, d), (d,) and (d,)

    std::size_t dim() const { return d; }
    double plays(std::int32_t node) const { return count[node]; }
    double rewards(std::int32_t node) const { return total[node]; }

    // A context is prepared once for all nodes that are scored in it: x, then the upper triangle of x x' with what is off
    // the diagonal doubled, because x' B^-1 x is the sum of the products of its entries and those of the symmetric B^-1.
    std::size_t stride() const { return d + d * (d + 1) / 2; }
    void prepare(const double* x, double* out) const {
        for (std::size_t i = 0; i < d; ++i) out[i] = x[i];
        out += d;
        for (std::size_t i = 0; i < d; ++i)
            for (std::size_t j = i; j < d; ++j) *out++ = (i == j ? 1.0 : 2.0) * x[i] * x[j];
    }
    double mean(std::int32_t node, const double* prepared) const { return at(node, prepared).mean; }
    double spread(std::int32_t node, const double* prepared) const { return at(node, prepared).spread; }

    // Mean and spread of k nodes in a row, in the context of one decision; results lie `step` apart. Nodes are taken some
    // at a time, so that the sums stay near, and side by side, so that the compiler makes vectors of them.
    void moments(std::int32_t first, std::size_t k, const double* prepared, double* means, double* spreads,
                 std::size_t step) const {
        constexpr std::size_t most = 64;
        for (std::size_t from = 0; from < k; from += most) {
            double mean[most] = {}, square[most] = {};
            const std::size_t n = k - from < most ? k - from : most, node = static_cast<std::size_t>(first) + from;
            add(prepared, coefficients + node, d, mean, n);
            const double* outer = prepared + d;
            for (std::size_t i = 0; i < d; outer += d - i, ++i)
                add(outer, inverse + i * (d + 1) * n_nodes + node, d - i, square, n);
            for (std::size_t l = 0; l < n; ++l, means += step, spreads += step) {
                *means = mean[l];
                *spreads = std::sqrt(v * (square[l] > 0.0 ? square[l] : 0.0));
            }
        }
    }

    void sample(std::int32_t node, const Decisions& decisions, Stream& rng, double* out) const {
        for (std::size_t j = 0; j < decisions.m; ++j) {
            const Moments here = at(node, decisions.context(j));
            out[j] = here.mean + here.spread * rng.standard_normal();
        }
    }

    // A rank-one update (Sherman and Morrison), and from time to time an inversion from scratch.
    void observe(std::int32_t node, double reward, const double* x) {
        double *sum = gram + node * d * d, *f = moment + node * d;
        double *inv = work.data(), *gain = inv + d * d;  // the inverse is worked on side by side, then put back
        count[node] += 1.0;
        total[node] += reward;
        double shrink = 1.0;
        for (std::size_t i = 0; i < d; ++i) {
            gain[i] = 0.0;
            for (std::size_t j = 0; j < d; ++j) {
                inv[i * d + j] = inverse[(i * d + j) * n_nodes + node];
                gain[i] += inv[i * d + j] * x[j];
            }
            shrink += gain[i] * x[i];
        }
        const double scale = 1.0 / shrink;
        for (std::size_t i = 0; i < d; ++i) {
            f[i] += reward * x[i];
            for (std::size_t j = 0; j < d; ++j) {
                sum[i * d + j] += x[i] * x[j];
                inv[i * d + j] -= gain[i] * gain[j] * scale;
            }
        }
        if (static_cast<std::int64_t>(count[node]) % refresh == 0 || shrink > steep) {
            put_back(node, inv);
            invert(node);
            for (std::size_t i = 0; i < d * d; ++i) inv[i] = inverse[i * n_nodes + node];
        }
        put_back(node, inv);
        solve(node, inv);
    }

  private:
    struct Moments {
        double mean, spread;
    };
    Moments at(std::int32_t node, const double* prepared) const {
        Moments here;
        moments(node, 1, prepared, &here.mean, &here.spread, 1);
        return here;
    }

    // Add to the sums of n nodes a row of numbers each, times its factor; rows lie a whole array of nodes apart. Several
    // rows go at once, so that a sum is read and written less often.
    void add(const double* factor, const double* row, std::size_t n_rows, double* __restrict sums, std::size_t n) const {
        for (; n_rows >= 3; n_rows -= 3, factor += 3, row += 3 * n_nodes) {
            const double *second = row + n_nodes, *third = second + n_nodes;
            for (std::size_t l = 0; l < n; ++l)
                sums[l] += factor[0] * row[l] + factor[1] * second[l] + factor[2] * third[l];
        }
        for (; n_rows > 0; --n_rows, ++factor, row += n_nodes)
            for (std::size_t l = 0; l < n; ++l) sums[l] += *factor * row[l];
    }

    void put_back(std::int32_t node, const double* inv) {
        for (std::size_t i = 0; i < d * d; ++i) inverse[i * n_nodes + node] = inv[i];
    }

    void solve(std::int32_t node, const double* inv) {
        double* f = work.data() + d * d + d;
        for (std::size_t i = 0; i < d; ++i) f[i] = precision[node] * prior_mean[node * d + i] + moment[node * d + i];
        for (std::size_t i = 0; i < d; ++i) {
            double mu = 0.0;
            for (std::size_t j = 0; j < d; ++j) mu += inv[i * d + j] * f[j];
            coefficients[i * n_nodes + node] = mu;
        }
    }

    // B^-1 = L^-T L^-1 by Cholesky's B = L L'. B is positive definite: precision > 0 and the rest is a sum of squares.
    void invert(std::int32_t node) {
        double *l = work.data(), *inv = inverse + node;
        const double* sum = gram + node * d * d;
        for (std::size_t i = 0; i < d; ++i) {
            for (std::size_t j = 0; j <= i; ++j) {
                double rest = sum[i * d + j] + (i == j ? precision[node] : 0.0);
                const double whole = rest;
                for (std::size_t k = 0; k < j; ++k) rest -= l[i * d + k] * l[j * d + k];
                if (i == j && !(rest > singular * whole)) return;  // what the rank-one updates made of it is better
                l[i * d + j] = i == j ? std::sqrt(rest) : rest / l[j * d + j];
            }
        }
        for (std::size_t i = 0; i < d; ++i) {  // L^-1 in place, row by row: it is lower triangular too
            for (std::size_t j = 0; j < i; ++j) {
                double rest = 0.0;
                for (std::size_t k = j; k < i; ++k) rest -= l[i * d + k] * l[k * d + j];
                l[i * d + j] = rest / l[i * d + i];
            }
            l[i * d + i] = 1.0 / l[i * d + i];
        }
        for (std::size_t i = 0; i < d; ++i) {
            for (std::size_t j = 0; j <= i; ++j) {
                double entry = 0.0;
                for (std::size_t k = i; k < d; ++k) entry += l[k * d + i] * l[k * d + j];
                inv[(i * d + j) * n_nodes] = inv[(j * d + i) * n_nodes] = entry;
            }
        }
    }
};

}  // namespace banditree
