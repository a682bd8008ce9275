// The kinds of adaptive beliefs: for rewards in [0, 1], and for normal rewards. Twin of banditree/beliefs/adaptive_kinds.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "beliefs/beta.hpp"
#include "beliefs/densities.hpp"
#include "numerics/lanes.hpp"
#include "numerics/vectors.hpp"
#include "stream.hpp"

namespace banditree {

struct Seen {
    double plays, total;
};

// Evidence that has faded below this counts as none, LEAST_EVIDENCE in adaptive.py.
inline double or_none(double evidence) { return evidence < 1e-150 ? 0.0 : evidence; }

// What is known of an arm, in one place, because all such arms are read at every decision.
struct Known {
    std::int32_t leaf;
    std::uint32_t parent;  // cluster
    Seen seen;
    double mean_alone;  // if it does not follow its cluster
    double room;        // see `log_factor`: at most this, plus what the distance from the cluster's mean adds
};

// Two parameters of a draw: of a Beta on log odds, or mean and standard deviation of a normal.
struct Drawn {
    double x, y;
};

struct AdaptiveBeta {
    static constexpr double low = 0.0, high = 1.0;
    static constexpr double one = 1.0;                   // ONE
    static constexpr double own = 2.0;                   // OWN in adaptive_kinds.py
    static constexpr double edge = 1e-12;                // EDGE
    static constexpr double least_strength = 0.01;        // LEAST_STRENGTH
    BetaRows::Node* nodes;  // the scales of an arm hold the logs of its likelihood: by itself, and at its own mean
    const double *a, *b;    // (nodes,) known beforehand
    double* scale;

    Seen before(std::int32_t node) const { return {a[node] + b[node], a[node]}; }
    Seen seen(std::int32_t leaf, double faded) const {
        const double successes = or_none(a[leaf] + nodes[leaf].successes * faded);
        return {successes + or_none(b[leaf] + nodes[leaf].failures * faded), successes};
    }
    double plays(std::int32_t node, double faded) const { return (nodes[node].successes + nodes[node].failures) * faded; }
    double earned(double faded) const { return nodes[0].successes * faded; }  // rewards in all, or plays if they are normal
    void observe(std::int32_t node, double total, double count) {
        nodes[node].successes += total;
        nodes[node].failures += count - total;
    }
    void rescale(std::int32_t node, double by) {
        nodes[node].successes *= by;
        nodes[node].failures *= by;
    }
    BANDITREE_INLINE double reward_variance(double mean) const {
        mean = mean < edge ? edge : mean > 1.0 - edge ? 1.0 - edge : mean;
        return mean * (1.0 - mean);
    }
    BANDITREE_INLINE double off_centre(double mean) const { return mean; }

