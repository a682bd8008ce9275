// The kinds of adaptive beliefs: for rewards in [0, 1], and for normal rewards. Twin of
// banditree/beliefs/adaptive_kinds.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "beliefs/beta.hpp"
#include "beliefs/densities.hpp"
#include "beliefs/draws.hpp"
#include "numerics/lanes.hpp"
#include "numerics/vectors.hpp"
#include "stream.hpp"

namespace banditree {

struct Seen {
    double plays, total;
};

// Evidence that has faded below this counts as none, LEAST_EVIDENCE in adaptive.py.
inline double zero_if_negligible(double evidence) { return evidence < 1e-150 ? 0.0 : evidence; }

// What an arm is drawn with, in units of a reward and of its variance.
struct Moments {
    double mean, variance;
};

// What arms that do not follow their cluster are expected to be.
struct Stray {
    double mean, plays;
};

// Logs of the likelihood of an arm's rewards: as a stray, and at their own mean.
struct Logs {
    double alone, best;
};

// A cluster's mean, rounded, so that what follows from it need not be computed again at every reward: from which mean
// to which it is the same, and for rates the logarithms of it and of 1 minus it.
struct Around {
    double mean, from, to, log_success = 0.0, log_failure = 0.0;
    bool holds(double exact) const { return exact >= from && exact < to; }
};

struct AdaptiveBeta {
    static constexpr double low = 0.0, high = 1.0;
    static constexpr double one = 1.0;                       // ONE
    static constexpr double edge = 1e-12;                    // EDGE in adaptive_kinds.py
    static constexpr double linear_part = 0.7, wider = 0.6;  // LINEAR_PART, WIDER
    BetaRows::Node* nodes;                                   // the scales of an arm hold its `Logs`
    const double *a, *b;                                     // (nodes,) known beforehand
    double level_plays, stray_spread;                        // Law.level_plays, Law.stray_spread
    static constexpr double around_step = 0.05;              // AROUND_STEP
    double level_strength = 0.0, level_total = 0.0;          // of all arms, and of what is known of clusters beforehand
    double level = 0.0;                                      // see AdaptiveBetaRows.level()
    double log_own = 0.0;                                    // ln B of what strays are expected to be

    Seen before(std::int32_t node) const { return {a[node] + b[node], a[node]}; }
    Seen seen(std::int32_t leaf) const {
        const double successes = zero_if_negligible(a[leaf] + nodes[leaf].successes);
        return {successes + zero_if_negligible(b[leaf] + nodes[leaf].failures), successes};
    }
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
    static constexpr bool learned = false;
    double noise() const { return 1.0; }
    double coarse_variance() const { return 1.0; }
    const AdaptiveBeta& coarsened() const { return *this; }
    BANDITREE_INLINE double off_centre(double mean) const { return mean; }

