// Linear-Gaussian beliefs: the expected reward is linear in a context. Twin of banditree/beliefs/linear.py.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "../random.hpp"
#include "../tree.hpp"

namespace banditree {

struct LinearRows {
    static constexpr double low = -std::numeric_limits<double>::infinity(), high = -low;
    static constexpr std::int64_t refresh = 512;  // rewards between two inversions from scratch
    double *count, *total, *gram, *moment;        // (nodes,), (nodes,), (nodes, d, d), (nodes, d) evidence
    const double *precision, *prior_mean;         // (nodes,), (nodes, d) prior
    double *inverse, *coefficients;               // (nodes, d, d), (nodes, d) derived
    std::size_t d;
    double v;
    std::vector<double> work;  // (d, d) scratch

    std::size_t dim() const { return d; }
    double plays(std::int32_t node) const { return count[node]; }
    double rewards(std::int32_t node) const { return total[node]; }

    // A context is prepared once for all nodes that are scored in it: x, then x x', because x' B^-1 x is the sum of the
    // products of the entries of B^-1 and x x', one long run of numbers.
    std::size_t stride() const { return d + d * d; }
    void prepare(const double* x, double* out) const {
        for (std::size_t i = 0; i < d; ++i) {
            out[i] = x[i];
            for (std::size_t j = 0; j < d; ++j) out[d + i * d + j] = x[i] * x[j];
        }
    }
    double mean(std::int32_t node, const double* prepared) const { return dot(coefficients + node * d, prepared, d); }
    double spread(std::int32_t node, const double* prepared) const {
        const double along = dot(inverse + node * d * d, prepared + d, d * d);
        return std::sqrt(v * (along > 0.0 ? along : 0.0));
    }

    void sample(std::int32_t node, const Decisions& decisions, Stream& rng, double* out) const {
        for (std::size_t j = 0; j < decisions.m; ++j) {
            const double* prepared = decisions.context(j);
            out[j] = mean(node, prepared) + spread(node, prepared) * rng.standard_normal();
        }
    }

    // A rank-one update (Sherman and Morrison), and from time to time an inversion from scratch.
    void observe(std::int32_t node, double reward, const double* x) {
        double *sum = gram + node * d * d, *inv = inverse + node * d * d, *gain = work.data();
        count[node] += 1.0;
        total[node] += reward;
        for (std::size_t i = 0; i < d; ++i) gain[i] = dot(inv + i * d, x, d);
        const double scale = 1.0 / (1.0 + dot(gain, x, d));
        for (std::size_t i = 0; i < d; ++i) {
            moment[node * d + i] += reward * x[i];
            for (std::size_t j = 0; j < d; ++j) {
                sum[i * d + j] += x[i] * x[j];
                inv[i * d + j] -= gain[i] * gain[j] * scale;
            }
        }
        if (static_cast<std::int64_t>(count[node]) % refresh == 0) invert(node);
        solve(node);
    }

  private:
    // Four sums side by side, so that one addition does not wait for the last.
    static double dot(const double* x, const double* y, std::size_t n) {
        double a = 0.0, b = 0.0, c = 0.0, e = 0.0;
        std::size_t i = 0;
        for (; i + 4 <= n; i += 4) {
            a += x[i] * y[i];
            b += x[i + 1] * y[i + 1];
            c += x[i + 2] * y[i + 2];
            e += x[i + 3] * y[i + 3];
        }
        for (; i < n; ++i) a += x[i] * y[i];
        return (a + c) + (b + e);
    }

    void solve(std::int32_t node) {
        double *f = work.data(), *mu = coefficients + node * d;
        for (std::size_t i = 0; i < d; ++i) f[i] = precision[node] * prior_mean[node * d + i] + moment[node * d + i];
        for (std::size_t i = 0; i < d; ++i) mu[i] = dot(inverse + node * d * d + i * d, f, d);
    }

    // B^-1 = L^-T L^-1 by Cholesky's B = L L'. B is positive definite: precision > 0 and the rest is a sum of squares.
    void invert(std::int32_t node) {
        double *l = work.data(), *inv = inverse + node * d * d;
        const double* sum = gram + node * d * d;
        for (std::size_t i = 0; i < d; ++i) {
            for (std::size_t j = 0; j <= i; ++j) {
                double rest = sum[i * d + j] + (i == j ? precision[node] : 0.0);
                for (std::size_t k = 0; k < j; ++k) rest -= l[i * d + k] * l[j * d + k];
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
                inv[i * d + j] = inv[j * d + i] = entry;
            }
        }
    }
};

}  // namespace banditree
