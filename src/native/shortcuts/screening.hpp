// Finds the arm with the highest draw without drawing all of them, exactly. One draw sets a bar; most other arms pass
// it so rarely that a bound on their chance decides, a cluster at a time. docs/exact-sampling.md derives it.
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
    static constexpr double infinity = std::numeric_limits<double>::infinity();
    static constexpr std::int32_t never = std::numeric_limits<std::int32_t>::max();
    static constexpr double seldom = 0.1;  // arms that pass the bar more often are drawn
    std::int32_t min_wide = 48;            // with fewer arms, drawing all of them is as fast

    bool covers(const Tree& tree) const { return min_wide != never && tree.n_arms >= min_wide; }

    // Without the arms that the limits exclude, which may be null.
    std::int32_t pick(const Tree& tree, const Rows& rows, const Limits* limits, Stream& rng) {
        const Coupling& coupling = rows.coupling();
        number = coupling.shared * coupling.numbers[banditree::pick(coupling.chances, coupling.values, rng.random())];
        own = coupling.own;
        bar = -infinity;
        winner = -1;
        clock = rng.standard_exponential();
        exclude(tree, rows, limits);
        bounds.resize(rows.first_block.size());
        block_bounds.resize(rows.blocks.size());
        first = find_first(rows);
        if (first >= 0) raise(draw(given(rows.following(tree, first)), rng), first);
        for (std::size_t c = 0; c < rows.first_block.size(); ++c)
            if (rows.n_touched[c] > 0) look(rows, c);
        const std::int32_t stray = coupling.odds > 0.0 ? pick_stray(tree, rows, 1.0 / coupling.odds, rng) : -1;
        if (stray >= 0) raise(draw(rows.alone(tree, stray), rng), stray);
        for (std::size_t c = 0; c < rows.first_block.size(); ++c)
            if (rows.n_touched[c] > 0) try_cluster(rows, c, rng);
        if (rows.n_known < tree.n_arms) try_untouched(tree, rows, rng);
        return winner;
    }

  private:
    // What holds for the arms of a block, or of a cluster, in one copy, as long as nothing is learned of them and the
    // mean of their cluster stays where it is, nearly. It is a function of the evidence alone, so that what is kept
    // changes no choice.
    struct Bound {
        std::uint64_t changes = 0;
        Around around{0.0, infinity, -infinity};
        double spread = 0.0, noise = 0.0,
               stray = 0.0;  // the variance of the cluster's mean, the noise, and the mean of strays
        double mean = 0.0, widest = 0.0, narrowest = 0.0;  // of all draws: no mean is higher, no sd larger, or smaller
        double factor = 0.0;                               // sum over the arms of how much likelier they are as strays
    };
    // While the cluster's mean and variance stay within their steps, the mean of a draw is at most `higher` standard
    // deviations above, and its standard deviation between `narrower` and `wider` times, what they are at the upper end
    // of the steps.
    static constexpr double higher = 0.03, wider = 1.01, narrower = 0.96;

    double number = 0.0, own = 1.0;      // see Coupling
    double bar = 0.0;                    // the highest draw so far
    std::int32_t winner = -1;            // its arm, or the cluster of untouched arms that it belongs to
    std::int32_t first = -1;             // the leaf of the arm that was drawn first, to set the bar
    double clock = 0.0;                  // see `next`
    std::vector<std::int32_t> excluded;  // leaves of arms that may not be chosen, in order
    std::vector<std::int32_t> gone;      // (clusters,) number of untouched ones among them
    std::vector<std::vector<Bound>> bounds, block_bounds;  // (clusters, copies), (blocks, copies)
    std::vector<double> untouched_means, untouched_sds;    // (clusters,) of the draws of their untouched arms
    std::vector<double> weights;                           // scratch
    double means[Block::size], sds[Block::size], factors[Block::size], chances[Block::size];  // of the arms of a block

    Drawn given(const Drawn& of) const { return {of.x + of.y * number, of.y * own}; }
    static double draw(const Drawn& of, Stream& rng) { return of.x + of.y * rng.standard_normal(); }

    // ---------------------------------------------------------------- bounds that are kept

    static Bound& bound(const Rows& rows, std::vector<std::vector<Bound>>& of, std::size_t i) {
        if (of[i].empty()) of[i].resize(rows.copies());
        return of[i][rows.copy];
    }

    bool holds(const Rows& rows, const Bound& of, std::size_t c, std::uint64_t changed) const {
        return of.changes > std::max(changed, rows.all_changed) && of.around.holds(rows.mean[c]) &&
               of.spread == coarse_above(rows.variance[c]) && of.noise == rows.kind.coarse_variance() &&
               of.stray == rows.stray_prior.mean;
    }

    void look(const Rows& rows, std::size_t c) {
        Bound& of = bound(rows, bounds, c);
        if (holds(rows, of, c, rows.changed[c])) return;
        Bound all{rows.changes + 1,
                  rows.kind.around(rows.mean[c], rows.concentration()),
                  coarse_above(rows.variance[c]),
                  rows.kind.coarse_variance(),
                  rows.stray_prior.mean,
                  -infinity,
                  0.0,
                  infinity,
                  0.0};
        for (std::size_t b = rows.first_block[c]; b < rows.end_block[c]; ++b) {
            const Block& block = rows.blocks[b];
            if (block.leaves.empty()) continue;
            Bound& part = bound(rows, block_bounds, b);
            if (!holds(rows, part, c, block.changed)) look_at_block(rows, block, all, part);
            all.mean = std::max(all.mean, part.mean), all.widest = std::max(all.widest, part.widest);
            all.narrowest = std::min(all.narrowest, part.narrowest), all.factor += part.factor;
        }
        of = all;
    }
    // Without the leader, which is drawn first, and mostly is the arm whose evidence changes.
    void look_at_block(const Rows& rows, const Block& block, const Bound& its, Bound& to) {
        std::size_t n = block.leaves.size();
        const double noisier = std::sqrt(coarse_above(its.noise) / its.noise);  // the noise may be larger by a step
        const auto& kind = rows.kind.coarsened();
        in_vectors([&]() BANDITREE_INLINE {
            describe(rows, kind, block, its.around.to < 1e300 ? its.around.to : its.around.mean, its.spread);
            weigh(rows, block, its.around);
        });
        to = its;
        if (block.has(rows.leader)) {
            const std::size_t at = block.place(rows.leader);
            for (double* column : {means, sds, factors}) column[at] = column[n - 1];
            if (--n == 0) return;
        }
        to.widest = wider * noisier * highest(sds, n);
        to.narrowest = narrower * *std::min_element(sds, sds + n);
        to.mean = highest(means, n) + higher * to.widest;
        to.factor = 0.0;
        for (std::size_t i = 0; i < n; ++i) to.factor += factors[i];
    }
    // What the arms of a block draw from, without the shared number, with the noise of `kind`.
    BANDITREE_INLINE void describe(const Rows& rows, const Kind& kind, const Block& block, double around,
                                   double spread) {
        const double* const __restrict plays = block.plays.data(), * const __restrict totals = block.totals.data();
        for (std::size_t i = 0, n = block.leaves.size(); i < n; ++i) {
            const Drawn of = kind.drawn(rows.believed(rows.concentration(), {plays[i], totals[i]}, around, spread));
            means[i] = of.x, sds[i] = of.y;
        }
    }
    BANDITREE_INLINE void weigh(const Rows& rows, const Block& block, const Around& around) {
        const double* const __restrict plays = block.plays.data(), * const __restrict totals = block.totals.data();
        const double* const __restrict as_stray = block.as_stray.data(), * const __restrict at_best =
                                                                             block.at_best.data();
        for (std::size_t i = 0, n = block.leaves.size(); i < n; ++i)
            factors[i] = rows.factor({as_stray[i], at_best[i]}, {plays[i], totals[i]}, around);
    }

    // ---------------------------------------------------------------- the stray

    // Draws the leaf of the arm that is the stray, or -1: arms by their factors, none with this weight.
    std::int32_t pick_stray(const Tree& tree, const Rows& rows, double none, Stream& rng) {
        const double of_leader = rows.leader < 0 ? 0.0 : rows.factor(tree, rows.leader);
        double known = of_leader;
        for (std::size_t c = 0; c < rows.first_block.size(); ++c)
            if (rows.n_touched[c] > 0) known += bound(rows, bounds, c).factor;
        const double untouched_arms = tree.n_arms - rows.n_known;
        for (int tries = 0; tries < 64; ++tries) {
            double u = rng.random() * (known + untouched_arms + none);
            if (u >= known + untouched_arms) return -1;
            const std::int32_t leaf = u < of_leader ? rows.leader
                                      : u < known   ? stray_at(rows, u - of_leader)
                                                    : untouched_at(tree, rows, u - known);
            if (!is_excluded(leaf)) return leaf;
        }
        weights.clear();  // those excluded are likely strays: look at all the others
        std::vector<std::int32_t> leaves;
        for (std::int32_t arm = 0; arm < tree.n_arms; ++arm)
            if (!is_excluded(tree.node_of[arm])) leaves.push_back(tree.node_of[arm]);
        for (const std::int32_t leaf : leaves) weights.push_back(rows.factor(tree, leaf));
        weights.push_back(none);
        const std::size_t at = banditree::pick(weights.data(), weights.size(), rng.random());
        return at < leaves.size() ? leaves[at] : -1;
    }
    // The arm with evidence, but for the leader, at which the factors add up to u.
    std::int32_t stray_at(const Rows& rows, double u) {
        std::int32_t last = -1;
        for (std::size_t c = 0; c < rows.first_block.size(); ++c) {
            if (rows.n_touched[c] == 0) continue;
            const Bound& of = bound(rows, bounds, c);
            last = static_cast<std::int32_t>(c);
            if (u < of.factor) break;
            u -= of.factor;
        }
        const auto c = static_cast<std::size_t>(last);
        std::size_t chosen = rows.first_block[c];
        for (std::size_t b = chosen; b < rows.end_block[c]; ++b) {
            if (rows.blocks[b].leaves.empty()) continue;
            chosen = b;
            const double factor = bound(rows, block_bounds, b).factor;
            if (u < factor) break;
            u -= factor;
        }
        const Block& block = rows.blocks[chosen];
        in_vectors([&]() BANDITREE_INLINE { weigh(rows, block, bound(rows, bounds, c).around); });
        if (block.has(rows.leader)) factors[block.place(rows.leader)] = 0.0;
        std::size_t i = 0;
        for (; i + 1 < block.leaves.size() && u >= factors[i]; ++i) u -= factors[i];
        return block.leaves[i];
    }
    // The untouched arm of this rank.
    std::int32_t untouched_at(const Tree& tree, const Rows& rows, double rank) const {
        std::size_t c = 0;
        for (; c + 1 < rows.first_block.size() && rank >= rows.n_leaves[c] - rows.n_touched[c]; ++c)
            rank -= rows.n_leaves[c] - rows.n_touched[c];
        std::int32_t last = -1;
        for (std::int32_t leaf = tree.first(rows.node_of[c]), end = leaf + tree.n_children(rows.node_of[c]); leaf < end;
             ++leaf) {
            if (tree.content[leaf] < 0 || !untouched(rows, leaf)) continue;
            last = leaf;
            if (rank < 1.0) break;
            rank -= 1.0;
        }
        return last;
    }

    // ---------------------------------------------------------------- draws that pass the bar

    // At most the chance to pass the bar, in steps.
    BANDITREE_INLINE double tail_at_most(double x, double y) const {
        const double z = (bar - x) / y;
        double tail = z > 1.8 ? 0.03594 : 1.0;
        tail = z > 2.6 ? 0.004662 : tail;
        tail = z > 3.5 ? 0.0002327 : tail;
        return z > 5.0 ? 2.867e-7 : tail;
    }
    double chance_at_most(const Bound& of) const {
        return tail_at_most(of.mean + number * (number > 0.0 ? of.widest : of.narrowest), own * of.widest);
    }

    // Passes over arms that pass the bar with at most `chance` each, until a clock, set to an exponential number,
    // rings: each arm takes at least -ln(1 - chance) of its time. Returns how many of n are passed over, and u for the
    // arm where it rings: uniform, and that arm passes the bar if it is below its own chance.
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

    void try_cluster(const Rows& rows, std::size_t c, Stream& rng) {
        const Bound& of = bound(rows, bounds, c);
        const std::size_t from = rows.first_block[c], to = rows.end_block[c];
        if (chance_at_most(of) < seldom) return try_blocks(rows, c, of, from, to, rng);
        for (std::size_t b = from; b < to; ++b) {
            if (rows.blocks[b].leaves.empty()) continue;
            const Bound& part = bound(rows, block_bounds, b);
            if (chance_at_most(part) < seldom) {
                try_blocks(rows, c, part, b, b + 1, rng);
            } else {
                try_each(rows, rows.blocks[b], c, rng);
            }
        }
    }
    // Tries the arms of some blocks of a cluster, all of which pass the bar seldom.
    void try_blocks(const Rows& rows, std::size_t c, const Bound& of, std::size_t block, std::size_t end, Stream& rng) {
        double left = 0.0, skip = 0.0, u = 0.0;
        for (std::size_t b = block; b < end; ++b) left += static_cast<double>(rows.blocks[b].leaves.size());
        for (double over; (over = next(left, chance_at_most(of), u, rng)) < left; left -= over + 1.0) {
            skip += over;
            while (skip >= static_cast<double>(rows.blocks[block].leaves.size()))
                skip -= static_cast<double>(rows.blocks[block++].leaves.size());
            const Block& here = rows.blocks[block];
            const auto i = static_cast<std::size_t>(skip);
            skip += 1.0;
            const Drawn drawn = given(
                rows.kind.drawn(rows.believed(rows.concentration(), here.seen(i), rows.mean[c], rows.variance[c])));
            if (u < chance_beyond(drawn) && competes(here.leaves[i])) raise_beyond(drawn, here.leaves[i], rng);
        }
    }
    void try_each(const Rows& rows, const Block& block, std::size_t c, Stream& rng) {
        const std::size_t n = block.leaves.size();
        in_vectors([&]() BANDITREE_INLINE {
            describe(rows, rows.kind, block, rows.mean[c], rows.variance[c]);
            for (std::size_t i = 0; i < n; ++i) {
                means[i] += number * sds[i], sds[i] *= own;
                chances[i] = tail_at_most(means[i], sds[i]);
            }
        });
        double u = 0.0;
        for (std::size_t i = 0; i < n; ++i) {
            const Drawn of{means[i], sds[i]};
            if (chances[i] < seldom) {
                if (next(1.0, chances[i], u, rng) < 1.0 && u < chance_beyond(of) && competes(block.leaves[i]))
                    raise_beyond(of, block.leaves[i], rng);
            } else if (competes(block.leaves[i])) {
                raise(draw(of, rng), block.leaves[i]);
            }
        }
    }
    bool competes(std::int32_t leaf) const { return leaf != first && !is_excluded(leaf); }

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
        gone.assign(limits ? rows.n_leaves.size() : 0, 0);
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
                if (block.plays[i] > most && !is_excluded(block.leaves[i]))
                    best = block.leaves[i], most = block.plays[i];
        return best;
    }

    // Untouched arms of one cluster are equal. After one that passes the bar, the others go on with a higher bar.
    void try_untouched(const Tree& tree, const Rows& rows, Stream& rng) {
        const std::size_t n_clusters = rows.n_leaves.size();
        untouched_means.resize(n_clusters), untouched_sds.resize(n_clusters);
        in_vectors([&]() BANDITREE_INLINE {
            double* const __restrict x = untouched_means.data(), * const __restrict y = untouched_sds.data();
            const double* const __restrict mean = rows.mean.data(), * const __restrict spread = rows.variance.data();
            for (std::size_t c = 0; c < n_clusters; ++c) {
                const Drawn of = rows.kind.drawn(rows.believed(rows.concentration(), {0.0, 0.0}, mean[c], spread[c]));
                x[c] = of.x + of.y * number, y[c] = of.y * own;
            }
        });
        for (std::size_t c = 0; c < n_clusters; ++c) {
            double n = rows.n_leaves[c] - rows.n_touched[c] - (gone.empty() ? 0 : gone[c]), u = 0.0;
            if (!(n > 0.0)) continue;
            const Drawn of{untouched_means[c], untouched_sds[c]};
            for (double chance = tail_at_most(of.x, of.y); n > 0.0; n -= 1.0) {
                if (!(chance < seldom)) chance = chance_beyond(of);
                n -= next(n, chance, u, rng);
                if (n > 0.0 && u < chance_beyond(of)) raise_beyond(of, rows.node_of[c], rng);
            }
        }
        if (tree.content[winner] < 0) winner = any_member(tree, rows, winner, rng);
    }
    static bool untouched(const Rows& rows, std::int32_t leaf) { return !(rows.seen(leaf).plays > 0.0); }

    std::int32_t any_member(const Tree& tree, const Rows& rows, std::int32_t node, Stream& rng) const {
        std::int32_t leaf;
        do
            leaf = tree.first(node) +
                   static_cast<std::int32_t>(rng.integers(static_cast<std::uint64_t>(tree.n_children(node))));
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
