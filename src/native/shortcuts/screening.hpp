// Finds the arm with the highest draw without drawing all of them, exactly. One draw sets a bar; most other arms pass it so
// rarely that a bound on their chance decides, many arms at a time. docs/exact-sampling.md derives it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "beliefs/adaptive.hpp"
#include "numerics/normal.hpp"
#include "numerics/sums.hpp"
#include "policy/limits.hpp"

namespace banditree {

// Draws every arm.
struct NoShortcut {
    std::int32_t min_wide = 0;
    bool covers(const Tree&) const { return false; }
    template <class Rows>
    std::int32_t pick(const Tree&, const Rows&, const Limits*, Stream&) {
        return 0;
    }
};

template <class Kind>
struct Screening {
    using Rows = AdaptiveRows<Kind>;
    static constexpr double lowest = -std::numeric_limits<double>::infinity();
    static constexpr std::int32_t never = std::numeric_limits<std::int32_t>::max();
    static constexpr double seldom = 0.1;  // arms that pass the bar more often are drawn
    std::int32_t min_wide = 48;            // with fewer arms, drawing all of them is as fast

    bool covers(const Tree& tree) const { return min_wide != never && tree.n_arms >= min_wide; }

    // Without the arms that the limits exclude, which may be null.
    std::int32_t pick(const Tree& tree, const Rows& rows, const Limits* limits, Stream& rng) {
        bar = lowest;
        winner = -1;
        odds = rows.chance / (1.0 - rows.chance);
        clock = rng.standard_exponential();
        exclude(tree, rows, limits);
        first = find_first(rows);
        if (first >= 0) raise(rows.draw(rows.drawn(tree, first, rng.random()), rng), first);
        bounds.resize(rows.blocks.size());
        for (std::size_t b = 0; b < rows.blocks.size(); ++b)
            if (!rows.blocks[b].leaves.empty()) try_block(rows, rows.blocks[b], bounds[b], rng);
        if (rows.n_known < tree.n_arms) try_untouched(tree, rows, rng);
        return winner;
    }

  private:
    double bar = 0.0;                    // the highest draw so far
    std::int32_t winner = -1;            // its arm, or the cluster of untouched arms that it belongs to
    std::int32_t first = -1;             // the leaf of the arm that was drawn first, to set the bar
    double odds = 0.0;                   // that an arm is a stray, before its rewards are considered
    double clock = 0.0;                  // see `next`
    std::vector<std::int32_t> excluded;  // leaves of arms that may not be chosen, in order
    std::vector<std::int32_t> gone;      // (clusters,) number of untouched ones among them
    std::vector<double> untouched_means, untouched_sds, untouched_chances;  // (clusters,)

    // Of the arms of a block: what they are drawn with as siblings, that is, if they follow their cluster, and as strays; at
    // least the log factor by which their rewards change the odds of the latter; what they are drawn from; and at most the
    // chance that they pass the bar.
    double means[Block::size], variances[Block::size], stray_means[Block::size], stray_variances[Block::size], factors[Block::size];
    Drawn siblings[Block::size], strays[Block::size];
    double chances[Block::size];

    // What these depend on besides the rewards of the arms.
    struct Around {
        double low, high, spread, plays_per_arm;  // where the mean of the cluster is; its variance; and plays of all arms
        Stray stray;
        bool operator==(const Around& other) const {
            return low == other.low && high == other.high && spread == other.spread && plays_per_arm == other.plays_per_arm &&
                   stray.mean == other.stray.mean && stray.plays == other.stray.plays;
        }
    };
    static Around around(const Rows& rows, std::size_t c) {
        return {rows.mean[c], rows.mean[c], rows.variance[c], rows.plays_per_arm, rows.stray_prior};
    }
    // The same in steps, and not below the truth: what follows from it holds for many decisions, but is a function of the
    // evidence alone, so that what is kept of earlier decisions changes none.
    static Around roughly_around(const Rows& rows, std::size_t c) {
        Around of = around(rows, c);
        double stray_low;
        rows.kind.cell(rows.mean[c], of.low, of.high);
        rows.kind.cell(rows.stray_prior.mean, stray_low, of.stray.mean);
        of.spread = coarse_above(of.spread), of.plays_per_arm = coarse_above(of.plays_per_arm);
        return of;
    }

