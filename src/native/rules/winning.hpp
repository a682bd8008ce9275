// Who wins when each child draws once: exact probabilities, by integration where the beliefs are. Child i has the highest
// draw with probability P_i = integral of f_i times the product of the other F_j. docs/exact-probabilities.md derives the
// panels. Twin of banditree/rules/winning.py.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "../lanes.hpp"
#include "../vectors.hpp"
#include "densities.hpp"

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

template <class Density>
class Winning {
  public:
    // `each` and `size`, how many children are alike: one per class. `won` is what one member of a class wins; `rest` is how
    // likely all draws are below `floor`.
    std::vector<double> won;
    double rest = 0.0;

    Winning(const std::vector<Density>& densities, const std::vector<double>& sizes,
            double floor = -std::numeric_limits<double>::infinity()) {
        const std::size_t k = densities.size();
        won.assign(k, 0.0);
        if (k == 1 && floor == -std::numeric_limits<double>::infinity()) {
            won[0] = 1.0 / sizes[0];
            return;
        }
        std::vector<double> tops(k);
        for (std::size_t i = 0; i < k; ++i) tops[i] = densities[i].top(negligible + ln(sizes[i] * static_cast<double>(k)));
        std::vector<std::size_t> order(k);
        for (std::size_t i = 0; i < k; ++i) order[i] = i;
        std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) { return tops[i] > tops[j]; });
        each.reserve(k);
        for (const std::size_t i : order) {
            each.push_back(densities[i]);
            size.push_back(sizes[i]);
            top.push_back(tops[i]);
        }
        above.assign(k, 0.0);
        so_far.resize(k);
        share.resize(k);
        hazard.resize(k);
        std::vector<double> sum(k, 0.0);
        march(floor, sum);
        double total = rest;
        for (std::size_t i = 0; i < k; ++i) total += size[i] * sum[i];
        rest /= total;
        for (std::size_t i = 0; i < k; ++i) won[order[i]] = sum[i] / total;
    }

  private:
    static constexpr double negligible = 42.0;  // e^-42 is the chance that the highest draw lies beyond the panels
    static constexpr double steepest = 6.0;     // how far ln f may fall within a panel
    static constexpr double small = 1e-3;       // below, F is the integral from the left: it keeps its digits
    static constexpr double agree = 1e-10;      // a panel whose integral differs from the product's rise by more is halved
    static constexpr double too_narrow = 1e-14; // of the place of a panel: it cannot be halved

    std::vector<Density> each;          // in the order of their tops, the highest first
    std::vector<double> size, top;
    std::vector<double> above, so_far;  // P(one draw is above the panels to come), and with the panel in hand
    std::vector<double> share;          // won in the panel in hand
    std::vector<Nodes> hazard;          // f / F at its nodes
    std::size_t started = 0;            // classes with a top at or above the panel's left end

    void march(double floor, std::vector<double>& sum) {
        double right = top[0], log_below = 0.0;
        while (right > floor && log_below > -negligible) {
            double left = std::max(start_of_panel(right), floor), log_left, error;
            for (;; left = 0.5 * (left + right)) {
                started = static_cast<std::size_t>(
                    std::lower_bound(top.begin(), top.end(), left, [](double x, double y) { return x > y; }) - top.begin());
                in_vectors([&]() BANDITREE_INLINE { log_left = panel(left, right); });
                error = exp(log_left) - exp(log_below);
                for (std::size_t i = 0; i < started; ++i) error += size[i] * share[i];
                if (std::fabs(error) < agree || right - left < too_narrow * std::fabs(right)) break;
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

    // How long a panel may be that starts with this slope and curvature, so that f is almost a polynomial there.
    BANDITREE_INLINE static double step_for(double slope, double curvature) {
        return 2.0 * steepest / (std::fabs(slope) + std::sqrt(slope * slope + 4.0 * steepest * curvature));
    }

    double start_of_panel(double right) const {
        const typename Density::Place end(right);
        double step = Density::longest(right);
        for (std::size_t i = 0; i < each.size() && top[i] >= right; ++i)
            step = std::min(step, step_for(each[i].slope(end), each[i].curvature(end)));
        for (;;) {
            const double left = right - step;
            const typename Density::Place start(left);
            bool steep = false, old = false;
            double fresh = -std::numeric_limits<double>::infinity();  // the highest top inside: the panel ends there
            for (std::size_t i = 0; i < each.size() && top[i] > left; ++i)
                if (std::fabs(each[i].slope(start)) * step > 2.0 * steepest) {
                    steep = true;
                    if (top[i] < right)
                        fresh = std::max(fresh, top[i]);
                    else
                        old = true;
                }
            if (!steep || step < too_narrow * std::fabs(right)) return left;
            step = std::min(right - fresh, old ? step / 2.0 : step);
        }
    }

    // Fills share, so_far and hazard of the classes that have started; returns ln P(all draws are below left).
    BANDITREE_INLINE double panel(double left, double right) {
        const PanelRule& rule = panel_rule;
        const double centre = 0.5 * (left + right), half = 0.5 * (right - left);
        const typename Density::Place middle(centre);
        Nodes away, bend, log_below{}, product;
        for (int i = 0; i < panel_nodes; ++i) {
            away[i] = half * rule.node[i];
            bend[i] = Density::bend(centre, away[i]);
        }
        product.fill(1.0);
        double log_left = 0.0, left_product = 1.0;
        int factors = 0;
        for (std::size_t c = 0; c < started; ++c) {
            const Density& density = each[c];
            const double peak = density.log_density(centre), slope = density.slope(middle), weight = density.weight;
            Nodes f, higher{}, below;
            for (int i = 0; i < panel_nodes; ++i) f[i] = half * exp_lane(peak + slope * away[i] - weight * bend[i]);
            double mass = 0.0;
            for (int k = 0; k < panel_nodes; ++k) {
                mass += rule.weight[k] * f[k];
                for (int i = 0; i < panel_nodes; ++i) higher[i] += f[k] * rule.above[k][i];
            }
            so_far[c] = above[c] + mass;
            double below_left = 1.0 - so_far[c];
            if (below_left < small) {
                below_left = tail(density, left);
                for (int i = 0; i < panel_nodes; ++i) {
                    below[i] = below_left + (mass - higher[i]);
                    higher[i] = 1.0 - below[i];
                }
            } else {
                for (int i = 0; i < panel_nodes; ++i) {
                    higher[i] += above[c];
                    below[i] = 1.0 - higher[i];
                }
            }
            for (int i = 0; i < panel_nodes; ++i) hazard[c][i] = f[i] / below[i];
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
            } else {  // many alike: ln(1 - higher) with the digits that 1 - higher loses
                for (int i = 0; i < panel_nodes; ++i)
                    log_below[i] += size[c] * (ln_lane(below[i]) + ((1.0 - below[i]) - higher[i]) / below[i]);
                log_left += size[c] * ln(below_left);
            }
        }
        for (int i = 0; i < panel_nodes; ++i) product[i] = rule.weight[i] * exp_lane(log_below[i] + ln_lane(product[i]));
        for (std::size_t c = 0; c < started; ++c) {
            double sum = 0.0;
            for (int i = 0; i < panel_nodes; ++i) sum += hazard[c][i] * product[i];
            share[c] = sum;
        }
        return log_left + ln(left_product);
    }

    // P(a draw is below left), where that is small.
    static double tail(const Density& density, double right) {
        const PanelRule& rule = panel_rule;
        for (double found = 0.0;;) {
            const typename Density::Place end(right);
            const double half = 0.5 * std::min(step_for(density.slope(end), density.curvature(end)), Density::longest(right));
            for (int i = 0; i < panel_nodes; ++i)
                found += half * rule.weight[i] * exp(density.log_density(right + half * (rule.node[i] - 1.0)));
            right -= 2.0 * half;
            // What is left is at most the area under the tangent of ln f, and hardly less.
            const double rest = exp(density.log_density(right)) / density.slope(typename Density::Place(right));
            if (!(rest > 1e-9 * found)) return found + rest;
        }
    }
};

}  // namespace banditree
