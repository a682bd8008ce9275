// Computes the exact probability that each child has the highest draw, by numerical integration. Child i has the
// highest draw with probability P_i = integral of f_i times the product of the other F_j. docs/exact-probabilities.md
// derives the panels. Twin of banditree/beliefs/winning.py.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "beliefs/densities.hpp"
#include "numerics/lanes.hpp"
#include "numerics/sums.hpp"
#include "numerics/vectors.hpp"

namespace banditree {

constexpr int panel_nodes = 16;
using Nodes = std::array<double, panel_nodes>;

// Gauss-Legendre on [-1, 1], and the matrix from f at the nodes to its integrals from each node to 1.
struct PanelRule {
    Nodes node, weight;
    std::array<Nodes, panel_nodes> above;  // [of f here][from there to 1]

    PanelRule() {
        constexpr double half[] = {0.09501250983763744, 0.2816035507792589, 0.45801677765722737, 0.6178762444026438,
                                   0.755404408355003,   0.8656312023878318, 0.9445750230732326,  0.9894009349916499};
        constexpr int m = panel_nodes;
        std::array<std::array<double, m + 1>, m> legendre;  // [node][degree]
        for (int i = 0; i < m; ++i) {
            const double x = node[i] = i < m / 2 ? -half[m / 2 - 1 - i] : half[i - m / 2];
            auto& P = legendre[i];
            P[0] = 1.0;
            P[1] = x;
            for (int n = 1; n < m; ++n) P[n + 1] = ((2 * n + 1) * x * P[n] - n * P[n - 1]) / (n + 1);
            const double slope = m * P[m - 1] / (1.0 - x * x);  // of P_m, which is 0 here
            weight[i] = 2.0 / ((1.0 - x * x) * slope * slope);
        }
        for (int k = 0; k < m; ++k)
            for (int i = 0; i < m; ++i) {
                double sum = 0.5 * (1.0 - node[i]);
                for (int n = 1; n < m; ++n) sum += 0.5 * legendre[k][n] * (legendre[i][n - 1] - legendre[i][n + 1]);
                above[k][i] = weight[k] * sum;
            }
    }
};
inline const PanelRule panel_rule;

// The sum of x[i] y[i], as four independent sums.
BANDITREE_INLINE inline double dot(const Nodes& x, const Nodes& y) {
    double sum[4] = {};
    for (int i = 0; i < panel_nodes; i += 4)
        for (int j = 0; j < 4; ++j) sum[j] += x[i + j] * y[i + j];
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

template <class Densities>
class Winning {
  public:
    std::vector<double> won;  // (classes,) probability that one given member of a class has the highest draw
    double rest = 0.0;        // probability that all draws are below `floor`

    // `sizes`: number of children in each class.
    Winning(Densities densities, const std::vector<double>& sizes,
            double floor = -std::numeric_limits<double>::infinity())
        : each(std::move(densities)) {
        const std::size_t n_classes = sizes.size();
        won.assign(n_classes, 0.0);
        if (n_classes == 1 && floor == -std::numeric_limits<double>::infinity()) {
            won[0] = 1.0 / sizes[0];
            return;
        }
        k = n_classes;
        std::vector<std::size_t> order(k);
        std::vector<double> tops(k);
        for (std::size_t i = 0; i < k; ++i)
            order[i] = i, tops[i] = each.top(i, never + ln(sizes[i] * static_cast<double>(k)));
        std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) { return tops[i] > tops[j]; });
        each.arrange(order);
        top = taken(tops, order);
        size = taken(sizes, order);
        for (std::size_t i = 0; i < k; ++i) rate.push_back(std::fabs(each.slope(i, Place(top[i]))));
        above.assign(k, 0.0);
        for (auto* values : {&so_far, &share, &peak, &slope}) values->resize(k);
        hazard.resize(k);
        std::vector<double> sum(k, 0.0);
        march(floor, sum);
        double total = rest;
        for (std::size_t i = 0; i < k; ++i) total += size[i] * sum[i];
        rest /= total;
        for (std::size_t i = 0; i < k; ++i) won[order[i]] = sum[i] / total;
    }