    // What holds for all arms of a block in one copy.
    struct Bound {
        std::uint64_t changes = 0;
        std::size_t copy = 0;
        Around around{};
        Drawn sibling{}, stray{};  // with the highest mean and the largest variance among them
        double factor = 0.0;
    };
    static constexpr std::size_t n_bounds = 8;  // copies for which bounds are kept
    std::vector<std::vector<Bound>> bounds;     // (blocks,)

    const Bound& bound(const Rows& rows, const Block& block, std::vector<Bound>& kept) {
        if (kept.empty()) kept.resize(n_bounds);
        Bound& of = kept[rows.copy % n_bounds];
        const Around its = roughly_around(rows, block.cluster);
        const bool holds = of.changes > std::max(block.changed, rows.all_changed) && of.copy == rows.copy && of.around == its;
        if (holds) return of;
        in_vectors([&]() BANDITREE_INLINE {
            describe(rows, block, its);
            const std::size_t n = block.leaves.size();
            of = {rows.changes + 1, rows.copy, its,
                  rows.kind.drawn({highest(means, n), highest(variances, n)}),
                  rows.kind.drawn({highest(stray_means, n), highest(stray_variances, n)}),
                  exp_lane(std::min(highest(factors, n), rows.set.largest_factor))};
        });
        return of;
    }

    BANDITREE_INLINE void describe(const Rows& rows, const Block& block, const Around& its) {
        const double k = rows.concentration();
        const double *const __restrict plays = block.plays.data(), *const __restrict totals = block.totals.data();
        const double* const __restrict rooms = block.rooms.data();
        const std::size_t n = block.leaves.size();
        for (std::size_t i = 0; i < n; ++i) {
            const Seen seen{plays[i], totals[i]};
            const Moments sibling = rows.following(seen, its.high, its.spread, its.plays_per_arm);
            const Moments stray = rows.alone(seen, its.stray, its.plays_per_arm);
            means[i] = sibling.mean, variances[i] = sibling.variance;
            stray_means[i] = stray.mean, stray_variances[i] = stray.variance;
            factors[i] = rows.kind.most_factor(seen, rooms[i], k, its.low, its.high, its.stray);
        }
    }

    // At most the chance to pass the bar, in steps.
    BANDITREE_INLINE double tail_at_most(const Drawn& of) const {
        const double z = (bar - of.x) / of.y;
        double tail = z > 1.8 ? 0.03594 : 1.0;
        tail = z > 2.6 ? 0.004662 : tail;
        tail = z > 3.5 ? 0.0002327 : tail;
        return z > 5.0 ? 2.867e-7 : tail;
    }
    // An arm is a stray with a chance of odds * factor at most.
    BANDITREE_INLINE double chance_at_most(const Drawn& sibling, const Drawn& stray, double factor) const {
        return tail_at_most(sibling) + (odds * factor < 1.0 ? odds * factor : 1.0) * tail_at_most(stray);
    }

    // Passes over arms that pass the bar with at most `chance` each, until a clock, set to an exponential number, rings: each arm
    // takes at least -ln(1 - chance) of its time. Returns how many of n are passed over, and u for the arm where it rings: uniform,
    // and that arm passes the bar if it is below its own chance.
    double next(double n, double chance, double& u, Stream& rng) {
        const double each = chance < 0.5 ? chance * (1.0 + chance) : -ln(1.0 - chance);
        if (clock >= n * each) {
            clock -= n * each;
            return n;
        }
        const double over = std::min(std::floor(clock / each), n - 1.0);
        u = -powers_lane(over > 0.0 ? over * each - clock : -clock).exp_minus_one;
        clock = rng.standard_exponential();
        return over;
    }

