// Densities that a winner's probability is integrated over: Beta on the log odds, and Normal. Around any c
//   ln f(t) = ln f(c) + slope(c) (t - c) - weight bend(t - c),
// where `bend` is the same function for every child. Twin of banditree/rules/densities.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "../lanes.hpp"

namespace banditree {

// ln Gamma(x) less Stirling's (x - 1/2) ln x - x + ln(2 pi) / 2, for x > 0.
inline double stirling_rest(double x) {
    double step = 0.0;
    if (x < 10.0) {  // ten times x Gamma(x) = Gamma(x + 1)
        double product = 1.0;
        for (int i = 1; i < 10; ++i) product *= x + i;
        step = (x + 9.5) * ln(x + 10.0) - 10.0 - (x + 0.5) * ln(x) - ln(product);
        x += 10.0;
    }
    const double i = 1.0 / x, q = i * i;
    return step + i * (1. / 12 - q * (1. / 360 - q * (1. / 1260 - q * (1. / 1680 - q * (1. / 1188 - q * (691. / 360360))))));
}

// The log odds t of a Beta(a, b): ln f(t) = a t - (a + b) ln(1 + e^t) - ln B(a, b), smooth for any a, b > 0.
struct BetaLogOdds {
    static constexpr double most_plays = 1e18;  // beyond, a step of one standard deviation is lost in the rounding of t

    double a, b, weight, p, q, mode, log_peak;

    BetaLogOdds(double successes, double failures) {
        const double fewer = std::min(1.0, most_plays / (successes + failures));
        a = successes * fewer;
        b = failures * fewer;
        weight = a + b;
        p = a / weight;
        q = b / weight;
        mode = ln(a) - ln(b);
        log_peak = 0.5 * (ln(p) + ln(b) - 1.8378770664093454836) + stirling_rest(weight) - stirling_rest(a) - stirling_rest(b);
    }

    // What all children share at a point.
    struct Place {
        double lower, upper;  // 1 / (1 + e^t) and 1 / (1 + e^-t)
        explicit Place(double t) {
            const double e = exp(-std::fabs(t)), near = 1.0 / (1.0 + e), far = e * near;
            lower = t < 0.0 ? near : far;
            upper = t < 0.0 ? far : near;
        }
    };
    BANDITREE_INLINE double slope(const Place& at) const { return a * at.lower - b * at.upper; }
    BANDITREE_INLINE double curvature(const Place& at) const { return weight * (at.lower * at.upper); }

    // ln f(mode) - ln f(t) = n (ln(q + p e^u) - p u) with u = t - mode; with -u, q, p it is the same.
    double drop(double t) const {
        const bool left = t < mode;
        const double u = left ? t - mode : mode - t, x = left ? p : q, y = left ? q : p;
        const double log = u > -0.5 ? ln_one_plus(x * exp_minus_one(u)) : ln(y + x * exp(u));
        return weight * (log - x * u);
    }
    double log_density(double t) const { return log_peak - drop(t); }

    // ln(1 + e^t) less its tangent at c, d away from it; -c and -d give the same.
    static double bend(double c, double d) {
        if (c >= 0.0) d = -d;
        const double e = exp(-std::fabs(c)), sigma = e / (1.0 + e);
        const double rise = std::fabs(d) < 1.0 ? sigma * exp_minus_one(d) : (exp(d - std::fabs(c)) - e) / (1.0 + e);
        return ln_one_plus(rise) - sigma * d;
    }

    // Where ln f is `depth` below its peak, above the mode: Newton, from beyond, on a convex function.
    double top(double depth) const {
        const double steep = 5.43656365691809 * depth / (weight * p * q);
        double t = mode + (steep <= 1.0 ? std::sqrt(steep) : (depth - weight * ln(p)) / b);
        for (int i = 0; i < 60; ++i) {
            const double step = (drop(t) - depth) / -slope(Place(t));
            t -= step;
            if (std::fabs(step) < 1e-2 * (t - mode)) break;
        }
        return t;
    }

    // A panel that ends here and stays clear of the poles of ln(1 + e^t), +-i pi.
    static double longest(double right) { return std::max({3.0, right / 2.0, -right}); }
};

// ln f(t) = -(t - mean)^2 / (2 sd^2) - ln(sd sqrt(2 pi)), sd > 0.
struct NormalDensity {
    static constexpr double narrowest = 1e-13;  // of the distance from the highest mean, which is not known better

    double mode, sd, weight, log_peak;

    NormalDensity(double mean, double deviation)
        : mode(mean), sd(deviation), weight(1.0 / (sd * sd)), log_peak(-ln(sd) - 0.91893853320467274178) {}

    struct Place {
        double t;
        explicit Place(double at) : t(at) {}
    };
    BANDITREE_INLINE double slope(const Place& at) const { return (mode - at.t) * weight; }
    BANDITREE_INLINE double curvature(const Place&) const { return weight; }
    double log_density(double t) const {
        const double z = (t - mode) / sd;
        return log_peak - 0.5 * z * z;
    }
    static double bend(double, double d) { return 0.5 * d * d; }
    double top(double depth) const { return mode + sd * std::sqrt(2.0 * depth); }
    static double longest(double) { return std::numeric_limits<double>::infinity(); }
};

}  // namespace banditree
