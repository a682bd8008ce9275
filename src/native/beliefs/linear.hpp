// Linear-Gaussian beliefs, for expected rewards that are linear in a context. Twin of banditree/beliefs/linear.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <vector>

#include "numerics/eigen.hpp"
#include "numerics/sums.hpp"
#include "numerics/vectors.hpp"
#include "stream.hpp"
#include "tree/shape.hpp"

namespace banditree {

struct LinearRows {
    static constexpr bool contextual = true;
    static constexpr double low = -std::numeric_limits<double>::infinity(), high = -low;
    static constexpr std::int64_t refresh = 512;  // rewards between two solutions from scratch
    static constexpr double steep = 1e4;  // an update that shrinks the variance by more than this factor needs one
    static constexpr double max_inflation = 1e8;  // MAX_INFLATION in linear.py
    double* table;  // (nodes, columns) evidence: count, total, sum of x x' (d, d), sum of r x (d,)
    const double *precision, *prior_mean;  // (nodes,), (nodes, d) prior
    std::size_t d;
    double v;
    std::size_t n_nodes;  // derived values of different nodes are adjacent, because nodes are scored together
    double widest = v / *std::min_element(precision, precision + n_nodes);  // no variance exceeds this times x'x
    // Derived: the upper triangle of B^-1 row by row, and B^-1 f; and R with R R' = B^-1 where contexts are nearly
    // collinear.
    std::vector<double> inverse = std::vector<double>(d * (d + 1) / 2 * n_nodes),
                        coefficients = std::vector<double>(d * n_nodes);
    std::unordered_map<std::size_t, std::vector<double>> roots = {};
    std::vector<char> solved =
        std::vector<char>(n_nodes, 0);  // whether what derives from a node's evidence is up to date
    std::vector<double> work = std::vector<double>(2 * d * d + 2 * d), means = {}, variances = {};  // scratch
    using RankOne = bool (LinearRows::*)(std::size_t, double, const double*);
    RankOne rank_one = rank_one_for(d);

    std::size_t dim() const { return d; }
    void reset() { std::fill(solved.begin(), solved.end(), 0); }
    double* row(std::size_t node) const { return table + node * (2 + d * d + d); }
    double* gram(std::size_t node) const { return row(node) + 2; }
    double* moment(std::size_t node) const { return row(node) + 2 + d * d; }
    double plays(std::int32_t node) const { return row(static_cast<std::size_t>(node))[0]; }
    double rewards(std::int32_t node) const { return row(static_cast<std::size_t>(node))[1]; }

    // A context is prepared once for all nodes that are scored in it: x, then v times the upper triangle of x x', with
    // entries off the diagonal doubled, because x' B^-1 x is the sum of the products of its entries and those of the
    // symmetric B^-1. Last comes an upper bound of all variances: rewards only make B larger.
    std::size_t stride() const { return d + d * (d + 1) / 2 + 1; }
    void prepare(const double* x, double* out) const {
        double square = 0.0;
        for (std::size_t i = 0; i < d; ++i) {
            *out++ = x[i];
            square += x[i] * x[i];
        }
        for (std::size_t i = 0; i < d; ++i)
            for (std::size_t j = i; j < d; ++j) *out++ = (i == j ? v : 2.0 * v) * x[i] * x[j];
        *out = widest * square;
    }

    // Mean and variance of k nodes in a row, in one prepared context. A variance that rounding takes below 0 becomes 0.
    void moments(std::int32_t from, std::size_t k, const double* prepared) {
        const auto first = static_cast<std::size_t>(from);
        if (means.size() < k) means.resize(k), variances.resize(k);
        for (std::size_t node = first; node < first + k; ++node)
            if (!solved[node]) solve(node);
        in_vectors([&]() BANDITREE_INLINE {
            weighted_sum(prepared, coefficients.data() + first, d, n_nodes, means.data(), k);
            weighted_sum<true>(prepared + d, inverse.data() + first, d * (d + 1) / 2, n_nodes, variances.data(), k);
        });
        for (std::size_t i = 0; !roots.empty() && i < k; ++i) {
            const auto found = roots.find(first + i);
            if (found != roots.end()) variances[i] = v * square_along(found->second.data(), prepared);
        }
    }