    void try_block(const Rows& rows, const Block& block, std::vector<Bound>& kept, Stream& rng) {
        if (Kind::learned) return try_each(rows, block, rng);  // a bound would not hold: the noise changes with every reward
        const Bound& all = bound(rows, block, kept);
        const double chance = chance_at_most(all.sibling, all.stray, all.factor);
        if (!(chance < seldom)) return try_each(rows, block, rng);
        const auto n = static_cast<double>(block.leaves.size());
        double u = 0.0;
        for (double i = 0.0; (i += next(n - i, chance, u, rng)) < n; i += 1.0) {
            const auto at = static_cast<std::size_t>(i);
            const Seen seen = block.seen(at);
            try_seldom(rows, block, at, rows.drawn_following(seen, block.cluster), rows.drawn_alone(seen), u, rng);
        }
    }
    void try_each(const Rows& rows, const Block& block, Stream& rng) {
        const std::size_t n = block.leaves.size();
        in_vectors([&]() BANDITREE_INLINE {
            describe(rows, block, around(rows, block.cluster));
            for (std::size_t i = 0; i < n; ++i) {
                siblings[i] = rows.kind.drawn({means[i], variances[i]});
                strays[i] = rows.kind.drawn({stray_means[i], stray_variances[i]});
                factors[i] = exp_lane(factors[i] < rows.set.largest_factor ? factors[i] : rows.set.largest_factor);
                chances[i] = chance_at_most(siblings[i], strays[i], factors[i]);
            }
        });
        double u = 0.0;
        for (std::size_t i = 0; i < n; ++i) {
            const std::int32_t leaf = block.leaves[i];
            if (chances[i] < seldom) {
                if (next(1.0, chances[i], u, rng) < 1.0) try_seldom(rows, block, i, siblings[i], strays[i], u, rng);
            } else if (competes(leaf)) {
                u = rng.random();
                const bool is_stray = u < odds * factors[i] && u < rows.stray(leaf, block.seen(i), rows.mean[block.cluster]);
                raise(rows.draw(is_stray ? strays[i] : siblings[i], rng), leaf);
            }
        }
    }
    bool competes(std::int32_t leaf) const { return leaf != first && !is_excluded(leaf); }

    // Tries an arm that passes the bar if u is below the chance of it.
    void try_seldom(const Rows& rows, const Block& block, std::size_t i, const Drawn& sibling, const Drawn& stray, double u, Stream& rng) {
        const std::int32_t leaf = block.leaves[i];
        if (!(u < std::max(chance_beyond(sibling), chance_beyond(stray))) || !competes(leaf)) return;
        try_either(sibling, stray, rows.stray(leaf, block.seen(i), rows.mean[block.cluster]), leaf, u, rng);
    }
    void try_either(const Drawn& sibling, const Drawn& stray, double stray_chance, std::int32_t node, double u, Stream& rng) {
        const double as_stray = stray_chance * chance_beyond(stray);
        if (u < as_stray) return raise_beyond(stray, node, rng);
        if (u < as_stray + (1.0 - stray_chance) * chance_beyond(sibling)) raise_beyond(sibling, node, rng);
    }
    double chance_beyond(const Drawn& of) const {
        const double z = (bar - of.x) / of.y, above = normal_tail_lane(std::abs(z));
        return z < 0.0 ? 1.0 - above : above;
    }
    void raise_beyond(const Drawn& of, std::int32_t node, Stream& rng) {
        raise(of.x + of.y * normal_beyond((bar - of.x) / of.y, rng), node);
    }
    void raise(double draw, std::int32_t node) {
        if (!(draw > bar)) return;
        bar = draw;
        winner = node;
    }