    // Arms are weighed by the beta-binomial around a mean near their cluster's, see AdaptiveBetaRows.arms_message().
    // Per step of the concentration: sums of w and w x, the fit around the mean, the log odds of that mean, ln B of the
    // prior there, and the fit as far as the cluster's mean is off it.
    static constexpr bool by_fit = true;
    static constexpr double odds_step = 0.2;  // ODDS_STEP
    BANDITREE_INLINE void add_arm(const Seen& of, double sign, const double* __restrict k, std::size_t steps,
                                  double* __restrict to) const {
        for (std::size_t j = 0; j < steps; ++j) {
            const double w = sign * (k[j] + 1.0) / (of.plays + k[j]);
            to[j] += w * of.plays;
            to[j + steps] += w * of.total;
        }
    }
    BANDITREE_INLINE void add_fit(const Seen& of, double sign, const double* __restrict k, std::size_t steps,
                                  double* __restrict to) const {
        const double s = of.total, f = std::max(of.plays - s, 0.0), best = best_fit(of);
        for (std::size_t j = 0; j < steps; ++j) {
            const double odds = to[j + 3 * steps], a = k[j] / (1.0 + exp_lane(-odds)),
                         b = k[j] / (1.0 + exp_lane(odds));
            to[j + 2 * steps] += sign * (log_beta(a + s, b + f) - best - to[j + 4 * steps]);
        }
    }
    // Replaces an arm's fit, if it had any evidence. One more reward of 0 or 1 takes one logarithm: the ratio of the
    // two beta functions is the chance of that reward.
    BANDITREE_INLINE void replace_fit(const Seen& then, const Seen& now, const double* __restrict k, std::size_t steps,
                                      double* __restrict to) const {
        const double success = now.total - then.total;
        if (now.plays - then.plays != 1.0 || (success != 0.0 && success != 1.0)) {
            add_fit(now, 1.0, k, steps, to);
            if (then.plays > 0.0) add_fit(then, -1.0, k, steps, to);
            return;
        }
        const double best = best_fit(now) - best_fit(then), sign = success > 0.0 ? -1.0 : 1.0;
        const double such = success > 0.0 ? then.total : std::max(then.plays - then.total, 0.0);
        for (std::size_t j = 0; j < steps; ++j) {
            const double expected = k[j] / (1.0 + exp_lane(sign * to[j + 3 * steps]));
            to[j + 2 * steps] += ln_lane((expected + such) / (k[j] + then.plays)) - best;
        }
    }
    // The log odds of the cluster's mean.
    static BANDITREE_INLINE void find_odds(const double* __restrict to, std::size_t steps, double* __restrict odds) {
        for (std::size_t j = 0; j < steps; ++j) {
            const double mean = smoothed(to[j], to[j + steps]);
            odds[j] = ln_lane(mean / (1.0 - mean));
        }
    }
    // Whether they are now nearest to others than those that the arms are fitted around.
    static BANDITREE_INLINE bool moves_on(const double* __restrict to, double odds, std::size_t j, std::size_t steps) {
        return nearest(odds) != to[j + 3 * steps];
    }
    // Starts a fit without any arms.
    static BANDITREE_INLINE void clear_fit(double k, double odds, std::size_t j, std::size_t steps, double* to) {
        to[j + 2 * steps] = 0.0;
        to[j + 3 * steps] = nearest(odds);
        to[j + 4 * steps] = log_beta(k / (1.0 + exp_lane(-to[j + 3 * steps])), k / (1.0 + exp_lane(to[j + 3 * steps])));
    }
    BANDITREE_INLINE void make_good(const double* __restrict odds, std::size_t steps, double* __restrict to) const {
        for (std::size_t j = 0; j < steps; ++j) {
            const double mean = smoothed(to[j], to[j + steps]), off = odds[j] - to[j + 3 * steps];
            to[j + 5 * steps] = to[j + 2 * steps] + 0.5 * to[j] * mean * (1.0 - mean) * off * off;
        }
    }
    static BANDITREE_INLINE double smoothed(double strength, double total) {
        const double mean = (total + 0.5) / (strength + 1.0);
        return mean < edge ? edge : mean > 1.0 - edge ? 1.0 - edge : mean;
    }
    static BANDITREE_INLINE double nearest(double odds) { return odds_step * std::floor(odds / odds_step + 0.5); }

    // Adds an arm to the level of the rewards, or with the sign -1 takes it away.
    void add_level(const Seen& of, double sign) {
        const double w = sign / (of.plays + level_plays);
        level_strength += w * of.plays;
        level_total += w * of.total;
    }
    void forget_level() { level_strength = level_total = 0.0; }
    // Takes note of the level; true if what strays are expected to be has changed.
    bool note_level() {
        const double successes = std::max(level_total, 0.0), failures = std::max(level_strength - level_total, 0.0);
        const double share = std::max(successes / (successes + failures), edge);
        const double then = level;
        level =
            successes <= failures ? exp(-0.34657359027997264 * std::floor(0.5 - 2.8853900817779268 * ln(share))) : 0.5;
        if (level == then) return false;
        const Stray of = stray(0.0, 0.0);
        log_own = log_beta(of.plays * of.mean, of.plays * (1.0 - of.mean));
        return true;
    }
    double shift() const { return ln(4.0 * level * (1.0 - level)) * 0.72134752044448170; }
    Stray stray(double, double) const { return {level, 1.0 / (level * (1.0 - level) * stray_spread * stray_spread)}; }

