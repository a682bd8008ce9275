// ln and exp in plain IEEE arithmetic: those of C libraries may differ in the last bit from machine to machine, and one
// bit is enough to make two runs with the same seed differ. Both are accurate to one unit in the last place.
// Build without fused contraction (-ffp-contract=off), or the results differ between machines.
#pragma once

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

// 32-bit x86 computes in 80 bits unless told otherwise.
static_assert(FLT_EVAL_METHOD == 0 || FLT_EVAL_METHOD == 16, "a double must be computed as one: build with SSE2");

namespace banditree {

// ln 2 in two parts: the first has 40 bits, so that its product with any binary exponent (11 bits) is exact.
inline constexpr double ln2_high = 0x1.62e42fefa2p-1;
inline constexpr double ln2_low = 0x1.9ef35793c7673p-41;

inline std::uint64_t to_bits(double x) {
    std::uint64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}

inline double from_bits(std::uint64_t bits) {
    double x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

// Natural logarithm. Write x = 2^k m with m in [sqrt(1/2), sqrt 2), f = m - 1 (exact) and s = f / (2 + f). Then
//   ln m = 2 atanh s = 2s + s R,   R = 2 (s^2/3 + s^4/5 + s^6/7 + ...),
// and 2s = f - s f, so ln m = f - s (f - R): the rounding errors are in the second term, which is small relative to f.
// |s| <= 0.1716, so the terms past s^22/23 are below 2^-58 of the sum.
inline double ln(double x) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (!(x > 0.0)) return x == 0.0 ? -infinity : std::numeric_limits<double>::quiet_NaN();
    if (x == infinity) return x;
    std::int64_t k = 0;
    if (x < std::numeric_limits<double>::min()) {  // subnormal: scale up to have an exponent to read
        x *= 0x1p54;
        k = -54;
    }
    // Adding the distance from sqrt(1/2) to 1 carries into the exponent exactly when the mantissa passes sqrt 2.
    constexpr std::uint64_t one = 0x3ff0000000000000, root_half = 0x3fe6a09e667f3bcd;
    const std::uint64_t shifted = to_bits(x) + (one - root_half);
    k += static_cast<std::int64_t>(shifted >> 52) - 1023;
    const double f = from_bits((shifted & 0x000fffffffffffff) + root_half) - 1.0;
    const double s = f / (2.0 + f), q = s * s, q2 = q * q;
    // The two halves of the series are independent chains, which the processor runs in parallel.
    const double even = 2. / 3 + q2 * (2. / 7 + q2 * (2. / 11 + q2 * (2. / 15 + q2 * (2. / 19 + q2 * (2. / 23)))));
    const double odd = 2. / 5 + q2 * (2. / 9 + q2 * (2. / 13 + q2 * (2. / 17 + q2 * (2. / 21))));
    const double series = q * (even + q * odd);
    const double exponent = static_cast<double>(k);
    return exponent * ln2_high + (f - (s * (f - series) - exponent * ln2_low));
}

// Exponential. Write x = k ln 2 + r with |r| <= ln(2)/2, so e^x = 2^k e^r, and e^r by its Taylor series: the terms past
// r^13/13! are below 2^-57. The scaling by 2^k takes two steps, because 2^k overflows before e^x does.
inline double exp(double x) {
    if (x != x) return x;
    if (x > 709.79) return std::numeric_limits<double>::infinity();
    if (x < -745.14) return 0.0;
    const double turns = x * 1.4426950408889634;  // x / ln 2
    const std::int64_t k = static_cast<std::int64_t>(turns + (turns < 0.0 ? -0.5 : 0.5));
    const double steps = static_cast<double>(k);
    const double r = (x - steps * ln2_high) - steps * ln2_low, q = r * r;
    const double even =
        1. / 2 + q * (1. / 24 + q * (1. / 720 + q * (1. / 40320 + q * (1. / 3628800 + q * (1. / 479001600)))));
    const double odd =
        1. / 6 + q * (1. / 120 + q * (1. / 5040 + q * (1. / 362880 + q * (1. / 39916800 + q * (1. / 6227020800)))));
    const double power = 1.0 + (r + q * (even + r * odd));
    const std::int64_t half = k / 2;
    const auto two_to = [](std::int64_t n) { return from_bits(static_cast<std::uint64_t>(n + 1023) << 52); };
    return power * two_to(half) * two_to(k - half);
}

// The power of two nearest to sqrt(x), by the exponent: exp2(rint(log2(x) / 2)), the same on every machine.
inline double power_near_root(double x) {
    int exponent = 0;
    const double fraction = std::frexp(x, &exponent);  // x = fraction 2^exponent, 0.5 <= fraction < 1
    const int odd = exponent & 1;
    int half = (exponent - odd) / 2;
    if (fraction == 0.5 && !odd && (half & 1)) --half;  // halfway: to the even one, as rint does
    return std::ldexp(1.0, half);
}

// The nearest numbers that are at most x, and above x, with six binary digits; for x >= 0.
inline double coarse(double x) { return from_bits(to_bits(x) >> 47 << 47); }
inline double coarse_above(double x) { return from_bits(((to_bits(x) >> 47) + 1) << 47); }

// ln(1 - x) for 0 <= x < 1, without losing the digits of a small x.
inline double ln_one_minus(double x) {
    if (x < 1e-3) return -x * (1.0 + x * (1. / 2 + x * (1. / 3 + x * (1. / 4 + x * (1. / 5)))));
    return ln(1.0 - x);
}

// At least e^x, at most 6.2% more: 2^t is convex, so the straight line between two powers of two lies above it, and the
// bits of a double, read as an integer, form such a line. The last factor covers the rounding of t.
inline double exp_above(double x) {
    const double turns = x * 1.4426950408889634 + 1023.0;  // x / ln 2, and the bias of the exponent
    if (!(turns > 1.0)) return std::numeric_limits<double>::min();
    if (turns > 2046.0) return std::numeric_limits<double>::infinity();
    return from_bits(static_cast<std::uint64_t>(static_cast<std::int64_t>(turns * 0x1p52))) * (1.0 + 1e-9);
}

// ln Gamma(x) for x >= 1: up to 10 by the recurrence x Gamma(x) = Gamma(x + 1), then Stirling's series, whose next term
// is at most 7e-16 from there on.
inline double ln_gamma(double x) {
    double below = 1.0;
    for (; x < 10.0; x += 1.0) below *= x;
    const double i = 1.0 / x, q = i * i;
    const double series =
        i * (1. / 12 - q * (1. / 360 - q * (1. / 1260 - q * (1. / 1680 - q * (1. / 1188 - q * (691. / 360360))))));
    return (x - 0.5) * ln(x) - x + 0.91893853320467274178 + series - ln(below);
}

}  // namespace banditree
