// Linear-Gaussian beliefs, for expected rewards that are linear in a context. Twin of banditree/beliefs/linear.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "numerics/sums.hpp"
#include "numerics/vectors.hpp"
#include "stream.hpp"
#include "tree/shape.hpp"

namespace banditree {

struct LinearRows {
    static constexpr bool contextual = true;
    static constexpr double low = -std::numeric_limits<double>::infinity(), high = -low;
    static constexpr std::int64_t refresh = 512;  // rewards between two inversions from scratch
    static constexpr double steep = 1e4;          // an update that shrinks the variance by more than this factor needs one
    static constexpr double inflated = 1e8;       // if a variance is inflated by more than this, doubles lose digits: left to Python
    double *count, *total, *gram, *moment;        // (nodes,), (nodes,), (nodes, d, d), (nodes, d) evidence
    const double *precision, *prior_mean;         // (nodes,), (nodes, d) prior
    double *inverse, *coefficients;  // (d (d + 1) / 2, nodes), (d, nodes) derived: B^-1's upper triangle row by row, B^-1 f
    const double* rooted;            // (nodes,) 1 where `inverse` holds U with U U' = B^-1 instead
    std::size_t d;
    double v;
    double* scale;  // weight of the stored evidence, which falls as evidence fades
    bool fades;     // whether evidence fades; then what derives from it is computed when needed
    std::size_t n_nodes;  // values of different nodes are adjacent, because nodes are scored together
    double widest = v / *std::min_element(precision, precision + n_nodes);  // no variance exceeds this times x'x
    std::vector<double> work = std::vector<double>(d * d + d), means = {}, variances = {};  // scratch: (d + 1, d), (k,), (k,)
    std::vector<double> scaled = {}, squares = std::vector<double>(d);  // scratch: (d,)
    bool some_rooted = false;
    std::vector<double> computed_at = {};  // (nodes,) the scale at which derived arrays were computed, 0 for never
    using RankOne = double (LinearRows::*)(std::size_t, double, const double*);
    RankOne rank_one = rank_one_for(d);

    std::size_t dim() const { return d; }
    void reset() {
        std::fill(computed_at.begin(), computed_at.end(), 0.0);
        some_rooted = std::any_of(rooted, rooted + n_nodes, [](double root) { return root > 0.0; });
    }
    double plays(std::int32_t node) const { return count[node] * *scale; }
    double rewards(std::int32_t node) const { return total[node] * *scale; }

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
    void moments(std::int32_t first, std::size_t k, const double* prepared) {
        if (means.size() < k) means.resize(k), variances.resize(k);
        if (fades) refresh_all(static_cast<std::size_t>(first), k);
        in_vectors([&]() BANDITREE_INLINE {
            weighted_sum(prepared, coefficients + first, d, n_nodes, means.data(), k);
            weighted_sum<true>(prepared + d, inverse + first, d * (d + 1) / 2, n_nodes, variances.data(), k);
        });
        if (some_rooted) root_moments(first, k, prepared);
    }

    // Meets n rewards in these contexts, with plays as in Walk::learn. True where updates by them keep their digits at every
    // node, whatever the contexts: (B^-1)_ii is at most 1 / precision, and no B_ii is above the trace of the root's sums.
    // Else `even` looks at the nodes themselves.
    bool meet(const double* x, const double* plays, std::size_t n) {
        double trace = 0.0;
        for (std::size_t i = 0; i < d; ++i) trace += gram[i * d + i];
        for (std::size_t row = 0; row < n; ++row) {
            double square = 0.0;
            for (std::size_t i = 0; i < d; ++i) square += x[row * d + i] * x[row * d + i];
            trace += (plays ? plays[row] : 1.0) * square;
        }
        if (fades || (!some_rooted && trace * widest <= (inflated - 1.0) * v)) return true;
        std::fill(squares.begin(), squares.end(), 0.0);
        for (std::size_t row = 0; row < n; ++row)
            for (std::size_t i = 0; i < d; ++i) squares[i] += (plays ? plays[row] : 1.0) * x[row * d + i] * x[row * d + i];
        return false;
    }

    // Whether updates by these contexts keep their digits at all nodes of a path: the new B_ii times the old (B^-1)_ii
    // bounds the loss.
    bool even(const std::vector<std::int32_t>& path) const {
        bool all = true;
        for (const std::int32_t node : path) {
            const double* b = gram + static_cast<std::size_t>(node) * d * d;
            const double* entry = inverse + node;
            if (some_rooted && rooted[node] > 0.0) return false;
            for (std::size_t i = 0; i < d; entry += (d - i) * n_nodes, ++i)
                all &= (precision[node] + b[i * d + i] + squares[i]) * *entry <= inflated;  // false for NaN
        }
        return all;
    }

    void sample(std::int32_t first, std::size_t k, const Decisions& decisions, Stream& rng, double* out) {
        for (std::size_t j = 0; j < decisions.m; ++j) {
            moments(first, k, decisions.context(j));
            double *mean = means.data(), *spread = variances.data();
            for (std::size_t i = 0; i < k; ++i) spread[i] = std::sqrt(spread[i]);  // in a loop of its own, so that roots are vectorised
            for (std::size_t i = 0; i < k; ++i) out[i * decisions.m + j] = mean[i] + spread[i] * rng.standard_normal();
        }
    }

