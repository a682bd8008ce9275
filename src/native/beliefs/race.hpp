// The probability that an arm has the highest draw, if each draws from one of two normals. The nodes of a table hold the sum of
// the logarithms of all distribution functions: the chance of one arm is then one integral, and an arm that may not be chosen
// is subtracted. docs/exact-probabilities.md derives the nodes.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "beliefs/densities.hpp"
#include "numerics/lanes.hpp"
#include "numerics/normal.hpp"
#include "numerics/vectors.hpp"

namespace banditree {

// What classes of arms draw from: a normal of the first half, or with the share that it has there one of the second half.
struct Draws {
    std::vector<double> mean, sd, share;  // (2 classes,)

    void resize(std::size_t classes) {
        for (auto* values : {&mean, &sd, &share}) values->resize(2 * classes);
    }
    std::size_t classes() const { return mean.size() / 2; }
};

// Arms that are equal in all of this draw from the same distribution.
struct Alike {
    std::int32_t node;  // the arm, or its cluster
    double plays, total;
    bool operator==(const Alike& other) const { return node == other.node && plays == other.plays && total == other.total; }
};

class Race {
  public:
    // `sizes`: number of arms in each class. Probabilities differ from the true ones by about `tolerance`.
    Race(const Draws& draws, const std::vector<double>& sizes, double tolerance_)
        : tolerance(tolerance_), n(sizes.size()), size(sizes), share(draws.share) {
        for (auto* values : {&mean, &per_sd, &length, &top, &bottom}) values->resize(2 * n);
        begins.resize(n);
        in_vectors([&]() BANDITREE_INLINE { lay_out(draws); });
        edge = *std::max_element(begins.begin(), begins.end());
    }

    // The probability of an arm of this class, if one arm less of each class in `excluded` may be chosen.
    double win(std::size_t of, const std::vector<std::size_t>& excluded) {
        double won = 0.0;
        integrate(excluded, [&](const Panel& panel, const Points& measure) BANDITREE_INLINE { won += share_of(of, panel, measure); });
        return won / total;
    }

    // Adds the same for all classes, times a factor, to `out`: (classes,).
    void add_wins(const std::vector<std::size_t>& excluded, double factor, std::vector<double>& out) {
        std::vector<double> won(n, 0.0);
        integrate(excluded, [&](const Panel& panel, const Points& measure) BANDITREE_INLINE {
            for (std::size_t c = 0; c < n; ++c) won[c] += share_of(c, panel, measure);
        });
        for (std::size_t c = 0; c < n; ++c) out[c] += factor * (won[c] / total);
    }

  private:
    static constexpr std::size_t n_nodes = 16;
    using Points = std::array<double, n_nodes>;
    static constexpr double infinity = std::numeric_limits<double>::infinity();
    static constexpr double longest = 6.0;      // panel, in standard deviations of the narrowest normal in it
    static constexpr double crowded = 0.15;     // how much shorter it is for each e-fold of arms that are alike
    static constexpr double beyond = 0.1;       // part of the tolerance that draws above a class's beginning may have
    static constexpr double lowest = 7.0;       // standard deviations below its mean, where a normal ends
    static constexpr double least = 1e-35;      // of a distribution function; the product of eight is a normal double
    static constexpr double order = 24.0;       // how the error of a panel depends on its length
    static constexpr double stretched = 4.0;    // panels as long as the first one that fit into a stretch
    static constexpr double wide = 2.0;         // times as long as a stretch a panel may be for classes that are wide there
    static constexpr double unsure = 1e-7;      // the probabilities of all arms may differ from 1 by this much

    struct Panel {
        Points at, step, log_below, hazard;  // from left to right: weights, sum of ln F, sum of f / F
    };

    double tolerance;
    std::size_t n;                                          // classes
    std::vector<double> size, begins;                       // (n,) arms, and a value that they never exceed
    std::vector<double> share, mean, per_sd, length, top, bottom;  // (2 n,) of the normals
    std::vector<Panel> panels;                              // from the highest values down
    Panel stretch;                                          // sums of classes that are wide there
    std::vector<std::size_t> narrow;                        // the other classes
    double edge = 0.0, next_length = infinity, total = 1.0;  // where the panels end; the sum of all probabilities

