// Quantiles of Beta beliefs, for tables. Twin of `quantiles` in banditree/beliefs/beta.py, which has the derivation.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "beliefs/densities.hpp"
#include "numerics/math.hpp"

namespace banditree {

// The quantiles of Beta(a, b) at two levels, from a sum over a grid of log odds.
class BetaEnds {
    static constexpr int points = 257;
    std::vector<double> from_centre = std::vector<double>(points), density = from_centre, mass = from_centre;
    BetaLogOdds posterior;

    // 1 / (1 + e^-x)
    static double chance(double x) { return x < 0.0 ? exp(x) / (1.0 + exp(x)) : 1.0 / (1.0 + exp(-x)); }

    double at(double level) const {  // interpolated, as np.interp does
        const auto above = std::lower_bound(mass.begin(), mass.end(), level);
        if (above == mass.begin()) return from_centre.front();
        if (above == mass.end()) return from_centre.back();
        const std::size_t i = static_cast<std::size_t>(above - mass.begin());
        const double step = from_centre[i] - from_centre[i - 1];
        return from_centre[i - 1] + step * (level - mass[i - 1]) / (mass[i] - mass[i - 1]);
    }

  public:
    void of(double successes, double failures, double low, double high, double* ends) {
        posterior.clear();
        posterior.add(successes, failures);
        const double a = posterior.a[0], b = posterior.b[0], centre = posterior.mode[0];
        const double width = 8.0 * std::sqrt(1.0 / a + 1.0 / b);
        const double left = width + 20.0 / a, right = width + 20.0 / b;
        double *const distances = from_centre.data(), *const densities = density.data();
        in_vectors([=, &one = std::as_const(posterior)]() BANDITREE_INLINE {
            BANDITREE_INDEPENDENT
            for (int i = 0; i < points; ++i) {
                const double step = -1.0 + i * (2.0 / (points - 1)), size = step < 0.0 ? -step : step;
                const double distance = (step < 0.0 ? left : right) * step * size;
                distances[i] = distance;
                densities[i] = exp_lane(-one.drop(0, centre + distance));
            }
        });
        double sum = 0.0;
        for (int i = 1; i < points; ++i) {
            sum += (density[i] + density[i - 1]) * (from_centre[i] - from_centre[i - 1]);
            mass[i] = sum;
        }
        for (double& each : mass) each /= sum;
        const double shrink = std::sqrt(BetaLogOdds::fewer(successes, failures));
        ends[0] = chance(centre + at(low) * shrink);
        ends[1] = chance(centre + at(high) * shrink);
    }
};

}  // namespace banditree
