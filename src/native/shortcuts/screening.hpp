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
    static constexpr double rare = 4.3;         // square of a normal that is exceeded more rarely than `seldom`
    static constexpr double seldom = 0.02;
    static constexpr double unheard_of = 80.0;  // square of a normal that is never drawn: no random double is below exp(-38)
    static constexpr double unheard_of_by_any = 120.0;  // the same for the highest of a million
    std::int32_t min_wide = 48;                 // with fewer arms, drawing all of them is as fast

    bool covers(const Tree& tree) const { return min_wide != never && tree.n_arms >= min_wide; }

    // Without the arms that the limits exclude, which may be null.
    std::int32_t pick(const Tree& tree, const Rows& rows, const Limits* limits, Stream& rng) {
        bar = mean_at_bar = lowest;
        winner = -1;
        odds_limit = rows.chance > 0.0 ? ln(often / (1.0 - often)) - ln(rows.chance / (1.0 - rows.chance)) : never;
        exclude(tree, rows, limits);
        const std::size_t first = find_first(rows);
        if (first < rows.touched.size()) try_known(rows, rows.touched[first], rng.random() < often, false, rng);
        const double between = ln_one_minus(often), between_hits = ln_one_minus(seldom);
        double rank = 0.0, next_low = skip(rng, between), next_hit = skip(rng, between_hits);
        rows.each_touched([&](std::size_t i) {
            const bool is_low = rank == next_low, may_hit = rank == next_hit;
            rank += 1.0;
            if (is_low) next_low += 1.0 + skip(rng, between);
            if (may_hit) next_hit += 1.0 + skip(rng, between_hits);
            if (i != first && !is_excluded(rows.touched[i].leaf)) try_known(rows, rows.touched[i], is_low, may_hit, rng);
        });
        if (rows.touched.size() < static_cast<std::size_t>(tree.n_arms)) try_untouched(tree, rows, rng);
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

    // The place of the arm that sets the bar: the one that was played most. If all are excluded, the number of places.
    std::size_t find_first(const Rows& rows) const {
        if (rows.touched.empty() || !is_excluded(rows.touched[rows.leader].leaf)) return rows.leader;
        std::size_t best = rows.touched.size();
        double most = 0.0;
        rows.each_touched([&](std::size_t i) {
            if (rows.touched[i].seen.plays > most && !is_excluded(rows.touched[i].leaf)) best = i, most = rows.touched[i].seen.plays;
        });
        return best;
    }

    void raise(const Rows& rows, double draw, std::int32_t node) {
        if (!(draw > bar)) return;
        bar = draw;
        winner = node;
        rows.kind.at_bar(bar, mean_at_bar, factor);
    }

    // Whether an arm follows its cluster. Its chance not to is compared with a random number u, of which is known whether it
    // is low, below `often`; the chance is computed only if it may be above u.
    bool follows(const Rows& rows, const Known& known, bool is_low, Stream& rng) const {
        const double around = rows.mean[known.parent];
        if (!is_low && !rows.kind.may_stray(known, rows.concentration(), around, odds_limit, rows.stray_prior)) return true;
        const double u = is_low ? often * rng.random() : often + (1.0 - often) * rng.random();
        return u >= rows.stray(known.leaf, known.seen, around);
    }

    // Whether draws with this mean and at most this variance pass the bar seldom at most, or never.
    bool is_below(double mean, double variance, double square) const {
        const double away = mean_at_bar - mean;
        return away > 0.0 && away * away > square * factor * variance;
    }

    // Tries an arm with evidence. If it passes the bar seldom at most, it does so only where it `may_hit`, which is as often
    // as seldom. If that holds for a stray too, it need not be known whether it is one.
    void try_known(const Rows& rows, const Known& known, bool is_low, bool may_hit, Stream& rng) {
        const double around = rows.mean[known.parent];
        double mean, variance;
        const double own = rows.believe_arm(known.seen, around, rows.variance[known.parent], mean, variance);
        const double most = rows.sharpened_at_most(variance, own);
        const bool is_rare = is_below(mean, most, rare);
        if (is_rare) {
            const auto [stray_mean, stray_variance] = rows.believe_alone(known.seen);
            if (is_below(stray_mean, rows.sharpened_alone_at_most(stray_variance), rare)) {
                if (may_hit) try_both(rows, known, rows.drawn_following(mean, variance, own), rng);
                return;
            }
        }
        if (!follows(rows, known, is_low, rng)) return raise(rows, rows.draw(rows.drawn_alone(known.seen), rng), known.leaf);
        if (is_rare && (!may_hit || is_below(mean, most, unheard_of))) return;
        const Drawn of = rows.drawn_following(mean, variance, own);
        if (!is_rare) return raise(rows, rows.draw(of, rng), known.leaf);
        if (seldom * rng.random() < chance_beyond(of)) raise_beyond(rows, of, known.leaf, rng);
    }
    void try_both(const Rows& rows, const Known& known, const Drawn& following, Stream& rng) {
        const Drawn alone = rows.drawn_alone(known.seen);
        const double stray = rows.stray(known.leaf, known.seen, rows.mean[known.parent]);
        const double as_stray = stray * chance_beyond(alone), u = seldom * rng.random();
        if (u < as_stray) return raise_beyond(rows, alone, known.leaf, rng);
        if (u < as_stray + (1.0 - stray) * chance_beyond(following)) raise_beyond(rows, following, known.leaf, rng);
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
        for (std::size_t c = 0; c < rows.n_leaves.size(); ++c) {
            std::int32_t members = rows.n_leaves[c] - rows.n_touched[c] - gone[c];
            for (const std::int32_t leaf : strays) members -= rows.cluster(tree, tree.parent[leaf]) == c;
            if (members <= 0) continue;
            double mean, variance;
            rows.believe_arm({0.0, 0.0}, rows.mean[c], rows.variance[c], mean, variance);
            if (is_below(mean, rows.sharpened_at_most(variance, 0.0), unheard_of_by_any)) continue;
            try_equal(rows, rows.drawn_following(mean, variance, 0.0), members, rows.node_of[c], rng);
        }
        if (tree.content[winner] < 0) winner = any_member(tree, rows, winner, rng);
    }

    static bool untouched(const Rows& rows, std::int32_t leaf) { return !(rows.seen(leaf).plays > 0.0); }
    bool is_stray(std::int32_t leaf) const { return std::find(strays.begin(), strays.end(), leaf) != strays.end(); }

    void choose_strays(const Tree& tree, const Rows& rows, Stream& rng) {
        strays.clear();
        if (!(rows.chance > 0.0)) return;
        const double between = ln_one_minus(rows.chance), n_left = tree.n_arms - n_gone - static_cast<double>(rows.touched.size());
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