    static double log_beta(double x, double y) {
        const double n = x + y, rest = stirling_rest(x) + stirling_rest(y) - stirling_rest(n);
        return (x - 0.5) * ln(x / n) + (y - 0.5) * ln(y / n) - 0.5 * ln(n / 6.283185307179586) + rest;
    }
    // Keeps what `log_factor` needs of an arm's own evidence.
    void remember(std::int32_t leaf, const Seen& seen) {
        const double s = seen.total, f = std::max(seen.plays - s, 0.0), n = std::max(seen.plays, 1e-300);
        nodes[leaf].scales.a = log_beta(own + s, own + f) - log_beta(own, own);
        nodes[leaf].scales.b = (s > 0.0 ? s * ln(s / n) : 0.0) + (f > 0.0 ? f * ln(1.0 - s / n) : 0.0);
    }
    // The log factor is at most this plus share n (x - m)^2 / (m (1 - m)), with m the cluster's mean, if k is at least 1.
    double room(std::int32_t leaf, const Seen& seen) const {
        return nodes[leaf].scales.a - nodes[leaf].scales.b + 0.5 * ln_one_plus(seen.plays);
    }
    double log_factor(std::int32_t leaf, const Seen& seen, double k, double around) const {
        const double s = seen.total, f = std::max(seen.plays - s, 0.0), n = seen.plays, best = nodes[leaf].scales.b;
        const double mean = std::clamp(around, edge, 1.0 - edge);
        const double there = s * ln(mean) + f * ln_one_minus(mean);
        return nodes[leaf].scales.a - (best - k / (n + k) * (best - there) - 0.5 * ln_one_plus(n / k));
    }
    Drawn following(double mean, double variance, double sharpness) const {
        const double strength = sharpness * std::max(1.0 / variance - 1.0, least_strength);
        mean = std::clamp(mean, edge, 1.0 - edge);
        return {strength * mean, strength * (1.0 - mean)};
    }
    static double mean_alone(const Seen& seen) { return (own + seen.total) / (2.0 * own + seen.plays); }
    Drawn alone(const Seen& seen, double sharpness) const {
        return {sharpness * (own + seen.total), sharpness * (own + std::max(seen.plays - seen.total, 0.0))};
    }
    double draw(const Drawn& of, Stream& rng) const { return rng.beta_log_odds(of.x, of.y); }
};

struct AdaptiveGaussian {
    static constexpr double low = -std::numeric_limits<double>::infinity(), high = -low;
    static constexpr double one = 0.0;
    double *count, *sum;                           // (nodes,)
    const double *sd, *prior_plays, *prior_total;  // (nodes,)
    double* scale;

    Seen before(std::int32_t node) const { return {prior_plays[node], prior_total[node]}; }
    Seen seen(std::int32_t leaf, double faded) const {
        const double plays = or_none(prior_plays[leaf] + count[leaf] * faded);
        return {plays, prior_total[leaf] + (plays > 0.0 ? sum[leaf] * faded : 0.0)};
    }
    double plays(std::int32_t node, double faded) const { return count[node] * faded; }
    double earned(double faded) const { return count[0] * faded; }
    void observe(std::int32_t node, double total, double n) {
        count[node] += n;
        sum[node] += total;
    }
    void rescale(std::int32_t node, double by) {
        count[node] *= by;
        sum[node] *= by;
    }
    static constexpr double farthest = 1e75;  // FARTHEST in adaptive.py
    BANDITREE_INLINE double reward_variance(double) const { return 1.0; }  // in units of sd squared
    BANDITREE_INLINE double in_units(double difference) const {
        const double most = farthest * sd[0];
        return (difference > most ? most : difference < -most ? -most : difference) / sd[0];
    }
    BANDITREE_INLINE double off_centre(double mean) const { return in_units(mean - prior_total[0] / prior_plays[0]); }
    void remember(std::int32_t, const Seen&) {}
    double room(std::int32_t, const Seen&) const { return 0.0; }
    double log_factor(std::int32_t, const Seen& seen, double k, double around) const {
        const double n = std::max(seen.plays, 1e-300), x = seen.total / n, unit = prior_plays[0];
        const auto log_density = [&](double mean, double variance) {
            const double away = in_units(x - mean);
            return -0.5 * (away * away / variance + ln(variance));
        };
        return log_density(prior_total[0] / unit, 1.0 / n + 1.0 / unit) - log_density(around, 1.0 / n + 1.0 / k);
    }
    Drawn following(double mean, double variance, double sharpness) const {
        return {mean, sd[0] / std::sqrt(sharpness) * std::sqrt(variance)};
    }
    double mean_alone(const Seen& seen) const { return (prior_total[0] + seen.total) / (prior_plays[0] + seen.plays); }
    Drawn alone(const Seen& seen, double sharpness) const {
        const double n = prior_plays[0] + seen.plays;
        return {(prior_total[0] + seen.total) / n, sd[0] / std::sqrt(sharpness) / std::sqrt(n)};
    }
    double draw(const Drawn& of, Stream& rng) const { return of.x + of.y * rng.standard_normal(); }
};

}  // namespace banditree