    void sample(std::int32_t first, std::size_t k, const Decisions& decisions, Stream& rng, double* out) {
        for (std::size_t j = 0; j < decisions.m; ++j) {
            moments(first, k, decisions.context(j));
            double *mean = means.data(), *spread = variances.data();
            for (std::size_t i = 0; i < k; ++i)
                spread[i] = std::sqrt(spread[i]);  // in a loop of its own, so that roots are vectorised
            for (std::size_t i = 0; i < k; ++i) out[i * decisions.m + j] = mean[i] + spread[i] * rng.standard_normal();
        }
    }

    // Adds n rewards with this sum in one context. What derives from the evidence follows by a rank-one update, or is
    // solved when it is next needed: from time to time, and wherever the update would lose digits.
    void observe(std::int32_t at, double sum, double n, const double* x) {
        const auto node = static_cast<std::size_t>(at);
        double *evidence = row(node), *b = gram(node), *f = moment(node);
        bool keeps = solved[node] && (roots.empty() || !roots.count(node));
        if (keeps && n == 1.0) {
            keeps = (this->*rank_one)(node, sum, x);
        } else if (keeps) {  // n rewards in one context x equal one of sum / sqrt(n) in the context sqrt(n) x
            std::vector<double> scaled(x, x + d);
            for (double& entry : scaled) entry *= std::sqrt(n);
            keeps = (this->*rank_one)(node, sum / std::sqrt(n), scaled.data());
        }
        evidence[0] += n;
        evidence[1] += sum;
        for (std::size_t i = 0; i < d; ++i) f[i] += sum * x[i];
        for (std::size_t i = 0; i < d; ++i)
            for (std::size_t j = 0; j < d; ++j) b[i * d + j] += n * x[i] * x[j];
        if (!keeps || static_cast<std::int64_t>(evidence[0]) % refresh == 0) solved[node] = 0;
    }

    void rescale(std::int32_t node, double by) {
        double* evidence = row(static_cast<std::size_t>(node));
        for (std::size_t i = 0; i < 2 + d * d + d; ++i) evidence[i] *= by;
    }

  private:
    // |R' x|^2, in which nothing cancels.
    double square_along(const double* root, const double* x) {
        double square = 0.0;
        for (std::size_t j = 0; j < d; ++j) {
            double along = 0.0;
            for (std::size_t i = 0; i < d; ++i) along += root[i * d + j] * x[i];
            square += along * along;
        }
        return square;
    }

    // The update for a fixed dimension D, so that the compiler unrolls its loops; D = 0 takes any dimension.
    template <std::size_t D = 8>
    static RankOne rank_one_for(std::size_t d) {
        if constexpr (D > 0)
            if (d != D) return rank_one_for<D - 1>(d);
        return &LinearRows::rank_one_of<D>;
    }

    // Sherman and Morrison: with g = B^-1 x and s = 1 + x' g, the new B^-1 is B^-1 - g g' / s, and the new B^-1 f is
    // B^-1 f + g (r - x' B^-1 f) / s. False if digits are lost; the new B_ii times the old (B^-1)_ii bounds the loss.
    template <std::size_t D>
    bool rank_one_of(std::size_t node, double reward, const double* context) {
        const std::size_t d = D > 0 ? D : this->d;
        double *inv = inverse.data() + node, *mu = coefficients.data() + node;
        const double* b = gram(node);
        double local_x[D > 0 ? D : 1], local_gain[D > 0 ? D : 1];
        double *x = D > 0 ? local_x : work.data(), *gain = D > 0 ? local_gain : work.data() + d;
        for (std::size_t i = 0; i < d; ++i) x[i] = context[i], gain[i] = 0.0;
        bool even = true;
        const double* entry = inv;
        BANDITREE_UNROLL
        for (std::size_t i = 0; i < d; ++i) {
            even &= (precision[node] + b[i * d + i] + x[i] * x[i]) * *entry <= max_inflation;
            BANDITREE_UNROLL
            for (std::size_t j = i; j < d; ++j, entry += n_nodes) {
                gain[i] += *entry * x[j];
                if (j > i) gain[j] += *entry * x[i];
            }
        }
        double shrink = 1.0, error = reward;
        for (std::size_t i = 0; i < d; ++i) {
            shrink += gain[i] * x[i];
            error -= mu[i * n_nodes] * x[i];
        }
        if (!even || !(shrink <= steep)) return false;
        const double part = 1.0 / shrink;
        BANDITREE_UNROLL
        for (std::size_t i = 0; i < d; ++i) {
            const double scaled = gain[i] * part;
            mu[i * n_nodes] += scaled * error;
            BANDITREE_UNROLL
            for (std::size_t j = i; j < d; ++j, inv += n_nodes) *inv -= scaled * gain[j];
        }
        return true;
    }

