// Thompson's choice among children with linear beliefs, with few exact square roots. The choice is that of exact draws, word
// for word; docs/exact-sampling.md has the reasons.
//
// The draws are mean + z sqrt(variance). Roots in single precision are cheap, and enough to tell the few draws that may be
// the highest; where more than one is left, those are made exactly. Rounding to single precision and the root there err by
// a part in 2^24 each at most, and |z| is below 12.7, so two draws err by less than 1e-5 times the greatest root together,
// and by the rounding of the draws themselves. The greatest root is not looked for: the prepared context has a bound of it.
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
    // The place of the highest of k draws; -1 where one is not a number.
    std::int32_t pick(LinearRows& rows, std::int32_t first, std::size_t k, const double* context, Stream& rng) {
        if (normals.size() < k) normals.resize(k), draws.resize(k);
        rows.moments(first, k, context);
        const double *mean = rows.means.data(), *variance = rows.variances.data();
        double *z = normals.data(), *__restrict draw = draws.data();
        for (std::size_t i = 0; i < k; ++i) z[i] = rng.standard_normal();
        const double greatest = context[rows.stride() - 1];
        const bool rough = greatest > 1e-30 && greatest < 1e30;  // elsewhere single precision may have no digits
        if (rough)
            for (std::size_t i = 0; i < k; ++i)
                draw[i] = mean[i] + z[i] * static_cast<double>(std::sqrt(static_cast<float>(variance[i])));
        else
            for (std::size_t i = 0; i < k; ++i) draw[i] = mean[i] + z[i] * std::sqrt(variance[i]);
        const double top = highest(draw, k);
        const double bar = rough ? top - 1e-5 * std::sqrt(greatest) - 1e-15 * std::fabs(top) : top;
        std::size_t n_left = 0, last = 0;
        for (std::size_t i = 0; i < k; ++i)
            if (!(draw[i] < bar)) ++n_left, last = i;  // NaN too
        if (n_left == 1 && !std::isnan(draw[last])) return static_cast<std::int32_t>(last);
        constexpr double lost = -std::numeric_limits<double>::infinity();
        for (std::size_t i = 0; i < k; ++i)
            draw[i] = draw[i] < bar ? lost : mean[i] + z[i] * std::sqrt(variance[i]);
        return highest_place(draw, k, rng);
    }
};

}  // namespace banditree
