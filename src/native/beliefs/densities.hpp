// The densities that winning probabilities integrate: Beta on the log-odds scale, and Normal. Around any c
//   ln f(t) = ln f(c) + slope(c) (t - c) - weight bend(t - c),
// where `bend` is the same function for every child. Its twins are in banditree/beliefs/winning.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "numerics/lanes.hpp"

namespace banditree {

inline std::vector<double> taken(const std::vector<double>& values, const std::vector<std::size_t>& order) {
    std::vector<double> found;
    found.reserve(order.size());
    for (const std::size_t i : order) found.push_back(values[i]);
    return found;
}

// ln Gamma(x) minus Stirling's (x - 1/2) ln x - x + ln(2 pi) / 2, for x >= 10.
BANDITREE_INLINE inline double stirling_series(double x) {
    const double i = 1.0 / x, q = i * i;
    return i * (1. / 12 - q * (1. / 360 - q * (1. / 1260 - q * (1. / 1680 - q * (1. / 1188 - q * (691. / 360360))))));
}
// The same at x minus at x + 10, for x > 0: x Gamma(x) = Gamma(x + 1), ten times.
BANDITREE_INLINE inline double stirling_step(double x) {
    double product = 1.0;
    for (int i = 1; i < 10; ++i) product *= x + i;
    return (x + 9.5) * ln_lane(x + 10.0) - 10.0 - (x + 0.5) * ln_lane(x) - ln_lane(product);
}
// For x > 0: with a branch, and without one.
inline double stirling_rest(double x) {
    return x < 10.0 ? stirling_step(x) + stirling_series(x + 10.0) : stirling_series(x);
}
BANDITREE_INLINE inline double stirling_rest_lane(double x) {
    const bool is_small = x < 10.0;
    const double y = is_small ? x : 1.0, step = stirling_step(y);
    return (is_small ? step : 0.0) + stirling_series(is_small ? x + 10.0 : x);
}
// ln B(x, y), of whose terms the large ones cancel.
BANDITREE_INLINE inline double log_beta(double x, double y) {
    const double n = x + y, rest = stirling_rest_lane(x) + stirling_rest_lane(y) - stirling_rest_lane(n);
    return (x - 0.5) * ln_lane(x / n) + (y - 0.5) * ln_lane(y / n) - 0.5 * ln_lane(n / 6.283185307179586) + rest;
}

// The log odds t of Beta(a, b): ln f(t) = a t - (a + b) ln(1 + e^t) - ln B(a, b), smooth for any a, b > 0.
struct BetaLogOdds {
    static constexpr double most_plays =
        1e18;  // with more successes and more failures, one sd is lost in the rounding of t

    std::vector<double> a, b, weight, p, q, mode, log_peak;  // (classes,)

    static double fewer(double successes, double failures) {
        return std::min(1.0, most_plays / std::min(successes, failures));
    }

    void add(double successes, double failures) {
        const double factor = fewer(successes, failures), x = successes * factor, y = failures * factor, n = x + y;
        a.push_back(x);
        b.push_back(y);
        weight.push_back(n);
        p.push_back(x / n);
        q.push_back(y / n);
        mode.push_back(ln(x) - ln(y));
        log_peak.push_back(0.5 * (ln(x / n) + ln(y) - 1.8378770664093454836) + stirling_rest(n) - stirling_rest(x) -
                           stirling_rest(y));
    }
    std::size_t count() const { return a.size(); }
    void clear() {
        for (auto* values : {&a, &b, &weight, &p, &q, &mode, &log_peak}) values->clear();
    }
    void arrange(const std::vector<std::size_t>& order) {
        for (auto* values : {&a, &b, &weight, &p, &q, &mode, &log_peak}) *values = taken(*values, order);
    }

    // Values at one point that all children share.
    struct Place {
        double lower, upper;  // 1 / (1 + e^t) and 1 / (1 + e^-t)
        explicit Place(double t) {
            const double e = exp_lane(-std::fabs(t)), near = 1.0 / (1.0 + e), far = e * near;
            lower = t < 0.0 ? near : far;
            upper = t < 0.0 ? far : near;
        }
    };
    BANDITREE_INLINE double slope(std::size_t i, const Place& at) const { return a[i] * at.lower - b[i] * at.upper; }
    BANDITREE_INLINE double curvature(std::size_t i, const Place& at) const {
        return weight[i] * (at.lower * at.upper);
    }

