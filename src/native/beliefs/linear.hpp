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
    double mean(std::int32_t node, const double* x) const { return dot(coefficients + node * d, x); }

    // sqrt(v x' B^-1 x). Only the upper triangle is read: B^-1 is symmetric.
    double spread(std::int32_t node, const double* x) const {
        const double* row = inverse + node * d * d;
        double along = 0.0;
        for (std::size_t i = 0; i < d; ++i, row += d) {
            double beside = 0.0;
            for (std::size_t j = i + 1; j < d; ++j) beside += row[j] * x[j];
            along += x[i] * (row[i] * x[i] + 2.0 * beside);
        }
        return std::sqrt(v * (along > 0.0 ? along : 0.0));
    }

    void sample(std::int32_t node, const Decisions& decisions, Stream& rng, double* out) const {
        for (std::size_t j = 0; j < decisions.m; ++j) {
            const double* x = decisions.context(j);
            out[j] = mean(node, x) + spread(node, x) * rng.standard_normal();
        }
    }

    // A rank-one update (Sherman and Morrison), and from time to time an inversion from scratch.
    void observe(std::int32_t node, double reward, const double* x) {
        double *sum = gram + node * d * d, *inv = inverse + node * d * d, *gain = work.data();
        count[node] += 1.0;
        total[node] += reward;
        for (std::size_t i = 0; i < d; ++i) gain[i] = dot(inv + i * d, x);
        const double scale = 1.0 / (1.0 + dot(gain, x));
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
    double dot(const double* x, const double* y) const {
        double sum = 0.0;
        for (std::size_t i = 0; i < d; ++i) sum += x[i] * y[i];
        return sum;
    }

    void solve(std::int32_t node) {
        double *f = work.data(), *mu = coefficients + node * d;
        for (std::size_t i = 0; i < d; ++i) f[i] = precision[node] * prior_mean[node * d + i] + moment[node * d + i];
        for (std::size_t i = 0; i < d; ++i) mu[i] = dot(inverse + node * d * d + i * d, f);
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
