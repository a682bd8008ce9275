// The normal distribution, without branches, for loops that compilers vectorise.
#pragma once

#include "numerics/lanes.hpp"

namespace banditree {

// e^x for x <= 0 (below -700 as at -700), to 11 digits.
BANDITREE_INLINE inline double bell_lane(double x) {
    constexpr double round = 0x1.8p52;
    x = x < -700.0 ? -700.0 : x;
    const double turns = x * 1.4426950408889634 + round, steps = turns - round;
    const double r = (x - steps * ln2_high) - steps * ln2_low, q = r * r, q2 = q * q;
    const double first = (1.0 + r) + q * (1. / 2 + r * (1. / 6)),
                 next = (1. / 24 + r * (1. / 120)) + q * (1. / 720 + r * (1. / 5040));
    const double two_to_k = from_bits((to_bits(turns) << 52) + 0x3ff0000000000000);
    return two_to_k * (first + q2 * (next + q2 * (1. / 40320 + r * (1. / 362880))));
}

// P(Z > z) and the density, for z >= 0. The tail is e^(-z^2 / 2) times a function that is a polynomial of 1 / (z
// + 4.4), fitted at Chebyshev's nodes for z up to 9: to 11 digits there, and to 3 beyond.
struct NormalTail {
    double above, density;
};
BANDITREE_INLINE inline NormalTail normal_lane(double z) {
    constexpr double c[] = {0.15500843725507657,     -0.1811854878707453,    0.10287567265287303,
                            -0.04416657258576955,    0.01382220698446341,    -0.0028082045876282173,
                            0.00020765586068733805,  6.0906665119211195e-05, -1.5294325061357564e-05,
                            -1.2865039609760668e-06, 7.484979671897012e-07,  3.93190908494841e-08,
                            -3.249096276163671e-08};
    const double u = 1.9777777777777779 - 13.102222222222224 / (z + 4.4), u2 = u * u, u4 = u2 * u2;
    const auto pair = [&](int i) BANDITREE_INLINE { return c[i] + c[i + 1] * u; };
    const auto four = [&](int i) BANDITREE_INLINE { return pair(i) + pair(i + 2) * u2; };
    const double bell = bell_lane(-0.5 * z * z);
    return {bell * (four(0) + u4 * (four(4) + u4 * (four(8) + u4 * c[12]))), 0.39894228040143267794 * bell};
}

BANDITREE_INLINE inline double normal_tail_lane(double z) { return normal_lane(z).above; }

}  // namespace banditree
