// The probability that an arm has the highest draw, given the number that all draws share: then each arm draws from a
// normal of its own, and at most one, the stray, once more. The nodes of a table hold the sum of the logarithms of all
// distribution functions: the chance of one arm is then one integral, and an arm that may not be chosen is subtracted.
// docs/exact-probabilities.md derives the nodes.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "beliefs/densities.hpp"
#include "beliefs/draws.hpp"
#include "numerics/lanes.hpp"
#include "numerics/normal.hpp"
#include "numerics/vectors.hpp"

namespace banditree {

constexpr std::size_t n_nodes = 16;
using Points = std::array<double, n_nodes>;

BANDITREE_INLINE inline double dot(const Points& x, const Points& y) {
    double sum[4] = {};
    for (std::size_t i = 0; i < n_nodes; i += 4)
        for (std::size_t j = 0; j < 4; ++j) sum[j] += x[i + j] * y[i + j];
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

// Lobatto's nodes of an interval, which have both ends among them, and the weights of an integral over it.
inline void place(Points& at, Points& step, double left, double right) {
    constexpr double node[] = {0.10132627352194959, 0.29983046890076326, 0.4860594218871385, 0.6523887028824933,
                               0.7920082918618154,  0.8992005330934723,  0.9695680462702179, 1.0};
    constexpr double weight[] = {0.20195830817822985, 0.1936900238252035,  0.17749191339170423,  0.1540269808071642,
                                 0.12425538213251419, 0.08939369732593075, 0.050850361005919824, 1.0 / 120};
    const double centre = 0.5 * (left + right), half = 0.5 * (right - left);
    for (std::size_t i = 0; i < n_nodes / 2; ++i) {
        const std::size_t upper = n_nodes / 2 + i, lower = n_nodes / 2 - 1 - i;
        at[upper] = centre + half * node[i], at[lower] = centre - half * node[i];
        step[upper] = step[lower] = half * weight[i];
    }
    at.front() = left, at.back() = right;
}

// The weights of these nodes in the barycentric formula: at Lobatto's nodes the roots of those of the integral, with
// alternating signs.
inline void root_of(const Points& step, Points& root) {
    for (std::size_t j = 0; j < n_nodes; ++j) root[j] = j % 2 ? -std::sqrt(step[j]) : std::sqrt(step[j]);
}
// By how much the values at the nodes count for that of their polynomial at x, over the sum of all this.
BANDITREE_INLINE inline void interpolate_at(double x, const Points& at, const Points& root, Points& weights) {
    for (std::size_t j = 0; j < n_nodes; ++j) {
        const double away = x - at[j];
        weights[j] = root[j] / (away != 0.0 ? away : 1e-200);
    }
}
BANDITREE_INLINE inline double sum(const Points& x) {
    double part[4] = {};
    for (std::size_t i = 0; i < n_nodes; i += 4)
        for (std::size_t j = 0; j < 4; ++j) part[j] += x[i + j];
    return (part[0] + part[2]) + (part[1] + part[3]);
}

// P(draw <= x) at some nodes.
BANDITREE_INLINE inline void normal_below(double mean, double per_sd, const Points& at, Points& below) {
    for (std::size_t i = 0; i < n_nodes; ++i) {
        const double z = (at[i] - mean) * per_sd;
        below[i] = (0.5 + std::copysign(0.5, z)) - std::copysign(normal_lane(std::fabs(z)).above, z);
    }
}

// The further draw of the stray: the sum over all arms of the odds that an arm is it and that this draw is below x. It
// is smooth, so that values at the nodes of a few panels say what it is between.
class Strays {
  public:
    double all = 0.0;  // sum of the odds

    // Where x lies from `low` to `high`, mostly.
    void lay_out(const Draws& draws, const std::vector<double>& sizes, double low, double high) {
        of = &draws, size = &sizes;
        mean.clear(), per_sd.clear(), odds.clear();
        all = 0.0;
        for (std::size_t c = 0; c < draws.classes(); ++c) {
            const double o = sizes[c] * draws.odds[c];
            all += o;
            if (c > 0 && draws.stray_mean[c] == draws.stray_mean[c - 1] && draws.stray_sd[c] == draws.stray_sd[c - 1]) {
                odds.back() += o;  // the same evidence in another cluster
            } else {
                mean.push_back(draws.stray_mean[c]), per_sd.push_back(1.0 / draws.stray_sd[c]), odds.push_back(o);
            }
        }
        panels.clear();
        if (all > 0.0 && high > low) split(low, high);
    }

    BANDITREE_INLINE void sums(const Points& at, Points& out) const {
        out.fill(0.0);
        if (panels.empty() || at.front() < panels.front().at.front() || at.back() > panels.back().at.back()) {
            add(0, mean.size(), at, out);
            return;
        }
        Points weights;
        for (std::size_t i = 0; i < n_nodes; ++i) {
            const Panel& panel = panel_of(at[i]);
            interpolate_at(at[i], panel.at, panel.root, weights);
            out[i] = dot(weights, panel.sums) / sum(weights);
        }
        for (const std::size_t l : narrow) add(l, l + 1, at, out);
    }

    // The odds that an arm of a class is the stray, times the chance that its further draw is above each node.
    BANDITREE_INLINE void above(std::size_t c, const Points& at, Points& out) const {
        const double m = of->stray_mean[c], per = 1.0 / of->stray_sd[c];
        for (std::size_t i = 0; i < n_nodes; ++i) {  // from above, with the digits of a small chance
            const double z = (at[i] - m) * per;
            out[i] = of->odds[c] * ((0.5 - std::copysign(0.5, z)) + std::copysign(normal_lane(std::fabs(z)).above, z));
        }
    }
    BANDITREE_INLINE void add_below(std::size_t c, double times, const Points& at, Points& out) const {
        Points below;
        normal_below(of->stray_mean[c], 1.0 / of->stray_sd[c], at, below);
        for (std::size_t i = 0; i < n_nodes; ++i) out[i] += times * of->odds[c] * below[i];
    }
    double odds_of(std::size_t c) const { return of->odds[c]; }

  private:
    static constexpr double longest = 6.0;  // panel, in standard deviations of the narrowest law that it stands for
    static constexpr double ends = 7.0;     // standard deviations from its mean, where a law ends
    static constexpr std::size_t most_panels = 64;

    struct Panel {
        Points at, step, root, sums;
    };
    const Draws* of = nullptr;
    const std::vector<double>* size = nullptr;
    std::vector<double> mean, per_sd, odds;  // (laws,) from which arms with the same evidence draw
    std::vector<Panel> panels;               // from left to right, of the same length
    std::vector<std::size_t> narrow;         // laws that panels do not stand for

    const Panel& panel_of(double x) const {
        const double from = panels.front().at.front(), to = panels.back().at.back(),
                     n = static_cast<double>(panels.size());
        const double at = (x - from) / (to - from) * n;
        return panels[at >= n - 1.0 ? panels.size() - 1 : at > 0.0 ? static_cast<std::size_t>(at) : 0];
    }
    BANDITREE_INLINE void add(std::size_t from, std::size_t to, const Points& at, Points& out) const {
        Points below;
        for (std::size_t l = from; l < to; ++l) {
            normal_below(mean[l], per_sd[l], at, below);
            for (std::size_t i = 0; i < n_nodes; ++i) out[i] += odds[l] * below[i];
        }
    }

    // Chooses the panels: the fewer narrow laws they stand for, the longer they are.
    void split(double low, double high) {
        std::vector<std::size_t> amid;
        for (std::size_t l = 0; l < mean.size(); ++l)
            if (mean[l] + ends / per_sd[l] > low && mean[l] - ends / per_sd[l] < high) amid.push_back(l);
        std::size_t n_narrow = 0, n_panels = 1;
        const auto needed = [&](std::size_t left_out) {
            if (left_out >= amid.size()) return std::size_t{1};
            return static_cast<std::size_t>(std::min(std::ceil((high - low) * per_sd[amid[left_out]] / longest), 1e6)) +
                   1;
        };
        std::sort(amid.begin(), amid.end(), [this](std::size_t i, std::size_t j) { return per_sd[i] > per_sd[j]; });
        double least = std::numeric_limits<double>::infinity();
        for (std::size_t left_out = 0;; left_out = left_out ? 2 * left_out : 1) {
            left_out = std::min(left_out, amid.size());
            const double cost = static_cast<double>(needed(left_out)) * static_cast<double>(mean.size()) +
                                20.0 * static_cast<double>(left_out);
            if (cost < least && needed(left_out) <= most_panels)
                least = cost, n_narrow = left_out, n_panels = needed(left_out);
            if (left_out == amid.size()) break;
        }
        narrow.assign(amid.begin(), amid.begin() + static_cast<std::ptrdiff_t>(n_narrow));
        std::vector<char> is_narrow(mean.size(), 0);
        for (const std::size_t l : narrow) is_narrow[l] = 1;
        panels.resize(n_panels);
        const double length = (high - low) / static_cast<double>(n_panels);
        for (std::size_t i = 0; i < n_panels; ++i) {
            Panel& panel = panels[i];
            place(panel.at, panel.step, low + length * static_cast<double>(i),
                  i + 1 < n_panels ? low + length * static_cast<double>(i + 1) : high);
            root_of(panel.step, panel.root);
            panel.sums.fill(0.0);
            in_vectors([&]() BANDITREE_INLINE {
                for (std::size_t l = 0; l < mean.size(); ++l) {
                    if (is_narrow[l] || mean[l] - ends / per_sd[l] >= panel.at.back()) continue;
                    if (mean[l] + ends / per_sd[l] <= panel.at.front()) {
                        for (double& x : panel.sums) x += odds[l];
                    } else {
                        add(l, l + 1, panel.at, panel.sums);
                    }
                }
            });
        }
    }
};

// How many arms there are in each class, and the logarithms of that.
struct Field {
    std::vector<double> size, members;  // (classes,)

    void lay_out(const std::vector<double>& sizes) {
        size = sizes;
        members.resize(size.size());
        for (std::size_t c = 0; c < size.size(); ++c) members[c] = size[c] == 1.0 ? 0.0 : ln(size[c]);
    }
};

// The race of some copy of a belief for some shared number.
class Race {
  public:
    // `shift`: how many standard deviations the shared number moves all draws; `own`: the part of them that is each
    // arm's own. Probabilities differ from the true ones by about `tolerance`.
    Race(const Draws& draws, const Field& field, const Strays& strays_, double shift, double own, double tolerance_)
        : tolerance(tolerance_), strays(&strays_) {
        in_vectors([&]() BANDITREE_INLINE { lay_out(draws, field, shift, own); });
        edge = top.empty() ? 0.0 : *std::max_element(top.begin(), top.end());
    }

    // The probability of an arm of this class, if one arm less of each class in `excluded` may be chosen, times the sum
    // of all odds. False if the race has to be made again without those excluded.
    bool win(std::size_t of, const std::vector<std::size_t>& excluded, double& chance) {
        double won = 0.0;
        const std::size_t at = find(of);
        const bool covered = integrate(excluded, [&](const Panel& panel, const Points& measure, const Points& hazard,
                                                     const Points& odds) BANDITREE_INLINE {
            Points above;
            strays->above(of, panel.at, above);
            won += own_share(at, panel, measure, odds);
            for (std::size_t i = 0; i < n_nodes; ++i) above[i] *= hazard[i];
            won += dot(above, measure);
        });
        chance = won / total;
        return covered;
    }

    // Adds the same for all classes, times a factor, to `out`: (classes,).
    bool add_wins(const std::vector<std::size_t>& excluded, double factor, std::vector<double>& out) {
        std::vector<double> own(mean.size(), 0.0), further(out.size(), 0.0);
        const bool covered = integrate(excluded, [&](const Panel& panel, const Points& measure, const Points& hazard,
                                                     const Points& odds) BANDITREE_INLINE {
            for (std::size_t c = 0; c < mean.size(); ++c) own[c] += own_share(c, panel, measure, odds);
            Points risen, above;
            for (std::size_t i = 0; i < n_nodes; ++i) risen[i] = measure[i] * hazard[i];
            for (std::size_t c = 0; c < out.size(); ++c) {
                if (strays->odds_of(c) == 0.0) continue;
                strays->above(c, panel.at, above);
                further[c] += dot(above, risen);
            }
        });
        for (std::size_t c = 0; c < mean.size(); ++c) out[class_of[c]] += factor * (own[c] / total);
        for (std::size_t c = 0; c < out.size(); ++c) out[c] += factor * (further[c] / total);
        return covered;
    }

  private:
    static constexpr double infinity = std::numeric_limits<double>::infinity();
    static constexpr double longest = 6.0;    // panel, in standard deviations of the narrowest normal in it
    static constexpr double crowded = 0.15;   // how much shorter it is for each e-fold of arms that are equal
    static constexpr double beyond = 0.1;     // part of the tolerance that draws above a class's beginning may have
    static constexpr double lowest = 7.0;     // standard deviations below its mean, where a normal ends
    static constexpr double least = 1e-35;    // of a distribution function; the product of eight is a normal double
    static constexpr double order = 24.0;     // how the error of a panel depends on its length
    static constexpr double stretched = 4.0;  // panels as long as the first one that fit into a stretch
    static constexpr double wide = 2.0;  // times as long as a stretch a panel may be for classes that are wide there
    static constexpr double rounding =
        1e-5;  // an error that halving a panel does not halve is due to rounding if it is below this
    static constexpr double unsure = 1e-7;  // the probabilities of all arms may differ from 1 by this much

    struct Panel {
        Points at, step, log_below, hazard;  // from left to right: weights, sum of ln F, sum of f / F
        Points odds;                         // see Strays::sums
    };

    double tolerance;
    const Strays* strays;
    std::vector<std::size_t> class_of;                            // (competing,) the classes that may win, in order
    std::vector<double> size, mean, per_sd, length, top, bottom;  // (competing,) of their normals
    std::vector<Panel> panels;                                    // from the highest values down
    Panel stretch;                                                // sums of classes that are wide there
    Points stretch_root;
    std::vector<std::size_t> narrow;                         // the other classes
    double edge = 0.0, next_length = infinity, total = 1.0;  // where the panels end; the sum of all probabilities
    double low = -infinity;                                  // classes that lie below were left out

    // Lays out the classes that may win: the others are below where the highest draw is, but for a chance of the
    // tolerance.
    BANDITREE_INLINE void lay_out(const Draws& draws, const Field& field, double shift, double own) {
        const std::size_t n = draws.classes();
        const double* const __restrict means = draws.mean.data(), * const __restrict sds = draws.sd.data();
        const double many_sds = -2.0 * ln(tolerance * beyond), surely_at = shift - own * std::sqrt(many_sds);
        double surely[4] = {-infinity, -infinity, -infinity, -infinity};
        std::size_t c = 0;
        for (; c + 4 <= n; c += 4)
            for (std::size_t j = 0; j < 4; ++j) {
                const double x = means[c + j] + sds[c + j] * surely_at;
                surely[j] = x > surely[j] ? x : surely[j];
            }
        for (; c < n; ++c) surely[0] = std::max(surely[0], means[c] + sds[c] * surely_at);
        low = std::max(std::max(surely[0], surely[1]), std::max(surely[2], surely[3]));
        for (c = 0; c < n; ++c) {
            const double members = field.members[c],
                         begins = means[c] + sds[c] * (shift + own * std::sqrt(many_sds + 2.0 * members));
            if (begins < low) continue;
            const double sd = sds[c] * own, at = means[c] + sds[c] * shift;
            class_of.push_back(c), size.push_back(field.size[c]), mean.push_back(at), per_sd.push_back(1.0 / sd);
            length.push_back(longest / (1.0 + crowded * members) * sd), top.push_back(begins),
                bottom.push_back(at - lowest * sd);
        }
    }

    // The place of a class among those that compete, or one beyond.
    std::size_t find(std::size_t of) const {
        const auto at = std::lower_bound(class_of.begin(), class_of.end(), of);
        return at != class_of.end() && *at == of ? static_cast<std::size_t>(at - class_of.begin()) : class_of.size();
    }

    // The distribution function and the density of a class.
    BANDITREE_INLINE void column(std::size_t c, const Points& at, Points& below, Points& density) const {
        if (at.back() <= bottom[c]) {
            below.fill(least), density.fill(0.0);
            return;
        }
        const double m = mean[c], per = per_sd[c];
        for (std::size_t i = 0; i < n_nodes; ++i) {
            const double z = (at[i] - m) * per;
            const NormalTail tail = normal_lane(std::fabs(z));
            const double F = (0.5 + std::copysign(0.5, z)) - std::copysign(tail.above, z);
            below[i] = F > least ? F : least;
            density[i] = per * tail.density;
        }
    }

    // The integral of f / F of a class over a measure, times the odds of the stray.
    BANDITREE_INLINE double own_share(std::size_t c, const Panel& panel, const Points& measure,
                                      const Points& odds) const {
        if (c == mean.size() || top[c] <= panel.at.front()) return 0.0;
        Points below, density;
        column(c, panel.at, below, density);
        for (std::size_t i = 0; i < n_nodes; ++i) density[i] = density[i] / below[i] * odds[i];
        return dot(density, measure);
    }

    // The product of all F but the excluded ones, with the weights of the nodes, and the sum of their f / F.
    BANDITREE_INLINE void weigh(const Panel& panel, const std::vector<std::size_t>& excluded, Points& measure,
                                Points& hazard) const {
        measure = panel.log_below, hazard = panel.hazard;
        for (const std::size_t of : excluded) {
            const std::size_t c = find(of);
            if (c == mean.size() || top[c] <= panel.at.front()) continue;
            Points below, density;
            column(c, panel.at, below, density);
            for (std::size_t i = 0; i < n_nodes; ++i)
                measure[i] -= ln_lane(below[i]), hazard[i] -= density[i] / below[i];
        }
        for (std::size_t i = 0; i < n_nodes; ++i)
            measure[i] = panel.step[i] * exp_lane(measure[i] < 0.0 ? measure[i] : 0.0);
    }
    // 1 plus the odds of all but the excluded ones to be a stray whose further draw is below.
    BANDITREE_INLINE void odds_of(const Panel& panel, const std::vector<std::size_t>& excluded, Points& odds) const {
        for (std::size_t i = 0; i < n_nodes; ++i) odds[i] = 1.0 + panel.odds[i];
        for (const std::size_t of : excluded) strays->add_below(of, -1.0, panel.at, odds);
    }

    // Calls visit(panel, measure, hazard, odds) for all panels. They may have been made with other arms excluded: if
    // they turn out to be too few or too long for these, new ones are made. False if classes were left out that may win
    // now.
    template <class Visit>
    bool integrate(const std::vector<std::size_t>& excluded, const Visit& visit) {
        for (const bool again : {false, true}) {
            if (again) panels.clear(), edge = *std::max_element(top.begin(), top.end()), next_length = infinity;
            std::vector<std::array<Points, 2>> measures;
            total = 0.0;
            double below = 1.0;
            for (std::size_t i = 0; below > tolerance && (i < panels.size() || add_panel(excluded)); ++i) {
                measures.emplace_back();
                in_vectors([&]() BANDITREE_INLINE {
                    auto& [measure, hazard] = measures[i];
                    weigh(panels[i], excluded, measure, hazard);
                    total += dot(measure, hazard);
                    below = measure.front() / panels[i].step.front();
                });
                if (below > tolerance && panels[i].at.front() < low) return false;
            }
            if (below > tolerance && low > -infinity) return false;
            if (std::fabs(total - 1.0) > std::max(unsure, 100.0 * tolerance) && !again) continue;
            for (std::size_t i = 0; i < measures.size(); ++i)
                in_vectors([&]() BANDITREE_INLINE {
                    Points odds;
                    odds_of(panels[i], excluded, odds);
                    visit(panels[i], measures[i][0], measures[i][1], odds);
                });
            return true;
        }
        return true;
    }

    // Adds a panel below the others, as long as the product of all F but the excluded ones allows: its rise across the
    // panel must be the integral of its derivative. False if there is nothing below.
    bool add_panel(const std::vector<std::size_t>& excluded) {
        Panel panel;
        double left = -infinity;
        in_vectors([&]() BANDITREE_INLINE { left = start_of_panel(edge); });
        if (left == -infinity) return false;
        if (panels.empty()) stretch.at.fill(infinity);
        double before = infinity;
        for (left = std::max({left, edge - next_length, edge - length_to_the_end()});;) {
            const double whole = stretched * (edge - left);
            if (left < stretch.at.front() || 2.0 * whole < stretch.at.back() - stretch.at.front())
                begin_stretch(edge - whole);
            place(panel.at, panel.step, left, edge);
            double error = 0.0;
            in_vectors([&]() BANDITREE_INLINE {
                interpolate(panel);
                add_classes(narrow, panel);
                Points measure, hazard;
                weigh(panel, excluded, measure, hazard);
                error = std::fabs(dot(measure, hazard) - (measure.back() - measure.front()) / panel.step.front());
            });
            const bool by_rounding = error < rounding && error > 0.5 * before;  // a shorter panel would not help
            const double longer = std::min(0.9 * exp(ln(tolerance / std::max(error, 1e-16)) / order), 2.0);
            next_length = (by_rounding ? 1.0 : std::max(longer, 0.25)) * (edge - left);
            if (error < tolerance || by_rounding || edge - left < 1e-13 * std::fabs(edge)) break;
            before = error;
            left = edge - next_length;
        }
        edge = left;
        in_vectors([&]() BANDITREE_INLINE { strays->sums(panel.at, panel.odds); });
        panels.push_back(panel);
        return true;
    }

    // Where a panel with this right end may start, so that every normal in it is almost a polynomial.
    BANDITREE_INLINE double start_of_panel(double right) const {
        double start = -infinity;
        for (std::size_t i = 0; i < mean.size(); ++i) {
            const double shortest = right - length[i], end = top[i] < shortest ? top[i] : shortest;
            start = bottom[i] < right && end > start ? end : start;
        }
        return start;
    }

    // How far down the product of all F may become negligible, if it goes on as at the edge.
    double length_to_the_end() const {
        if (panels.empty()) return infinity;
        const double fallen = -panels.back().log_below.front(), end = 2.0 - ln(tolerance);
        if (fallen < 1e-3 || fallen > end - 2.0) return infinity;
        return 1.5 * fallen / panels.back().hazard.front() * ln(end / fallen);
    }

    // Sums the classes that are so wide that a panel's nodes are enough for a stretch of several panels, from the edge
    // down.
    void begin_stretch(double left) {
        place(stretch.at, stretch.step, left, edge);
        root_of(stretch.step, stretch_root);
        stretch.log_below.fill(0.0), stretch.hazard.fill(0.0);
        const auto is_smooth = [&](std::size_t part) {
            return length[part] >= wide * (edge - left) || top[part] <= left || bottom[part] >= edge;
        };
        std::vector<std::size_t> smooth;
        narrow.clear();
        for (std::size_t c = 0; c < mean.size(); ++c)
            if (top[c] > left) (is_smooth(c) ? smooth : narrow).push_back(c);
        in_vectors([&]() BANDITREE_INLINE { add_classes(smooth, stretch); });
    }

    BANDITREE_INLINE void interpolate(Panel& panel) const {
        Points weights;
        for (std::size_t i = 0; i < n_nodes; ++i) {
            interpolate_at(panel.at[i], stretch.at, stretch_root, weights);
            const double all = 1.0 / sum(weights);
            panel.log_below[i] = dot(weights, stretch.log_below) * all,
            panel.hazard[i] = dot(weights, stretch.hazard) * all;
        }
    }

    // Adds ln F and f / F of classes; of those with one arm, by the product of eight F and its derivative.
    BANDITREE_INLINE void add_classes(const std::vector<std::size_t>& classes, Panel& panel) const {
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
            if (top[c] <= panel.at.front()) continue;
            column(c, panel.at, below, density);
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