  private:
    using Place = typename Densities::Place;

    static constexpr double never = 42.0;     // e^-42 is the chance that the highest draw lies beyond the panels
    static constexpr double steepest = 12.0;  // how far ln f may fall within a panel
    static constexpr double small = 1e-3;     // below this, F is integrated from the left, to keep its digits
    static constexpr double agree = 1e-10;  // a panel whose integral differs from the product's rise by more is halved
    static constexpr double rounding =
        1e-6;  // if halving does not remove a difference below this, length is not its cause
    static constexpr double too_narrow = 1e-14;  // relative length of a panel that cannot be halved

    Densities each;  // in the order of their tops, the highest first, like all that follows
    std::size_t k = 0;
    std::vector<double> size, top, rate;  // number of children, where they begin, how steep ln f is there
    std::vector<double> above, so_far;    // P(one draw is above the panels to come), without and with the current panel
    std::vector<double> share;            // won in the current panel
    std::vector<double> peak, slope;      // ln f and its slope at the centre
    std::vector<Nodes> hazard;            // f / F at its nodes
    std::size_t started = 0;              // number of classes whose top is above its left end

    std::size_t tops_above(double t) const {
        return static_cast<std::size_t>(std::lower_bound(top.begin(), top.end(), t, std::greater<double>()) -
                                        top.begin());
    }

    void march(double floor, std::vector<double>& sum) {
        double right = top[0], log_below = 0.0;
        while (right > floor && log_below > -never) {
            double left = right, log_left = 0.0, before = std::numeric_limits<double>::infinity();
            in_vectors([&]() BANDITREE_INLINE { left = std::max(start_of_panel(right), floor); });
            for (;; left = 0.5 * (left + right)) {
                started = tops_above(left);
                in_vectors([&]() BANDITREE_INLINE { log_left = panel(left, right); });
                double error = exp(log_left) - exp(log_below);
                for (std::size_t i = 0; i < started; ++i) error += size[i] * share[i];
                error = std::fabs(error);
                if (error < agree || (before / 2.0 < error && error < rounding)) break;
                if (right - left < too_narrow * std::fabs(right)) break;
                before = error;
            }
            for (std::size_t i = 0; i < started; ++i) {
                sum[i] += share[i];
                above[i] = so_far[i];
            }
            right = left;
            log_below = log_left;
        }
        rest = right <= floor ? exp(log_below) : 0.0;
    }

    // How long a panel with this slope and curvature of ln f may be for f to be almost a polynomial.
    BANDITREE_INLINE static double step_for(double slope, double curvature) {
        return 2.0 * steepest / (std::fabs(slope) + std::sqrt(slope * slope + 4.0 * steepest * curvature));
    }

    // Whether f is too steep at the end of a panel of this length.
    BANDITREE_INLINE bool too_long(double step, std::size_t i, const Place& left) const {
        return step * (std::fabs(each.slope(i, left)) + step * each.curvature(i, left)) > 2.0 * steepest;
    }

    BANDITREE_INLINE double start_of_panel(double right) const {
        const Place end(right);
        const std::size_t before = tops_above(std::nextafter(right, -std::numeric_limits<double>::infinity()));
        double step = Densities::longest(right);
        for (std::size_t i = 0; i < before; ++i)
            step = std::min(step, step_for(each.slope(i, end), each.curvature(i, end)));
        double left = right - step;
        while (right - left > too_narrow * std::fabs(right)) {
            const Place start(left);
            const std::size_t n = tops_above(left);
            std::size_t old = 0, fresh = before;
            while (old < before && !too_long(right - left, old, start)) ++old;
            while (fresh < n && !too_long(right - left, fresh, start) &&
                   rate[fresh] * (top[fresh] - left) <= 2.0 * steepest)
                ++fresh;
            if (old == before && fresh == n) break;
            if (old < before) left = 0.5 * (left + right);
            if (fresh < n)
                left = std::max(left, top[fresh]);  // a class begins inside the panel: let the panel start there
        }
        return left;
    }