    // The highest value of all normals, several at a time.
    template <class Value>
    BANDITREE_INLINE double highest(const Value& value) const {
        double most[4] = {-infinity, -infinity, -infinity, -infinity};
        std::size_t i = 0;
        for (; i + 4 <= 2 * n; i += 4)
            for (std::size_t j = 0; j < 4; ++j) {
                const double x = value(i + j);
                most[j] = x > most[j] ? x : most[j];
            }
        for (; i < 2 * n; ++i) most[0] = std::max(most[0], value(i));
        return std::max(std::max(most[0], most[1]), std::max(most[2], most[3]));
    }

    // Shifts and scales all normals, so that nothing overflows; see `normal_mixed_wins`.
    BANDITREE_INLINE void lay_out(const Draws& draws) {
        const double highest_mean = highest([&](std::size_t i) BANDITREE_INLINE { return draws.mean[i]; });
        const double widest = highest([&](std::size_t i) BANDITREE_INLINE {
            const double least_sd = NormalDensities::narrowest * (highest_mean - draws.mean[i]);
            return draws.sd[i] > least_sd ? draws.sd[i] : least_sd;
        });
        const double floor = ln(tolerance * beyond);
        for (std::size_t half = 0; half < 2 * n; half += n)
            BANDITREE_INDEPENDENT
            for (std::size_t c = 0; c < n; ++c) {
                const std::size_t i = half + c;
                const double away = highest_mean - draws.mean[i];
                const double sd = std::max(std::max(draws.sd[i], NormalDensities::narrowest * away) / widest, NormalDensities::least);
                const double members = ln_lane(size[c]), often = members + ln_lane(share[i] + 1e-300) - floor;
                mean[i] = -away / widest;
                per_sd[i] = 1.0 / sd;
                length[i] = longest / (1.0 + crowded * members) * sd;
                top[i] = often > 0.0 ? mean[i] + std::sqrt(2.0 * often) * sd : -infinity;
                bottom[i] = mean[i] - lowest * sd;
            }
        for (std::size_t c = 0; c < n; ++c) begins[c] = std::max(top[c], top[c + n]);
    }

    BANDITREE_INLINE static double dot(const Points& x, const Points& y) {
        double sum[4] = {};
        for (std::size_t i = 0; i < n_nodes; i += 4)
            for (std::size_t j = 0; j < 4; ++j) sum[j] += x[i + j] * y[i + j];
        return (sum[0] + sum[2]) + (sum[1] + sum[3]);
    }

    // A normal at the nodes of a panel.
    struct Normal {
        double mean = 0.0, per_sd = 0.0;  // of none yet
        Points below, density;
    };

    // The distribution function and the density of a class. `stray` is the normal of an earlier class of arms that do not follow
    // their cluster: it is often that of this class too.
    BANDITREE_INLINE void column(std::size_t c, const Points& at, Normal& stray, Points& below, Points& density) const {
        if (is_amid(c, at)) {
            evaluate(c, at, share[c], below, density);
        } else {
            below.fill(at.front() >= top[c] ? share[c] : 0.0), density.fill(0.0);
        }
        const std::size_t other = c + n;
        const double s = share[other];
        if (is_amid(other, at)) {
            if (stray.mean != mean[other] || stray.per_sd != per_sd[other]) {
                stray.mean = mean[other], stray.per_sd = per_sd[other];
                evaluate(other, at, 1.0, stray.below, stray.density);
            }
            for (std::size_t i = 0; i < n_nodes; ++i) below[i] += s * stray.below[i], density[i] += s * stray.density[i];
        } else if (at.front() >= top[other]) {
            for (std::size_t i = 0; i < n_nodes; ++i) below[i] += s;
        }
        for (std::size_t i = 0; i < n_nodes; ++i) below[i] = below[i] > least ? below[i] : least;
    }
    BANDITREE_INLINE bool is_amid(std::size_t part, const Points& at) const { return at.front() < top[part] && at.back() > bottom[part]; }
    BANDITREE_INLINE void evaluate(std::size_t part, const Points& at, double times, Points& below, Points& density) const {
        const double m = mean[part], per = per_sd[part];
        for (std::size_t i = 0; i < n_nodes; ++i) {
            const double z = (at[i] - m) * per;
            const NormalTail tail = normal_lane(std::fabs(z));
            below[i] = times * ((0.5 + std::copysign(0.5, z)) - std::copysign(tail.above, z));
            density[i] = times * per * tail.density;
        }
    }