    // ln f(mode) - ln f(t) = n (ln(q + p e^u) - p u) with u = t - mode; (-u, q, p) gives the same. Computed from the
    // side where p is at most 1/2, as ln(1 + p (e^u - 1)) - p u, its relative error is small.
    BANDITREE_INLINE double drop(std::size_t i, double t) const {
        const bool left = p[i] < q[i];
        const double x = left ? p[i] : q[i], u = left ? t - mode[i] : mode[i] - t, size = std::fabs(u);
        const Powers power = powers_lane(-size);
        const double fall = x * power.exp_minus_one, rise = u < 0.0 ? fall : -fall / power.exp;
        const double beyond = u > 700.0 ? u - 700.0 : 0.0;  // there the 1 is negligible beside p e^u
        return weight[i] * ((ln_one_plus(rise) + beyond) - x * u);
    }
    BANDITREE_INLINE double log_density(std::size_t i, double t) const { return log_peak[i] - drop(i, t); }

    // ln(1 + e^t) minus its tangent at c, for t = c + d; (-c, -d) gives the same.
    BANDITREE_INLINE static double bend(double c, double d) {
        d = c < 0.0 ? d : -d;
        c = -std::fabs(c);
        const double e = exp_lane(c), sigma = e / (1.0 + e);
        const double rise =
            std::fabs(d) < 1.0 ? sigma * powers_lane(d).exp_minus_one : (exp_lane(d + c) - e) / (1.0 + e);
        return ln_one_plus(rise) - sigma * d;
    }

    // The point above the mode where ln f is `depth` below its peak: Newton on a convex function, from beyond the root.
    double top(std::size_t i, double depth) const {
        const double steep = 5.43656365691809 * depth / (weight[i] * p[i] * q[i]);  // 2 e
        double t = mode[i] + (steep <= 1.0 ? std::sqrt(steep) : (depth - weight[i] * ln(p[i])) / b[i]);
        for (int turn = 0; turn < 1000;
             ++turn) {  // where ln f falls like -e^t, a step is about 1 of the ln(a / b) to go
            const double over = drop(i, t) - depth, step = over / -slope(i, Place(t));
            t -= step;
            if (std::fabs(step) < 1e-2 * (t - mode[i]) && over < depth) break;
        }
        return t;
    }

    // The longest panel that ends here and stays clear of the poles of ln(1 + e^t) at +-i pi.
    static double longest(double right) { return std::max({3.0, right / 2.0, -right}); }
};

// ln f(t) = -(t - mean)^2 / (2 sd^2) - ln(sd sqrt(2 pi)), sd > 0.
struct NormalDensities {
    static constexpr double least =
        1e-100;  // least sd relative to the widest: a smaller one overflows in its square, and wins as often
    static constexpr double narrowest =
        1e-13;  // least sd relative to the distance from the highest mean, which rounding limits

    std::vector<double> mode, sd, weight, log_peak;  // (classes,)

    void add(double mean, double deviation) {
        mode.push_back(mean);
        sd.push_back(deviation);
        weight.push_back(1.0 / (deviation * deviation));
        log_peak.push_back(-ln(deviation) - 0.91893853320467274178);
    }
    std::size_t count() const { return mode.size(); }
    void arrange(const std::vector<std::size_t>& order) {
        for (auto* values : {&mode, &sd, &weight, &log_peak}) *values = taken(*values, order);
    }

    struct Place {
        double t;
        explicit Place(double at) : t(at) {}
    };
    BANDITREE_INLINE double slope(std::size_t i, const Place& at) const { return (mode[i] - at.t) * weight[i]; }
    BANDITREE_INLINE double curvature(std::size_t i, const Place&) const { return weight[i]; }
    BANDITREE_INLINE double log_density(std::size_t i, double t) const {
        const double z = (t - mode[i]) / sd[i];
        return log_peak[i] - 0.5 * z * z;
    }
    BANDITREE_INLINE static double bend(double, double d) { return 0.5 * d * d; }
    double top(std::size_t i, double depth) const { return mode[i] + sd[i] * std::sqrt(2.0 * depth); }
    static double longest(double) { return std::numeric_limits<double>::infinity(); }
};

}  // namespace banditree