    // Applies a rank-one update (Sherman and Morrison), and from time to time inverts from scratch. With g = B^-1 x and
    // s = 1 + x' g, the new B^-1 is B^-1 - g g' / s, and the new B^-1 f is B^-1 f + g (r - x' B^-1 f) / s.
    // n rewards with this sum in one context x equal one reward of sum / sqrt(n) in the context sqrt(n) x.
    void observe(std::int32_t node, double sum, double n, const double* x) {
        count[node] += n;
        total[node] += sum;
        double reward = sum;
        if (n != 1.0) {
            scaled.assign(x, x + d);
            for (double& entry : scaled) entry *= std::sqrt(n);
            x = scaled.data();
            reward /= std::sqrt(n);
        }
        if (fades) return add(static_cast<std::size_t>(node), reward, x);
        const double shrink = (this->*rank_one)(static_cast<std::size_t>(node), reward, x);
        if (static_cast<std::int64_t>(count[node]) % refresh == 0 || shrink > steep) invert(static_cast<std::size_t>(node));
    }

    void rescale(std::int32_t node, double by) {
        const std::size_t at = static_cast<std::size_t>(node);
        count[node] *= by;
        total[node] *= by;
        for (std::size_t i = 0; i < d * d; ++i) gram[at * d * d + i] *= by;
        for (std::size_t i = 0; i < d; ++i) moment[at * d + i] *= by;
    }

  private:
    void add(std::size_t node, double reward, const double* x) {
        for (std::size_t i = 0; i < d; ++i) moment[node * d + i] += reward * x[i];
        for (std::size_t i = 0; i < d; ++i)
            for (std::size_t j = 0; j < d; ++j) gram[node * d * d + i * d + j] += x[i] * x[j];
        if (!computed_at.empty()) computed_at[node] = 0.0;
    }
    void refresh_all(std::size_t first, std::size_t k) {
        computed_at.resize(n_nodes, 0.0);
        for (std::size_t node = first; node < first + k; ++node) {
            if (computed_at[node] == *scale) continue;
            invert(node);
            computed_at[node] = *scale;
        }
    }

    // The variances of rooted nodes among k in a row: v |U' x|^2, in which nothing cancels.
    void root_moments(std::int32_t first, std::size_t k, const double* x) {
        for (std::size_t i = 0; i < k; ++i) {
            const std::size_t node = static_cast<std::size_t>(first) + i;
            if (!(rooted[node] > 0.0)) continue;
            double* along = work.data();
            const double* entry = inverse + node;
            for (std::size_t j = 0; j < d; ++j) along[j] = 0.0;
            for (std::size_t r = 0; r < d; ++r)
                for (std::size_t j = r; j < d; ++j, entry += n_nodes) along[j] += *entry * x[r];
            double square = 0.0;
            for (std::size_t j = 0; j < d; ++j) square += along[j] * along[j];
            variances[i] = v * square;
        }
    }

    // The update for a fixed dimension D, so that the compiler unrolls its loops; D = 0 takes any dimension.
    template <std::size_t D = 8>
    static RankOne rank_one_for(std::size_t d) {
        if constexpr (D > 0)
            if (d != D) return rank_one_for<D - 1>(d);
        return &LinearRows::rank_one_of<D>;
    }

    template <std::size_t D>
    double rank_one_of(std::size_t node, double reward, const double* context) {
        const std::size_t d = D > 0 ? D : this->d;
        double *sum = gram + node * d * d, *f = moment + node * d, *inv = inverse + node, *mu = coefficients + node;
        double local_x[D > 0 ? D : 1], local_gain[D > 0 ? D : 1];
        double *x = D > 0 ? local_x : work.data(), *gain = D > 0 ? local_gain : work.data() + d;
        for (std::size_t i = 0; i < d; ++i) x[i] = context[i], gain[i] = 0.0;
        const double* entry = inv;
        BANDITREE_UNROLL
        for (std::size_t i = 0; i < d; ++i) {
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
        for (std::size_t i = 0; i < d; ++i) f[i] += reward * x[i];
        for (std::size_t i = 0; i < d; ++i)
            for (std::size_t j = 0; j < d; ++j) sum[i * d + j] += x[i] * x[j];
        const double scale = 1.0 / shrink;
        BANDITREE_UNROLL
        for (std::size_t i = 0; i < d; ++i) {
            const double scaled = gain[i] * scale;
            mu[i * n_nodes] += scaled * error;
            BANDITREE_UNROLL
            for (std::size_t j = i; j < d; ++j, inv += n_nodes) *inv -= scaled * gain[j];
        }
        return shrink;
    }

    // B^-1 = L^-T L^-1 by Cholesky's B = L L', and B^-1 f. B is positive definite: precision > 0 and the rest is a sum of
    // squares.
    void invert(std::size_t node) {
        double *l = work.data(), *f = l + d * d, *inv = inverse + node;
        const double* sum = gram + node * d * d;
        for (std::size_t i = 0; i < d; ++i) {
            for (std::size_t j = 0; j <= i; ++j) {
                double rest = sum[i * d + j] * *scale + (i == j ? precision[node] : 0.0);
                for (std::size_t k = 0; k < j; ++k) rest -= l[i * d + k] * l[j * d + k];
                if (i == j && fades && !(rest > precision[node])) rest = precision[node];  // it is at least that, up to rounding
                if (i == j && !(rest > 0.0)) return;  // cannot happen with the inflation that `even` allows
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
            f[i] = precision[node] * prior_mean[node * d + i] + moment[node * d + i] * *scale;
            coefficients[i * n_nodes + node] = 0.0;
        }
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
};

}  // namespace banditree
