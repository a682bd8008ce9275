// The upper tail of the normal distribution, without branches, for loops that compilers vectorise.
#pragma once

#include <cmath>

#include "numerics/lanes.hpp"

namespace banditree {

// P(Z > z) for z >= 0, to 11 digits: t e^(p(2t - 1) - z^2 / 2) / 2 with t = 2 / (2 + z / sqrt 2) and p a polynomial, fitted
// at Chebyshev's nodes.
BANDITREE_INLINE inline double normal_tail_lane(double z) {
    constexpr double coefficients[] = {-0.67179408405669139, 0.6726432239714607, 0.047343307107376262, -0.046895610029569074,
                                        -0.0098727021511831412, 0.0088249390357935352, 0.0017591138752865443, -0.0023458527826265992,
                                        -0.00014739441955736437, 0.00067402531625769633, -8.9836747703780752e-05, -0.00017567183984073926,
                                        6.3818732820641061e-05, 3.4747899700435034e-05, -2.1670823485162328e-05, -3.7398328308632054e-06,
                                        3.3867539697507919e-06};
    const double t = 2.0 / (2.0 + 0.70710678118654752440 * z), y = 2.0 * t - 1.0;
    const double y2 = y * y, y4 = y2 * y2;
    const auto pair = [&](int i) BANDITREE_INLINE { return coefficients[i] + coefficients[i + 1] * y; };
    const auto four = [&](int i) BANDITREE_INLINE { return pair(i) + pair(i + 2) * y2; };
    const double p = four(0) + y4 * (four(4) + y4 * (four(8) + y4 * (four(12) + y4 * coefficients[16])));
    return 0.5 * t * exp_lane(p - 0.5 * z * z);
}

}  // namespace banditree
