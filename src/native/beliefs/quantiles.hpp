// Quantiles of Beta beliefs, for tables. Twin of `quantiles` in banditree/beliefs/beta.py, which has the derivation.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace banditree {

// The quantiles of Beta(a, b) at two levels, from a sum over a grid of log odds.
class BetaEnds {
    static constexpr int points = 257;
    std::vector<double> z = std::vector<double>(points), mass = z;

    static double softplus(double x) { return x > 0.0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

    double at(double level) const {  // interpolated, as np.interp does
        const auto above = std::lower_bound(mass.begin(), mass.end(), level);
        if (above == mass.begin()) return z.front();
        if (above == mass.end()) return z.back();
        const std::size_t i = static_cast<std::size_t>(above - mass.begin());
        return z[i - 1] + (z[i] - z[i - 1]) * (level - mass[i - 1]) / (mass[i] - mass[i - 1]);
    }

  public:
    void of(double a, double b, double low, double high, double* ends) {
        const double centre = std::log(a) - std::log(b), width = 8.0 * std::sqrt(1.0 / a + 1.0 / b);
        double top = -INFINITY;
        for (int i = 0; i < points; ++i) {
            const double step = -1.0 + 2.0 * i / (points - 1);
            z[i] = centre + (width + 20.0 / (step < 0.0 ? a : b)) * step * std::fabs(step);
            mass[i] = -a * softplus(-z[i]) - b * softplus(z[i]);
            top = std::max(top, mass[i]);
        }
        double before = std::exp(mass[0] - top), sum = 0.0;
        mass[0] = 0.0;
        for (int i = 1; i < points; ++i) {
            const double here = std::exp(mass[i] - top);
            sum += (here + before) * (z[i] - z[i - 1]);
            before = here;
            mass[i] = sum;
        }
        for (double& each : mass) each /= sum;
        ends[0] = std::exp(-softplus(-at(low)));
        ends[1] = std::exp(-softplus(-at(high)));
    }
};

}  // namespace banditree