    // B^-1 and B^-1 f from scratch, by R = L^-T of Cholesky's B = L L'; by eigenvectors where that loses digits.
    void solve(std::size_t node) {
        solved[node] = 1;
        if (!roots.empty()) roots.erase(node);
        if (row(node)[0] == 0.0) return start(node);
        double *l = work.data(), *f = l + 2 * d * d;
        const double* sum = gram(node);
        for (std::size_t i = 0; i < d; ++i) {
            for (std::size_t j = 0; j <= i; ++j) {
                double rest = sum[i * d + j] + (i == j ? precision[node] : 0.0);
                for (std::size_t k = 0; k < j; ++k) rest -= l[i * d + k] * l[j * d + k];
                l[i * d + j] =
                    i == j ? std::sqrt(rest) : rest / l[j * d + j];  // not a number if rounding took it below 0
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
            double along = 0.0;
            for (std::size_t k = i; k < d; ++k) along += l[k * d + i] * l[k * d + i];
            if (!((sum[i * d + i] + precision[node]) * along <= max_inflation)) return solve_collinear(node);
        }
        for (std::size_t i = 0; i < d; ++i) {
            f[i] = precision[node] * prior_mean[node * d + i] + moment(node)[i];
            coefficients[i * n_nodes + node] = 0.0;
        }
        double* inv = inverse.data() + node;
        for (std::size_t i = 0; i < d; ++i) {
            for (std::size_t j = i; j < d; ++j, inv += n_nodes) {
                double entry = 0.0;
                for (std::size_t k = j; k < d; ++k) entry += l[k * d + i] * l[k * d + j];
                *inv = entry;
                coefficients[i * n_nodes + node] += entry * f[j];
                if (j > i) coefficients[j * n_nodes + node] += entry * f[i];
            }
        }
    }

    // The prior, of a node without rewards.
    void start(std::size_t node) {
        double* inv = inverse.data() + node;
        for (std::size_t i = 0; i < d; ++i) {
            coefficients[i * n_nodes + node] = prior_mean[node * d + i];
            for (std::size_t j = i; j < d; ++j, inv += n_nodes) *inv = i == j ? 1.0 / precision[node] : 0.0;
        }
    }

    // Eigenvalues that are rounding count as 0: no context was seen in those directions, and the prior remains as it
    // was.
    BANDITREE_RARE void solve_collinear(std::size_t node) {
        double *values = work.data(), *vectors = values + d * d, *along = vectors + d * d;
        for (std::size_t i = 0; i < d * d; ++i) values[i] = gram(node)[i];
        eigenvectors(values, vectors, d);
        double greatest = 0.0;
        for (std::size_t k = 0; k < d; ++k) greatest = std::max(greatest, values[k * d + k]);
        const double digits = std::numeric_limits<double>::epsilon() * (static_cast<double>(d) + row(node)[0]);
        const double noise = std::min(digits, 1.0 / max_inflation) * greatest;
        std::vector<double>& root = roots[node];
        root.resize(d * d);
        for (std::size_t k = 0; k < d; ++k) {
            const bool seen =
                !(values[k * d + k] <= noise);  // also where it is not a number, so that the scores are not either
            const double b = precision[node] + (seen ? values[k * d + k] : 0.0);
            along[k] = 0.0;
            for (std::size_t i = 0; i < d; ++i) {
                const double f = precision[node] * prior_mean[node * d + i] + (seen ? moment(node)[i] : 0.0);
                along[k] += vectors[i * d + k] * f / b;
                root[i * d + k] = vectors[i * d + k] / std::sqrt(b);
            }
        }
        for (std::size_t i = 0; i < d; ++i) {
            double& mu = coefficients[i * n_nodes + node] = 0.0;
            for (std::size_t k = 0; k < d; ++k) mu += vectors[i * d + k] * along[k];
        }
    }
};

}  // namespace banditree
