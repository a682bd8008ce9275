// Finds the arm with the highest draw without drawing all of them, exactly. One draw sets a bar; most other arms pass it so
// rarely that a bound on their chance decides, many arms at a time. docs/exact-sampling.md derives the bounds.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "beliefs/adaptive.hpp"
#include "numerics/normal.hpp"
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
    static constexpr double often = 0.02;       // chance from which on it is computed whether an arm is a stray
    static constexpr double seldom = 0.02;
    static constexpr double rare = 4.3;         // square of a normal that is exceeded more rarely than `seldom`, see Kind::at_bar
    static constexpr double far = 2.07;         // such a normal
    static constexpr double unheard_of = 11.0;  // normal that is never drawn, not by the highest of a million: exp(-60)
    std::int32_t min_wide = 48;                 // with fewer arms, drawing all of them is as fast

    bool covers(const Tree& tree) const { return min_wide != never && tree.n_arms >= min_wide; }

    // Without the arms that the limits exclude, which may be null.
    std::int32_t pick(const Tree& tree, const Rows& rows, const Limits* limits, Stream& rng) {
        bar = mean_at_bar = lowest;
        winner = -1;
        odds_limit = rows.chance > 0.0 ? ln(often / (1.0 - often)) - ln(rows.chance / (1.0 - rows.chance)) : never;
        exclude(tree, rows, limits);
        const std::int32_t first = find_first(rows);
        if (first >= 0) try_first(tree, rows, first, rng);
        const double between = ln_one_minus(often), between_hits = ln_one_minus(seldom);
        double begin = 0.0, next_low = skip(rng, between), next_hit = skip(rng, between_hits);  // ranks of arms
        bounds.resize(rows.blocks.size());
        for (std::size_t b = 0; b < rows.blocks.size(); ++b) {
            const Block& block = rows.blocks[b];
            if (block.leaves.empty()) continue;
            const double end = begin + static_cast<double>(block.leaves.size());
            const bool pass_seldom = all_pass_seldom(rows, b);
            if (!pass_seldom) in_vectors([&]() BANDITREE_INLINE { describe(rows, block, 0, block.leaves.size()); });
            for (double rank = begin; rank < end; rank += 1.0) {
                if (pass_seldom) rank = std::max(rank, std::min(next_low, next_hit));
                if (!(rank < end)) break;
                const bool is_low = rank == next_low, may_hit = rank == next_hit;
                if (is_low) next_low += 1.0 + skip(rng, between);
                if (may_hit) next_hit += 1.0 + skip(rng, between_hits);
                const auto i = static_cast<std::size_t>(rank - begin);
                if (block.leaves[i] == first || is_excluded(block.leaves[i])) continue;
                if (pass_seldom) describe(rows, block, i, i + 1);
                try_known(rows, block, i, is_low, may_hit, rng);
            }
            begin = end;
        }
        if (rows.n_known < tree.n_arms) try_untouched(tree, rows, rng);
        return winner;
    }

  private:
    double odds_limit = 0.0;                      // log factor from which on an arm is a stray often
    double bar = 0.0, mean_at_bar = 0.0, factor = 0.0;  // the highest draw so far, and what Kind::at_bar says of it
    std::int32_t winner = -1;                     // its arm, or the cluster of untouched arms that it belongs to
    std::vector<std::int32_t> strays;             // untouched arms that do not follow their clusters in this decision
    std::vector<std::int32_t> excluded;           // leaves of arms that may not be chosen, in order
    std::vector<std::int32_t> gone;               // (clusters,) number of untouched ones among them
    std::int32_t n_gone = 0;                      // in all clusters
    std::vector<double> untouched_means, untouched_sds;  // (clusters,) what untouched arms are drawn from
    double means[Block::size], sds[Block::size], factors[Block::size];  // of the arms of a block, see `describe`

    // What holds for all arms of a block in one copy, as long as the evidence is the same and their cluster has hardly moved.
    struct Bound {
        std::uint64_t changes = 0;
        std::size_t copy = 0;
        double low = 0.0, high = 0.0, spread = 0.0, plays_per_arm = 0.0, stray_prior = 0.0;  // what it holds for
        double mean = 0.0, variance = 0.0, stray_mean = 0.0, stray_variance = 0.0, factor = 0.0;
    };
    static constexpr std::size_t few = 4;                // arms of a block that are tried one by one
    static constexpr std::size_t n_bounds = 8;           // copies for which bounds are kept
    std::vector<std::vector<Bound>> bounds;              // (blocks,)

    // Whether no arm of a block has to be tried, but for those that may hit or whose random number for strays is low.
    bool all_pass_seldom(const Rows& rows, std::size_t b) {
        const Block& block = rows.blocks[b];
        if (Kind::learned || block.leaves.size() < few) return false;  // learned noise changes with every reward
        if (bounds[b].empty()) bounds[b].resize(n_bounds);
        const double around = rows.mean[block.cluster], spread = rows.variance[block.cluster];
        Bound& of = bounds[b][rows.copy % n_bounds];
        const bool holds = of.changes > std::max(block.changed, rows.all_changed) && of.copy == rows.copy && of.low <= around &&
                           around <= of.high && spread <= of.spread && rows.plays_per_arm <= of.plays_per_arm &&
                           rows.stray_prior.mean <= of.stray_prior;
        if (!holds) bind(rows, block, around, spread, of);
        if (!is_below(of.mean, of.variance)) return false;
        return of.factor < odds_limit || is_below(of.stray_mean, of.stray_variance);
    }
    void bind(const Rows& rows, const Block& block, double around, double spread, Bound& of) const {
        const double leeway = rows.kind.leeway(around), later = 1.02;
        of = {rows.changes + 1, rows.copy, around - leeway, around + leeway, later * spread, 1.01 * rows.plays_per_arm,
              rows.stray_prior.mean + leeway, lowest, 0.0, lowest, 0.0, lowest};
        for (std::size_t i = 0; i < block.leaves.size(); ++i) {
            const Seen seen = block.seen(i);
            double mean, variance;
            const double own = rows.believe_arm(seen, of.high, of.spread, mean, variance);
            const auto [stray_mean, stray_variance] = rows.believe_alone(seen);
            of.mean = std::max(of.mean, mean);
            of.variance = std::max(of.variance, rows.sharpened_at_most(variance, own, later));
            of.stray_mean = std::max(of.stray_mean, stray_mean + leeway);
            of.stray_variance = std::max(of.stray_variance, rows.sharpened_alone_at_most(stray_variance, later));
            of.factor = std::max(of.factor, rows.kind.most_factor(seen, block.rooms[i], rows.concentration(), of.low, of.high, rows.stray_prior));
        }
        of.factor += 1e-9 * std::abs(of.factor);
    }

    bool is_excluded(std::int32_t leaf) const {
        return !excluded.empty() && std::binary_search(excluded.begin(), excluded.end(), leaf);
    }
    void exclude(const Tree& tree, const Rows& rows, const Limits* limits) {
        excluded.clear();
        gone.assign(rows.n_leaves.size(), 0);
        n_gone = 0;
        if (!limits) return;
        for (const std::int32_t arm : limits->arms) {
            const std::int32_t leaf = tree.node_of[arm];
            excluded.push_back(leaf);
            if (!untouched(rows, leaf)) continue;
            ++gone[rows.cluster(tree, tree.parent[leaf])];
            ++n_gone;
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
    void try_first(const Tree& tree, const Rows& rows, std::int32_t leaf, Stream& rng) {
        raise(rows, rows.draw(rows.drawn(tree, leaf, rng.random()), rng), leaf);
    }

    void raise(const Rows& rows, double draw, std::int32_t node) {
        if (!(draw > bar)) return;
        bar = draw;
        winner = node;
        rows.kind.at_bar(bar, mean_at_bar, factor);
    }

    // Whether draws with this mean and at most this variance pass the bar seldom at most.
    bool is_below(double mean, double variance) const {
        const double away = mean_at_bar - mean;
        return away > 0.0 && away * away > rare * factor * variance;
    }

    // What arms of a block are drawn from if they follow their cluster, and at least the log factor by which they may not.
    BANDITREE_INLINE void describe(const Rows& rows, const Block& block, std::size_t from, std::size_t to) {
        const double around = rows.mean[block.cluster], spread = rows.variance[block.cluster], k = rows.concentration();
        const double *const __restrict plays = block.plays.data(), *const __restrict totals = block.totals.data();
        const double* const __restrict rooms = block.rooms.data();
        for (std::size_t i = from; i < to; ++i) {
            const Seen seen{plays[i], totals[i]};
            double mean, variance;
            const double own = rows.believe_arm(seen, around, spread, mean, variance);
            const Drawn of = rows.drawn_following(mean, variance, own);
            means[i] = of.x, sds[i] = of.y;
            factors[i] = rows.kind.most_factor(seen, rooms[i], k, around, around, rows.stray_prior);
        }
    }

    // Tries an arm that was described. If it passes the bar seldom at most, it does so only where it `may_hit`, which is as
    // often as seldom. Its chance to be a stray is compared with a random number, of which is known whether it is low, below
    // `often`; the chance is computed only if it may be above. If strays too pass seldom, it need not be known which it is.
    void try_known(const Rows& rows, const Block& block, std::size_t i, bool is_low, bool may_hit, Stream& rng) {
        const Drawn of{means[i], sds[i]};
        const bool is_rare = bar - of.x > far * of.y, may_stray = is_low || factors[i] > odds_limit;
        if (is_rare && !may_hit && !may_stray) return;
        const std::int32_t leaf = block.leaves[i];
        const Seen seen = block.seen(i);
        const double around = rows.mean[block.cluster];
        if (is_rare) {
            const auto [stray_mean, stray_variance] = rows.believe_alone(seen);
            if (is_below(stray_mean, rows.sharpened_alone_at_most(stray_variance, 1.0))) {
                if (may_hit) try_both(rows, leaf, seen, around, of, rng);
                return;
            }
        }
        if (may_stray) {
            const double u = is_low ? often * rng.random() : often + (1.0 - often) * rng.random();
            if (u < rows.stray(leaf, seen, around)) return raise(rows, rows.draw(rows.drawn_alone(seen), rng), leaf);
        }
        if (!is_rare) return raise(rows, rows.draw(of, rng), leaf);
        if (may_hit && seldom * rng.random() < chance_beyond(of)) raise_beyond(rows, of, leaf, rng);
    }
    void try_both(const Rows& rows, std::int32_t leaf, const Seen& seen, double around, const Drawn& following, Stream& rng) {
        const double u = seldom * rng.random(), chance = chance_beyond(following);
        const Drawn alone = rows.drawn_alone(seen);
        const double stray_chance = chance_beyond(alone);
        if (u >= std::max(chance, stray_chance)) return;
        const double stray = rows.stray(leaf, seen, around), as_stray = stray * stray_chance;
        if (u < as_stray) return raise_beyond(rows, alone, leaf, rng);
        if (u < as_stray + (1.0 - stray) * chance) raise_beyond(rows, following, leaf, rng);
    }
    double chance_beyond(const Drawn& of) const { return normal_tail_lane((bar - of.x) / of.y); }
    void raise_beyond(const Rows& rows, const Drawn& of, std::int32_t leaf, Stream& rng) {
        raise(rows, of.x + of.y * normal_beyond((bar - of.x) / of.y, rng), leaf);
    }

    // Untouched arms: a few are strays, each with the same chance; the others of one cluster are all alike.
    void try_untouched(const Tree& tree, const Rows& rows, Stream& rng) {
        choose_strays(tree, rows, rng);
        const Drawn alone = rows.drawn_alone({0.0, 0.0});
        for (const std::int32_t leaf : strays) raise(rows, rows.draw(alone, rng), leaf);
        const std::size_t n_clusters = rows.n_leaves.size();
        untouched_means.resize(n_clusters), untouched_sds.resize(n_clusters);
        in_vectors([&]() BANDITREE_INLINE {
            double *const __restrict means_of = untouched_means.data(), *const __restrict sds_of = untouched_sds.data();
            for (std::size_t c = 0; c < n_clusters; ++c) {
                double mean, variance;
                rows.believe_arm({0.0, 0.0}, rows.mean[c], rows.variance[c], mean, variance);
                const Drawn of = rows.drawn_following(mean, variance, 0.0);
                means_of[c] = of.x, sds_of[c] = of.y;
            }
        });
        for (std::size_t c = 0; c < n_clusters; ++c) {
            std::int32_t members = rows.n_leaves[c] - rows.n_touched[c] - gone[c];
            for (const std::int32_t leaf : strays) members -= rows.cluster(tree, tree.parent[leaf]) == c;
            if (members <= 0) continue;
            const Drawn of{untouched_means[c], untouched_sds[c]};
            if (bar - of.x < unheard_of * of.y) try_equal(rows, of, members, rows.node_of[c], rng);
        }
        if (tree.content[winner] < 0) winner = any_member(tree, rows, winner, rng);
    }

    static bool untouched(const Rows& rows, std::int32_t leaf) { return !(rows.seen(leaf).plays > 0.0); }
    bool is_stray(std::int32_t leaf) const { return std::find(strays.begin(), strays.end(), leaf) != strays.end(); }

    void choose_strays(const Tree& tree, const Rows& rows, Stream& rng) {
        strays.clear();
        if (!(rows.chance > 0.0)) return;
        const double between = ln_one_minus(rows.chance), n_left = tree.n_arms - n_gone - rows.n_known;
        for (double at = skip(rng, between); at < n_left; at += 1.0 + skip(rng, between)) {
            std::int32_t leaf;
            do leaf = tree.node_of[rng.integers(static_cast<std::uint64_t>(tree.n_arms))];
            while (!untouched(rows, leaf) || is_stray(leaf) || is_excluded(leaf));
            strays.push_back(leaf);
        }
    }

    std::int32_t any_member(const Tree& tree, const Rows& rows, std::int32_t node, Stream& rng) const {
        std::int32_t leaf;
        do leaf = tree.first(node) + static_cast<std::int32_t>(rng.integers(static_cast<std::uint64_t>(tree.n_children(node))));
        while (tree.content[leaf] < 0 || !untouched(rows, leaf) || is_stray(leaf) || is_excluded(leaf));
        return leaf;
    }

    // How many do not happen before one does, if each happens with chance 1 - exp(between).
    static double skip(Stream& rng, double between) { return std::floor(ln(rng.random_open()) / between); }

    // The highest of equal draws, if it passes the bar. If few are expected to pass, only these are drawn; else draws raise
    // the bar until few of those left are expected to pass.
    void try_equal(const Rows& rows, const Drawn& of, std::int32_t members, std::int32_t node, Stream& rng) {
        for (; members > 0; --members) {
            const double z = (bar - of.x) / of.y;
            if (members > 1 && z > 0.0) {
                const double chance = normal_tail_lane(z);
                if (chance * members < 2.0) return draw_beyond(rows, of, z, chance, members, node, rng);
            }
            raise(rows, rows.draw(of, rng), node);
        }
    }

    void draw_beyond(const Rows& rows, const Drawn& of, double z, double chance, std::int32_t members, std::int32_t node, Stream& rng) {
        if (!(chance > 0.0)) return;
        const double between = ln_one_minus(chance);
        for (double at = skip(rng, between); at < members; at += 1.0 + skip(rng, between))
            raise(rows, of.x + of.y * normal_beyond(z, rng), node);
    }

    // A normal given that it exceeds z > 0: Marsaglia (1964), or plain draws where those often do.
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
