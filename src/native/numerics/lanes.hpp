// ln and exp without branches, for loops that compilers vectorise. Accurate to two units in the last place.
#pragma once

#include "numerics/math.hpp"
#include "numerics/vectors.hpp"

namespace banditree {

// e^x and e^x - 1 for x <= 700 (below -700 as at -700), both to full precision: with x = k ln 2 + r they are 2^k + 2^k
// (e^r - 1) and (2^k - 1) + 2^k (e^r - 1).
struct Powers {
    double exp, exp_minus_one;
};
BANDITREE_INLINE inline Powers powers_lane(double x) {
    constexpr double round = 0x1.8p52;
    x = x < -700.0 ? -700.0 : x;
    const double turns = x * 1.4426950408889634 + round, steps = turns - round;
    const double r = (x - steps * ln2_high) - steps * ln2_low, q = r * r;
    const double even =
        1. / 2 + q * (1. / 24 + q * (1. / 720 + q * (1. / 40320 + q * (1. / 3628800 + q * (1. / 479001600)))));
    const double odd = 1. / 6 + q * (1. / 120 + q * (1. / 5040 + q * (1. / 362880 + q * (1. / 39916800))));
    const double two_to_k = from_bits((to_bits(turns) << 52) + 0x3ff0000000000000);
    const double rise = two_to_k * (r + q * (even + r * odd));
    return {two_to_k + rise, (two_to_k - 1.0) + rise};
}

BANDITREE_INLINE inline double exp_lane(double x) { return powers_lane(x).exp; }

// ln x for normal x > 0, like `ln`; for anything else, some number.
BANDITREE_INLINE inline double ln_lane(double x) {
    constexpr std::uint64_t one = 0x3ff0000000000000, root_half = 0x3fe6a09e667f3bcd, two_to_52 = 0x4330000000000000;
    const std::uint64_t shifted = to_bits(x) + (one - root_half);
    const double exponent = from_bits((shifted >> 52) | two_to_52) - (0x1p52 + 1023.0);
    const double f = from_bits((shifted & 0x000fffffffffffff) + root_half) - 1.0;
    const double s = f / (2.0 + f), q = s * s, q2 = q * q;
    const double even = 2. / 3 + q2 * (2. / 7 + q2 * (2. / 11 + q2 * (2. / 15 + q2 * (2. / 19 + q2 * (2. / 23)))));
    const double odd = 2. / 5 + q2 * (2. / 9 + q2 * (2. / 13 + q2 * (2. / 17 + q2 * (2. / 21))));
    return exponent * ln2_high + (f - (s * (f - q * (even + q * odd)) - exponent * ln2_low));
}

// ln(1 + x) for x > -1, with the digits that 1 + x loses.
BANDITREE_INLINE inline double ln_one_plus(double x) {
    const double y = 1.0 + x;
    return ln_lane(y) - ((y - 1.0) - x) / y;
}

// 1 over the cube root of x >= 1e-300: a third of the exponent, to 4%, and two steps of the series in 1 - x r^3.
// Without divisions, which take long in vectors.
BANDITREE_INLINE inline double inverse_cbrt_lane(double x) {
    constexpr std::uint64_t two_to_52 = 0x4330000000000000;
    const double upper_half = from_bits((to_bits(x) >> 32) | two_to_52) - 0x1p52;
    const double root = from_bits(to_bits(upper_half * (-1. / 3) + (0x1p52 + 1430180000.0)) << 32);
    const auto nearer = [x](double r) BANDITREE_INLINE {
        const double rest = 1.0 - x * r * r * r;
        return r + r * rest * (1. / 3 + rest * (2. / 9 + rest * (14. / 81)));
    };
    return nearer(nearer(root));
}

}  // namespace banditree