    // The log likelihood of rewards at their own mean.
    static double best_fit(const Seen& seen) {
        const double s = seen.total, f = std::max(seen.plays - s, 0.0), n = std::max(seen.plays, 1e-300);
        return (s > 0.0 ? s * ln(s / n) : 0.0) + (f > 0.0 ? f * ln(1.0 - s / n) : 0.0);
    }
    // Keeps what `log_factor` needs of an arm's own evidence.
    void remember(std::int32_t leaf, const Seen& seen) {
        const double s = seen.total, f = std::max(seen.plays - s, 0.0);
        const Stray of = stray(0.0, 0.0);
        nodes[leaf].scales.a = log_beta(of.plays * of.mean + s, of.plays * (1.0 - of.mean) + f) - log_own;
        nodes[leaf].scales.b = best_fit(seen);
    }
    // What `remember` kept.
    Logs logs(std::int32_t leaf) const { return {nodes[leaf].scales.a, nodes[leaf].scales.b}; }
    static constexpr int last_step = 600;  // beyond, no mean is: its log odds are at most 27.7
    Around around(double mean, double) const {
        static const std::vector<Around> steps = [] {
            const auto rate = [](double at) { return 1.0 / (1.0 + exp_lane(-at)); };
            std::vector<Around> made;
            for (int i = -last_step; i <= last_step; ++i) {
                const double odds = around_step * i;
                made.push_back({odds, odds < -27.0 ? -1.0 : rate(odds - 0.5 * around_step),
                                odds > 27.0 ? 2.0 : rate(odds + 0.5 * around_step), -ln_one_plus(exp_lane(-odds)),
                                -ln_one_plus(exp_lane(odds))});
            }
            return made;
        }();
        mean = mean > edge ? (mean < 1.0 - edge ? mean : 1.0 - edge) : edge;  // never NaN, as it is looked up
        return steps[static_cast<std::size_t>(last_step +
                                              std::floor(ln_lane(mean / (1.0 - mean)) / around_step + 0.5))];
    }
    BANDITREE_INLINE double log_factor(const Logs& logs, const Seen& seen, double k, const Around& around,
                                       const Stray&) const {
        const double s = seen.total, f = std::max(seen.plays - s, 0.0), n = seen.plays;
        const double there = s * around.log_success + f * around.log_failure;
        return logs.alone - (logs.best - k / (n + k) * (logs.best - there) - 0.5 * ln_one_plus(n / k));
    }
    // See AdaptiveBetaRows.drawn(), which says why this scale.
    BANDITREE_INLINE Drawn drawn(const Moments& of) const {
        const double mean = of.mean, variance = of.variance;
        const double half = 0.5 * variance, least = half < edge ? edge : half > 0.5 ? 0.5 : half;
        const double p = mean < least ? least : mean > 1.0 - least ? 1.0 - least : mean, q = 1.0 - p;
        const double low = inverse_cbrt_lane(p), high = inverse_cbrt_lane(q), below = low * low, above = high * high;
        const double bend = (q * below - p * above) * variance * (1.0 / 3.0), slope = below + above - linear_part;
        const double on_scale = 3.0 * (p * below - q * above) - linear_part * (p - 0.5);
        return {on_scale - bend, slope * std::sqrt(variance * p * q) * (1.0 + wider * variance)};
    }
};

// The noise is known, or learned as AdaptiveLearnedGaussianRows says; then `squares` and `rows` are evidence too.
template <bool Learned>
struct AdaptiveNormal {
    static constexpr double low = -std::numeric_limits<double>::infinity(), high = -low;
    static constexpr double one = 0.0;
    static constexpr double farthest = 1e75;          // FARTHEST in adaptive.py
    static constexpr double least_variance = 1e-300;  // LEAST_VARIANCE
    static constexpr bool learned = Learned;
    double *count, *sum, *squares, *rows;                // (nodes,); the last two if the noise is learned
    const double *prior_plays, *prior_total;             // (nodes,)
    double lift, width;                                  // Law.stray_lift, Law.stray_width
    double sd, centre;                                   // what deviations are measured in, and means from
    double within = 0.0, degrees = 0.0, variance = 1.0;  // of the rewards of each arm; variance of a reward