    // The integral of f / F of a class over a measure.
    BANDITREE_INLINE double share_of(std::size_t c, const Panel& panel, const Points& measure) const {
        if (begins[c] <= panel.at.front()) return 0.0;
        Normal stray;
        Points below, density;
        column(c, panel.at, stray, below, density);
        for (std::size_t i = 0; i < n_nodes; ++i) density[i] /= below[i];
        return dot(density, measure);
    }

    // The product of all F but the excluded ones, with the weights of the nodes, and the sum of their f / F.
    BANDITREE_INLINE void weigh(const Panel& panel, const std::vector<std::size_t>& excluded, Points& measure, Points& hazard) const {
        measure = panel.log_below, hazard = panel.hazard;
        for (const std::size_t c : excluded) {
            if (begins[c] <= panel.at.front()) continue;
            Normal stray;
            Points below, density;
            column(c, panel.at, stray, below, density);
            for (std::size_t i = 0; i < n_nodes; ++i) measure[i] -= ln_lane(below[i]), hazard[i] -= density[i] / below[i];
        }
        for (std::size_t i = 0; i < n_nodes; ++i) measure[i] = panel.step[i] * exp_lane(measure[i] < 0.0 ? measure[i] : 0.0);
    }

    // Calls visit(panel, measure) for all panels. They may have been made with other arms excluded: if they turn out to be too
    // few or too long for these, new ones are made.
    template <class Visit>
    void integrate(const std::vector<std::size_t>& excluded, const Visit& visit) {
        for (const bool again : {false, true}) {
            if (again) panels.clear(), edge = *std::max_element(begins.begin(), begins.end()), next_length = infinity;
            std::vector<Points> measures;
            total = 0.0;
            double below = 1.0;
            for (std::size_t i = 0; below > tolerance && (i < panels.size() || add_panel(excluded)); ++i) {
                measures.emplace_back();
                in_vectors([&]() BANDITREE_INLINE {
                    Points hazard;
                    weigh(panels[i], excluded, measures[i], hazard);
                    total += dot(measures[i], hazard);
                    below = measures[i].front() / panels[i].step.front();
                });
            }
            if (std::fabs(total - 1.0) > std::max(unsure, 100.0 * tolerance) && !again) continue;
            for (std::size_t i = 0; i < measures.size(); ++i)
                in_vectors([&]() BANDITREE_INLINE { visit(panels[i], measures[i]); });
            return;
        }
    }

    // Adds a panel below the others, as long as the product of all F but the excluded ones allows: its rise across the panel must
    // be the integral of its derivative. False if there is nothing below.
    bool add_panel(const std::vector<std::size_t>& excluded) {
        Panel panel;
        double left = -infinity;
        in_vectors([&]() BANDITREE_INLINE { left = start_of_panel(edge); });
        if (left == -infinity) return false;
        if (panels.empty()) stretch.at.fill(infinity);
        for (left = std::max({left, edge - next_length, edge - length_to_the_end()});;) {
            const double whole = stretched * (edge - left);
            if (left < stretch.at.front() || 2.0 * whole < stretch.at.back() - stretch.at.front()) begin_stretch(edge - whole);
            place(panel, left, edge);
            double error = 0.0;
            in_vectors([&]() BANDITREE_INLINE {
                interpolate(panel);
                add_classes(narrow, panel);
                Points measure, hazard;
                weigh(panel, excluded, measure, hazard);
                error = std::fabs(dot(measure, hazard) - (measure.back() - measure.front()) / panel.step.front());
            });
            const double longer = std::min(0.9 * exp(ln(tolerance / std::max(error, 1e-16)) / order), 2.0);
            next_length = std::max(longer, 0.25) * (edge - left);
            if (error < tolerance || edge - left < 1e-13 * std::fabs(edge)) break;
            left = edge - next_length;
        }
        edge = left;
        panels.push_back(panel);
        return true;
    }

    // Where a panel with this right end may start, so that every normal in it is almost a polynomial.
    BANDITREE_INLINE double start_of_panel(double right) const {
        return highest([&](std::size_t i) BANDITREE_INLINE {
            const double shortest = right - length[i], end = top[i] < shortest ? top[i] : shortest;
            return bottom[i] < right ? end : -infinity;
        });
    }