    bool is_excluded(std::int32_t leaf) const {
        return !excluded.empty() && std::binary_search(excluded.begin(), excluded.end(), leaf);
    }
    void exclude(const Tree& tree, const Rows& rows, const Limits* limits) {
        excluded.clear();
        gone.assign(rows.n_leaves.size(), 0);
        if (!limits) return;
        for (const std::int32_t arm : limits->arms) {
            const std::int32_t leaf = tree.node_of[arm];
            excluded.push_back(leaf);
            if (untouched(rows, leaf)) ++gone[rows.cluster(tree, tree.parent[leaf])];
        }
        std::sort(excluded.begin(), excluded.end());
    }

    // The leaf of the arm that sets the bar: the one that was played most. If all are excluded, -1.
    std::int32_t find_first(const Rows& rows) const {
        if (rows.leader < 0 || !is_excluded(rows.leader)) return rows.leader;
        std::int32_t best = -1;
        double most = 0.0;
        for (const Block& block : rows.blocks)
            for (std::size_t i = 0; i < block.leaves.size(); ++i)
                if (block.plays[i] > most && !is_excluded(block.leaves[i])) best = block.leaves[i], most = block.plays[i];
        return best;
    }

    // Untouched arms of one cluster are all alike. After one that passes the bar, the others go on with a higher bar.
    void try_untouched(const Tree& tree, const Rows& rows, Stream& rng) {
        const Drawn stray = rows.drawn_alone({0.0, 0.0});
        const std::size_t n_clusters = rows.n_leaves.size();
        for (auto* column : {&untouched_means, &untouched_sds, &untouched_chances}) column->resize(n_clusters);
        in_vectors([&]() BANDITREE_INLINE { describe_untouched(rows, stray); });
        for (std::size_t c = 0; c < n_clusters; ++c) {
            const Drawn sibling{untouched_means[c], untouched_sds[c]};
            double chance = untouched_chances[c], u = 0.0;
            for (double n = rows.n_leaves[c] - rows.n_touched[c] - gone[c]; n > 0.0; n -= 1.0) {
                if (!(chance < seldom)) chance = rows.chance * chance_beyond(stray) + (1.0 - rows.chance) * chance_beyond(sibling);
                n -= next(n, chance, u, rng);
                if (n > 0.0) try_either(sibling, stray, rows.chance, rows.node_of[c], u, rng);
            }
        }
        if (tree.content[winner] < 0) winner = any_member(tree, rows, winner, rng);
    }
    BANDITREE_INLINE void describe_untouched(const Rows& rows, const Drawn& stray) {
        double *const __restrict x = untouched_means.data(), *const __restrict y = untouched_sds.data();
        double* const __restrict chance_of = untouched_chances.data();
        const std::size_t n_clusters = rows.n_leaves.size();
        for (std::size_t c = 0; c < n_clusters; ++c) {
            const Drawn sibling = rows.kind.drawn(rows.following({0.0, 0.0}, rows.mean[c], rows.variance[c], rows.plays_per_arm));
            x[c] = sibling.x, y[c] = sibling.y;
        }
        for (std::size_t c = 0; c < n_clusters; ++c) chance_of[c] = chance_at_most({x[c], y[c]}, stray, 1.0);
    }
    static bool untouched(const Rows& rows, std::int32_t leaf) { return !(rows.seen(leaf).plays > 0.0); }

    std::int32_t any_member(const Tree& tree, const Rows& rows, std::int32_t node, Stream& rng) const {
        std::int32_t leaf;
        do leaf = tree.first(node) + static_cast<std::int32_t>(rng.integers(static_cast<std::uint64_t>(tree.n_children(node))));
        while (tree.content[leaf] < 0 || !untouched(rows, leaf) || is_excluded(leaf));
        return leaf;
    }

    // A normal given that it exceeds z: Marsaglia (1964), or plain draws where those often do.
    static double normal_beyond(double z, Stream& rng) {
        double x;
        if (z < 0.5) {
            do x = rng.standard_normal();
            while (x <= z);
            return x;
        }
        do x = std::sqrt(z * z - 2.0 * ln(rng.random_open()));
        while (rng.random() * x > z);
        return x;
    }
};

}  // namespace banditree
