// The probability that an arm has the highest draw, averaged over the copies of an adaptive belief. Per copy a table holds,
// on a grid that all arms share, the logarithm of the product of all distribution functions: the chance of one arm is then
// one integral, and an arm that may not be chosen is subtracted. docs/exact-probabilities.md derives the grid.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "beliefs/adaptive.hpp"
#include "beliefs/winning.hpp"
#include "numerics/normal.hpp"

namespace banditree {

template <class Rows>
class Race {
  public:
    static constexpr std::size_t most_excluded = 8;  // arms that may be left out without a new grid

    // Makes the tables, if the evidence has changed since.
    void bring_up_to_date(const Tree& tree, Rows& rows) {
        rows.bring_up_to_date(tree);
        if (made_for == rows.version) return;
        made_for = rows.version;
        list_classes(tree, rows);
        tables.clear();
        std::vector<std::size_t> order(rows.copies());
        for (std::size_t c = 0; c < order.size(); ++c) order[c] = c;
        std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) { return rows.weight(i) < rows.weight(j); });
        double left_out = 0.0;
        for (const std::size_t copy : order) {
            const double weight = rows.weight(copy);
            if (left_out + weight <= negligible) {
                left_out += weight;
                continue;
            }
            tables.emplace_back();
            make(tree, rows, copy, weight, tables.back());
        }
    }

    // The probability of one arm if some others may not be chosen: leaves, at most `most_excluded` of them.
    double win(std::int32_t leaf, const std::vector<std::int32_t>& excluded) {
        double won = 0.0, total = 0.0;
        for (const Table& table : tables) {
            measure = table.log_product;
            for (const std::int32_t gone : excluded) in_vectors([&]() BANDITREE_INLINE { add_log(table, class_of(gone), -1.0, measure); });
            double share = 0.0;
            in_vectors([&]() BANDITREE_INLINE {
                to_measure(table);
                share = integral(table, class_of(leaf));
            });
            won += table.weight * share;
            total += table.weight;
        }
        return won / total;
    }

    // The same for all arms: (nodes,), 0 for clusters and arms that may not be chosen.
    void wins(const Tree& tree, const std::vector<std::int32_t>& excluded, std::vector<double>& out) {
        std::vector<double> of_class(size.size(), 0.0);
        for (const Table& table : tables) {
            measure = table.log_product;
            for (const std::int32_t gone : excluded) in_vectors([&]() BANDITREE_INLINE { add_log(table, class_of(gone), -1.0, measure); });
            in_vectors([&]() BANDITREE_INLINE {
                to_measure(table);
                for (std::size_t i = 0; i < table.active.size(); ++i) of_class[table.active[i]] += table.weight * integral_of(table, i);
            });
        }
        out.assign(static_cast<std::size_t>(tree.n_nodes), 0.0);
        double total = 0.0;
        for (std::int32_t arm = 0; arm < tree.n_arms; ++arm) {
            const std::int32_t leaf = tree.node_of[arm];
            if (std::find(excluded.begin(), excluded.end(), leaf) == excluded.end())
                total += out[static_cast<std::size_t>(leaf)] = of_class[class_of(leaf)];
        }
        for (double& chance : out) chance /= total;
    }

  private:
    static constexpr double negligible = 1e-6;  // NEGLIGIBLE in adaptive.py
    static constexpr double far = 7.0, far_below = 6.0;  // standard deviations: no draw of an arm is beyond, and the best are not below
    static constexpr double long_panel = 4.0;  // of the narrowest density

    struct Table {
        double weight;
        std::vector<std::size_t> active;            // classes that may have the highest draw
        std::vector<std::int32_t> place;            // (classes,) in `active`, -1 for none
        std::vector<double> x, y, u, v, share;      // (active,) mean and sd of draws, those of strays, and the chance to be one
        std::vector<double> at, step, log_product;  // (points,)
    };
    std::uint64_t made_for = 0;
    std::vector<Table> tables;
    std::vector<std::int32_t> class_at;  // (nodes,)
    std::vector<double> size;            // (classes,)
    std::vector<std::int32_t> member;    // (classes,) one leaf
    std::vector<double> measure;         // scratch: (points,)

    std::size_t class_of(std::int32_t leaf) const { return static_cast<std::size_t>(class_at[static_cast<std::size_t>(leaf)]); }

    // Arms that something is known of are classes of their own; the others of one cluster are one class.
    void list_classes(const Tree& tree, const Rows& rows) {
        class_at.assign(static_cast<std::size_t>(tree.n_nodes), -1);
        size.clear(), member.clear();
        std::vector<std::int32_t> of_cluster(rows.n_leaves.size(), -1);
        for (std::int32_t arm = 0; arm < tree.n_arms; ++arm) {
            const std::int32_t leaf = tree.node_of[arm];
            std::int32_t* shared = rows.seen(leaf).plays > 0.0 ? nullptr : &of_cluster[rows.cluster(tree, tree.parent[leaf])];
            std::int32_t of = shared ? *shared : -1;
            if (of < 0) {
                of = static_cast<std::int32_t>(size.size());
                size.push_back(0.0), member.push_back(leaf);
                if (shared) *shared = of;
            }
            size[static_cast<std::size_t>(of)] += 1.0;
            class_at[static_cast<std::size_t>(leaf)] = of;
        }
    }

    void make(const Tree& tree, Rows& rows, std::size_t copy, double weight, Table& table) {
        rows.take_copy(tree, copy);
        const std::size_t n = size.size();
        std::vector<double> x(n), y(n), u(n), v(n), share(n), low(n);
        for (std::size_t i = 0; i < n; ++i) {
            const std::int32_t leaf = member[i];
            const Seen known = rows.seen(leaf);
            const std::size_t parent = rows.cluster(tree, tree.parent[leaf]);
            double m, variance;
            rows.believe(rows.concentration(), known.plays, known.total, parent, m, variance);
            const Drawn follows = rows.drawn_following(m, variance), alone = rows.drawn_alone(known);
            x[i] = follows.x, y[i] = follows.y, u[i] = alone.x, v[i] = alone.y;
            share[i] = rows.stray(leaf, known, parent);
            low[i] = x[i] - far_below * y[i];
            if (share[i] > 1e-9) low[i] = std::min(low[i], u[i] - far_below * v[i]);
        }
        // Even without the `most_excluded` best arms, the highest draw is never below this.
        std::vector<std::size_t> order(n);
        for (std::size_t i = 0; i < n; ++i) order[i] = i;
        const std::size_t ahead = std::min(n, most_excluded + 1);
        std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(ahead), order.end(),
                          [&](std::size_t i, std::size_t j) { return low[i] > low[j]; });
        double floor = low[order[ahead - 1]], counted = 0.0, top = -std::numeric_limits<double>::infinity();
        for (std::size_t i = 0; i < ahead; ++i) {
            counted += size[order[i]];
            if (counted > static_cast<double>(most_excluded)) {
                floor = low[order[i]];
                break;
            }
        }
        table.weight = weight;
        table.place.assign(n, -1);
        for (std::size_t i = 0; i < n; ++i) {
            const double end = std::max(x[i] + far * y[i], share[i] > 0.0 ? u[i] + far * v[i] : x[i]);
            if (end <= floor) continue;
            top = std::max(top, end);
            table.place[i] = static_cast<std::int32_t>(table.active.size());
            table.active.push_back(i);
            table.x.push_back(x[i]), table.y.push_back(y[i]), table.u.push_back(u[i]), table.v.push_back(v[i]);
            table.share.push_back(share[i]);
        }
        place_points(table, floor, top);
        table.log_product.assign(table.at.size(), 0.0);
        in_vectors([&]() BANDITREE_INLINE {
            for (std::size_t i = 0; i < table.active.size(); ++i) add_log_of(table, i, size[table.active[i]], table.log_product);
        });
    }

    // Gauss-Legendre panels from the top down, as long as the narrowest of the densities there allows.
    void place_points(Table& table, double floor, double top) const {
        struct Part {
            double begin, end, sd;
        };
        std::vector<Part> parts;
        for (std::size_t i = 0; i < table.active.size(); ++i) {
            if (table.share[i] < 1.0) parts.push_back({table.x[i] + far * table.y[i], table.x[i] - far * table.y[i], table.y[i]});
            if (table.share[i] > 1e-8) parts.push_back({table.u[i] + far * table.v[i], table.u[i] - far * table.v[i], table.v[i]});
        }
        for (double right = top; right > floor;) {
            double panel = right - floor;
            for (const Part& part : parts) {
                if (part.end >= right) continue;
                const double own = long_panel * part.sd, until = right - part.begin;
                panel = std::min(panel, until > own ? until : own);
            }
            const double left = right - std::max(panel, 1e-13 * (std::fabs(right) + std::fabs(floor))), half = 0.5 * (right - left);
            for (int i = 0; i < panel_nodes; ++i) {
                table.at.push_back(left + half * (1.0 + panel_rule.node[static_cast<std::size_t>(i)]));
                table.step.push_back(half * panel_rule.weight[static_cast<std::size_t>(i)]);
            }
            right = left;
        }
    }

    // The points at which an arm may be: those below its highest draw. Points fall.
    static std::size_t first_point(const Table& table, std::size_t i) {
        const double end = std::max(table.x[i] + far * table.y[i], table.share[i] > 0.0 ? table.u[i] + far * table.v[i] : table.x[i]);
        return static_cast<std::size_t>(std::lower_bound(table.at.begin(), table.at.end(), end, std::greater<double>()) - table.at.begin());
    }

    BANDITREE_INLINE void add_log(const Table& table, std::size_t of, double times, std::vector<double>& sum) const {
        if (table.place[of] >= 0) add_log_of(table, static_cast<std::size_t>(table.place[of]), times, sum);
    }
    BANDITREE_INLINE static void add_log_of(const Table& table, std::size_t i, double times, std::vector<double>& sum) {
        const std::size_t from = first_point(table, i), n = table.at.size() - from;
        const double x = table.x[i], per_y = 1.0 / table.y[i], u = table.u[i], per_v = 1.0 / table.v[i], s = table.share[i];
        const double* __restrict at = table.at.data() + from;
        double* __restrict to = sum.data() + from;
        for (std::size_t j = 0; j < n; ++j) {
            const double z = (at[j] - x) * per_y, w = (at[j] - u) * per_v;
            const double one = normal_tail_lane(z < 0.0 ? -z : z), other = normal_tail_lane(w < 0.0 ? -w : w);
            const double upper = (1.0 - s) * (z < 0.0 ? 1.0 - one : one) + s * (w < 0.0 ? 1.0 - other : other);
            const double lower = (1.0 - s) * (z < 0.0 ? one : 1.0 - one) + s * (w < 0.0 ? other : 1.0 - other);
            const double y = upper < 0.5 ? 1.0 - upper : lower > 1e-290 ? lower : 1e-290;
            const double lost = upper < 0.5 ? (y - 1.0) + upper : 0.0;
            to[j] += times * (ln_lane(y) - lost / y);
        }
    }
    BANDITREE_INLINE void to_measure(const Table& table) {
        const std::size_t n = measure.size();
        const double* __restrict step = table.step.data();
        double* __restrict to = measure.data();
        for (std::size_t j = 0; j < n; ++j) to[j] = step[j] * exp_lane(to[j] < 0.0 ? to[j] : 0.0);
    }
    BANDITREE_INLINE double integral(const Table& table, std::size_t of) const {
        return table.place[of] < 0 ? 0.0 : integral_of(table, static_cast<std::size_t>(table.place[of]));
    }
    // The integral of the density of one arm, over its distribution function, times the product of all.
    BANDITREE_INLINE double integral_of(const Table& table, std::size_t i) const {
        constexpr double root = 0.39894228040143267794;  // 1 / sqrt(2 pi)
        const std::size_t from = first_point(table, i), n = table.at.size() - from;
        const double x = table.x[i], per_y = 1.0 / table.y[i], u = table.u[i], per_v = 1.0 / table.v[i], s = table.share[i];
        const double part = root * (1.0 - s) * per_y, rest = root * s * per_v;
        const double *__restrict at = table.at.data() + from, *__restrict of = measure.data() + from;
        double sum[4] = {};
        for (std::size_t j = 0; j + 4 <= n; j += 4)
            for (std::size_t k = 0; k < 4; ++k) {
                const double z = (at[j + k] - x) * per_y, w = (at[j + k] - u) * per_v;
                const double one = normal_tail_lane(z < 0.0 ? -z : z), other = normal_tail_lane(w < 0.0 ? -w : w);
                const double lower = (1.0 - s) * (z < 0.0 ? one : 1.0 - one) + s * (w < 0.0 ? other : 1.0 - other);
                const double density = part * exp_lane(-0.5 * z * z) + rest * exp_lane(-0.5 * w * w);
                sum[k] += density / (lower > 1e-290 ? lower : 1e-290) * of[j + k];
            }
        for (std::size_t j = n - n % 4; j < n; ++j) {
            const double z = (at[j] - x) * per_y, w = (at[j] - u) * per_v;
            const double one = normal_tail_lane(z < 0.0 ? -z : z), other = normal_tail_lane(w < 0.0 ? -w : w);
            const double lower = (1.0 - s) * (z < 0.0 ? one : 1.0 - one) + s * (w < 0.0 ? other : 1.0 - other);
            const double density = part * exp_lane(-0.5 * z * z) + rest * exp_lane(-0.5 * w * w);
            sum[0] += density / (lower > 1e-290 ? lower : 1e-290) * of[j];
        }
        return (sum[0] + sum[2]) + (sum[1] + sum[3]);
    }
};

}  // namespace banditree