    // How far down the product of all F may become negligible, if it goes on as at the edge.
    double length_to_the_end() const {
        if (panels.empty()) return infinity;
        const double fallen = -panels.back().log_below.front(), end = 2.0 - ln(tolerance);
        if (fallen < 1e-3 || fallen > end - 2.0) return infinity;
        return 1.5 * fallen / panels.back().hazard.front() * ln(end / fallen);
    }

    // Lobatto's nodes, which have both ends among them.
    static void place(Panel& panel, double left, double right) {
        constexpr double node[] = {0.10132627352194959, 0.29983046890076326, 0.4860594218871385, 0.6523887028824933,
                                   0.7920082918618154,  0.8992005330934723,  0.9695680462702179, 1.0};
        constexpr double weight[] = {0.20195830817822985, 0.1936900238252035,  0.17749191339170423,  0.1540269808071642,
                                     0.12425538213251419, 0.08939369732593075, 0.050850361005919824, 1.0 / 120};
        const double centre = 0.5 * (left + right), half = 0.5 * (right - left);
        for (std::size_t i = 0; i < n_nodes / 2; ++i) {
            const std::size_t upper = n_nodes / 2 + i, lower = n_nodes / 2 - 1 - i;
            panel.at[upper] = centre + half * node[i], panel.at[lower] = centre - half * node[i];
            panel.step[upper] = panel.step[lower] = half * weight[i];
        }
        panel.at.front() = left, panel.at.back() = right;
    }

    // Sums the classes that are so wide that a panel's nodes are enough for a stretch of several panels, from the edge down.
    void begin_stretch(double left) {
        place(stretch, left, edge);
        stretch.log_below.fill(0.0), stretch.hazard.fill(0.0);
        const auto is_smooth = [&](std::size_t part) {
            return length[part] >= wide * (edge - left) || top[part] <= left || bottom[part] >= edge;
        };
        std::vector<std::size_t> smooth;
        narrow.clear();
        for (std::size_t c = 0; c < n; ++c)
            if (begins[c] > left) (is_smooth(c) && is_smooth(c + n) ? smooth : narrow).push_back(c);
        in_vectors([&]() BANDITREE_INLINE { add_classes(smooth, stretch); });
    }

    // The polynomial through the sums of the stretch, by the barycentric formula: at Lobatto's nodes its weights are the roots of
    // those of the integral, with alternating signs.
    BANDITREE_INLINE void interpolate(Panel& panel) const {
        Points weights;
        weights.fill(0.0), panel.log_below.fill(0.0), panel.hazard.fill(0.0);
        for (std::size_t j = 0; j < n_nodes; ++j) {
            const double root = std::sqrt(stretch.step[j]), signed_root = j % 2 ? -root : root;
            for (std::size_t i = 0; i < n_nodes; ++i) {
                const double away = panel.at[i] - stretch.at[j], weight = signed_root / (away != 0.0 ? away : 1e-200);
                weights[i] += weight;
                panel.log_below[i] += weight * stretch.log_below[j];
                panel.hazard[i] += weight * stretch.hazard[j];
            }
        }
        for (std::size_t i = 0; i < n_nodes; ++i) panel.log_below[i] /= weights[i], panel.hazard[i] /= weights[i];
    }

    // Adds ln F and f / F of classes; of those with one arm, by the product of eight F and its derivative.
    BANDITREE_INLINE void add_classes(const std::vector<std::size_t>& classes, Panel& panel) const {
        Normal stray;
        Points product, rise, below, density;
        product.fill(1.0), rise.fill(0.0);
        int factors = 0;
        const auto add = [&](double times, const Points& f, const Points& F) BANDITREE_INLINE {
            for (std::size_t i = 0; i < n_nodes; ++i) {
                panel.log_below[i] += times * ln_lane(F[i]);
                panel.hazard[i] += times * (f[i] / F[i]);
            }
        };
        for (const std::size_t c : classes) {
            if (begins[c] <= panel.at.front()) continue;
            column(c, panel.at, stray, below, density);
            if (size[c] != 1.0) {
                add(size[c], density, below);
                continue;
            }
            for (std::size_t i = 0; i < n_nodes; ++i) {
                rise[i] = rise[i] * below[i] + product[i] * density[i];
                product[i] *= below[i];
            }
            if (++factors % 8 == 0) add(1.0, rise, product), product.fill(1.0), rise.fill(0.0);
        }
        add(1.0, rise, product);
    }
};

}  // namespace banditree
