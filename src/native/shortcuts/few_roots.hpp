// Thompson's choice among children with linear beliefs, with few exact square roots. The choice is always the same as
// with exact draws; docs/exact-sampling.md explains why.
//
// The draws are mean + z sqrt(variance). Roots in single precision are cheap, and enough to find the few draws that may
// be the highest; if more than one remains, those are computed exactly. Rounding to single precision and the root each
// have a relative error of at most 2^-24, and |z| is below 12.7, so two draws together err by less than 1e-5 times the
// greatest root, and by the rounding of the draws themselves. The prepared context has an upper bound of the greatest
// root.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "beliefs/linear.hpp"
#include "numerics/sums.hpp"
#include "stream.hpp"

namespace banditree {

class FewRoots {
    std::vector<double> normals, draws;  // scratch: (k,)

  public:
    // The position of the highest of k draws; -1 if one is not a number.
    std::int32_t pick(LinearRows& rows, std::int32_t first, std::size_t k, const double* context, Stream& rng) {
        if (normals.size() < k) normals.resize(k), draws.resize(k);
        rows.moments(first, k, context);
        const double *mean = rows.means.data(), *variance = rows.variances.data();
        double *z = normals.data(), *__restrict draw = draws.data();
        for (std::size_t i = 0; i < k; ++i) z[i] = rng.standard_normal();
        const double greatest = context[rows.stride() - 1];
        const bool rough =
            greatest > 1e-30 && greatest < 1e30;  // outside this range single precision may underflow or overflow
        if (rough)
            for (std::size_t i = 0; i < k; ++i)
                draw[i] = mean[i] + z[i] * static_cast<double>(std::sqrt(static_cast<float>(variance[i])));
        else
            for (std::size_t i = 0; i < k; ++i) draw[i] = mean[i] + z[i] * std::sqrt(variance[i]);
        const double top = highest(draw, k);
        const double bar = rough ? top - 1e-5 * std::sqrt(greatest) - 1e-15 * std::fabs(top) : top;
        std::size_t n_left = 0, last = 0;
        for (std::size_t i = 0; i < k; ++i)
            if (!(draw[i] < bar)) ++n_left, last = i;  // true for NaN too
        if (n_left == 1 && !std::isnan(draw[last])) return static_cast<std::int32_t>(last);
        constexpr double lost = -std::numeric_limits<double>::infinity();
        for (std::size_t i = 0; i < k; ++i) draw[i] = draw[i] < bar ? lost : mean[i] + z[i] * std::sqrt(variance[i]);
        return highest_place(draw, k, rng);
    }
};

}  // namespace banditree