    Seen before(std::int32_t node) const { return {prior_plays[node], prior_total[node]}; }
    Seen seen(std::int32_t leaf) const {
        const double plays = zero_if_negligible(prior_plays[leaf] + count[leaf]);
        return {plays, prior_total[leaf] + (plays > 0.0 ? sum[leaf] : 0.0)};
    }
    void observe(std::int32_t node, double total, double n) {
        count[node] += n;
        sum[node] += total;
        if constexpr (Learned) {
            squares[node] += (total - n * centre) * (total - n * centre) / n;
            rows[node] += 1.0;
        }
    }
    void rescale(std::int32_t node, double by) {
        count[node] *= by;
        sum[node] *= by;
        if constexpr (Learned) squares[node] *= by, rows[node] *= by;
    }
    BANDITREE_INLINE double reward_variance(double) const { return variance; }  // in units of sd squared
    double noise() const { return variance; }
    BANDITREE_INLINE double in_units(double difference) const {
        const double most = farthest * sd;
        return (difference > most ? most : difference < -most ? -most : difference) / sd;
    }
    BANDITREE_INLINE double off_centre(double mean) const { return in_units(mean - centre); }

    // Adds what an arm says about the noise, or with the sign -1 takes it away.
    void weigh_noise(std::int32_t leaf, double sign) {
        const double n = count[leaf], t = sum[leaf] - n * centre;
        if (!(n > 0.0)) return;
        within += sign * std::max(squares[leaf] - t * t / n, 0.0);
        degrees += sign * std::max(rows[leaf] - 1.0, 0.0);
    }
    void forget_noise() { within = degrees = 0.0; }
    void estimate_noise() {
        const double n = count[0], t = sum[0] - n * centre, of = rows[0];
        variance = 1.0;
        if (!(n > 0.0)) return;
        double overall = std::max((squares[0] - t * t / n) / of, 0.0);
        const double sure = std::max(within, 0.0);
        if (!(sure + overall > 0.0)) overall = squares[0] / of;
        variance = std::max((sure + overall) / (std::max(degrees, 0.0) + 1.0), least_variance);
    }

    // Arms are weighed as normal messages. Per step: sums of w, w x, w z^2 and ln w.
    static constexpr bool by_fit = false;
    BANDITREE_INLINE void add_arm(const Seen& of, double sign, const double* __restrict k, std::size_t steps,
                                  double* __restrict to) const {
        const double x = of.total / of.plays, z = off_centre(x);
        for (std::size_t j = 0; j < steps; ++j) {
            const double w = of.plays * k[j] / (of.plays + k[j]);
            to[j] += sign * w;
            to[j + steps] += sign * (w * x);
            to[j + 2 * steps] += sign * (w * (z * z));
            to[j + 3 * steps] += sign * ln_lane(w);
        }
    }

    void add_level(const Seen&, double) {}
    void forget_level() {}
    bool note_level() { return false; }
    double shift() const { return 0.0; }
    Stray stray(double root_mean, double spread) const {
        const double apart = sd * std::sqrt(coarse_variance() * spread);
        return {rounded(root_mean, around_step * apart) + lift * apart, 1.0 / (width * width * spread)};
    }
    void remember(std::int32_t, const Seen&) {}
    Logs logs(std::int32_t) const { return {0.0, 0.0}; }
    static constexpr double around_step =
        0.1;  // NORMAL_AROUND_STEP, in standard deviations of arms around their cluster
    Around around(double mean, double k) const {
        const double step = around_step * sd * std::sqrt(coarse_variance() / k), at = rounded(mean, step);
        return {at, at - 0.5 * step, at + 0.5 * step};
    }
    static double rounded(double x, double step) {
        const double steps = x / step;
        return std::fabs(steps) < 1e15 ? step * std::floor(steps + 0.5) : x;
    }
    double coarse_variance() const { return coarse(variance); }
    AdaptiveNormal coarsened() const {
        AdaptiveNormal same = *this;
        same.variance = coarse_variance();
        return same;
    }
    BANDITREE_INLINE double log_factor(const Logs&, const Seen& seen, double k, const Around& around,
                                       const Stray& stray) const {
        const double n = std::max(seen.plays, 1e-300), x = seen.total / n, v = coarse_variance();
        const auto log_density = [&](double mean, double part) BANDITREE_INLINE {
            const double away = in_units(x - mean);
            return -0.5 * (away * away / (v * part) + ln_lane(part));
        };
        return log_density(stray.mean, 1.0 / n + 1.0 / stray.plays) - log_density(around.mean, 1.0 / n + 1.0 / k);
    }
    BANDITREE_INLINE Drawn drawn(const Moments& of) const { return {of.mean, sd * std::sqrt(variance * of.variance)}; }
};
using AdaptiveGaussian = AdaptiveNormal<false>;
using AdaptiveLearnedGaussian = AdaptiveNormal<true>;

}  // namespace banditree