    // Fills share, so_far and hazard of the classes that have started; returns ln P(all draws are below left).
    BANDITREE_INLINE double panel(double left, double right) {
        const PanelRule& rule = panel_rule;
        const double centre = 0.5 * (left + right), half = 0.5 * (right - left);
        const Place middle(centre);
        Nodes away, bend, log_below{}, product;
        for (int i = 0; i < panel_nodes; ++i) away[i] = half * rule.node[i];
        for (int i = 0; i < panel_nodes; ++i) bend[i] = Densities::bend(centre, away[i]);
        for (std::size_t c = 0; c < started; ++c) peak[c] = each.log_density(c, centre);
        for (std::size_t c = 0; c < started; ++c) slope[c] = each.slope(c, middle);
        product.fill(1.0);
        double log_left = 0.0, left_product = 1.0;
        int factors = 0;
        for (std::size_t c = 0; c < started; ++c) {
            Nodes f, higher, below;
            const double at_centre = peak[c], along = slope[c], weight = each.weight[c];
            for (int i = 0; i < panel_nodes; ++i)
                f[i] = half * exp_lane(at_centre + along * away[i] - weight * bend[i]);
            const double mass = dot(rule.weight, f);
            weighted_sum(f.data(), rule.above[0].data(), panel_nodes, panel_nodes, higher.data(), panel_nodes);
            so_far[c] = above[c] + mass;
            double below_left = 1.0 - so_far[c];
            if (below_left < small) {
                below_left = tail(c, left);
                for (int i = 0; i < panel_nodes; ++i) {
                    below[i] = below_left + std::max(mass - higher[i], 0.0);
                    higher[i] = 1.0 - below[i];
                }
            } else {
                const double before = above[c];
                for (int i = 0; i < panel_nodes; ++i) {
                    higher[i] += before;
                    below[i] = 1.0 - higher[i];
                }
            }
            for (int i = 0; i < panel_nodes; ++i) f[i] /= below[i] > 1e-300 ? below[i] : 1e-300;
            hazard[c] = f;
            if (size[c] == 1.0) {
                for (int i = 0; i < panel_nodes; ++i) product[i] *= below[i];
                left_product *= below_left;
                if (++factors == 8) {
                    for (int i = 0; i < panel_nodes; ++i) log_below[i] += ln_lane(product[i]);
                    log_left += ln(left_product);
                    product.fill(1.0);
                    left_product = 1.0;
                    factors = 0;
                }
            } else {  // a large class: ln(1 - higher) with the digits that 1 - higher loses
                const double n = size[c];
                for (int i = 0; i < panel_nodes; ++i)
                    log_below[i] += n * (ln_lane(below[i]) + ((1.0 - below[i]) - higher[i]) / below[i]);
                log_left += n * ln(below_left);
            }
        }
        for (int i = 0; i < panel_nodes; ++i)
            product[i] = rule.weight[i] * exp_lane(log_below[i] + ln_lane(product[i]));
        for (std::size_t c = 0; c < started; ++c) share[c] = dot(hazard[c], product);
        return log_left + ln(left_product);
    }

    // P(a draw is below right), for small probabilities.
    BANDITREE_INLINE double tail(std::size_t c, double right) const {
        const PanelRule& rule = panel_rule;
        for (double found = 0.0;;) {
            const Place end(right);
            double step = std::min(step_for(each.slope(c, end), each.curvature(c, end)), Densities::longest(right));
            while (too_long(step, c, Place(right - step))) step /= 2.0;
            const double half = 0.5 * step;
            Nodes f;
            for (int i = 0; i < panel_nodes; ++i)
                f[i] = exp_lane(each.log_density(c, right + half * (rule.node[i] - 1.0)));
            found += half * dot(rule.weight, f);
            right -= step;
            // The rest is at most the area under the tangent of ln f, and hardly less.
            const double slope_here = each.slope(c, Place(right));
            if (!(slope_here > 0.0)) continue;
            const double rest = exp(each.log_density(c, right)) / slope_here;
            if (!(rest > 1e-9 * found)) return found + rest;
        }
    }
};

}  // namespace banditree
