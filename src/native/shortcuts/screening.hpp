// Finds the arm with the highest draw without drawing all of them, exactly. One draw sets a bar; most other arms pass it so
// rarely that a bound on their chance decides, many arms at a time. For adaptive beliefs about rewards in [0, 1]; others
// draw every arm. docs/exact-sampling.md derives the bounds.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "beliefs/adaptive.hpp"
#include "beliefs/densities.hpp"

namespace banditree {

template <class Kind>
struct Screening {
    std::int32_t min_wide = 0;
    bool covers(const Tree&) const { return false; }
    template <class Rows>
    std::int32_t pick(const Tree&, const Rows&, Stream&) {
        return 0;
    }
};

template <>
struct Screening<AdaptiveBeta> {
    using Rows = AdaptiveRows<AdaptiveBeta>;
    static constexpr double lowest = -std::numeric_limits<double>::infinity();
    static constexpr std::int32_t never = std::numeric_limits<std::int32_t>::max();
    static constexpr double safe = 11.0;                  // a bound of e^-11 on the chance to pass the bar is enough
    static constexpr double rarely = 1.2340980408667956e-4;  // e^-9, at least the chance that a screened one passes
    static constexpr double often = 0.02;                 // chance from which on it is computed whether an arm is a stray
    std::int32_t min_wide = 48;                           // with fewer arms, drawing all of them is as fast

    bool covers(const Tree& tree) const { return min_wide != never && tree.n_arms >= min_wide; }

    std::int32_t pick(const Tree& tree, const Rows& rows, Stream& rng) {
        bar = lowest;
        chance_at_bar = 0.0;
        strays.clear();
        winner = -1;
        skipped.clear();
        odds_limit = ln(often / (1.0 - often)) - ln(rows.chance / (1.0 - rows.chance));
        if (!rows.touched.empty()) try_arm(rows, rows.touched[rows.leader], rng);
        for (std::size_t i = 0; i < rows.touched.size(); ++i)
            if (i != rows.leader) try_known(rows, rows.touched[i], rng);
        if (rows.touched.size() < static_cast<std::size_t>(tree.n_arms)) try_untouched(tree, rows, rng);
        revive_skipped(tree, rows, rng);
        return winner;
    }

  private:
    double odds_limit = 0.0;
    double bar = 0.0, chance_at_bar = 0.0;  // the highest draw so far, on log odds and as a probability
    std::int32_t winner = -1;
    BetaLogOdds density;  // the one looked at
    struct Skipped {
        std::int32_t node;  // a leaf, or a cluster for those of its arms that are untouched and follow it
        double members;
        bool follows;  // known to follow its cluster; else that is still open
    };
    std::vector<Skipped> skipped;
    std::vector<std::int32_t> strays;  // untouched arms that do not follow their clusters now

    void raise(double draw, std::int32_t leaf) {
        bar = draw;
        winner = leaf;
        const double e = exp(-std::fabs(bar));
        chance_at_bar = bar < 0.0 ? e / (1.0 + e) : 1.0 / (1.0 + e);
    }

    // Whether Beta(n m, n (1 - m)) passes the bar x with a chance of at most exp(-least). That chance is at most
    // exp(-n KL(m, x)), and KL(m, x) is at least d^2 / (2 v) with d = x - m and v = m (1 - m) + 2/3 (1 - 2 m) d - d^2 / 2.
    bool hopeless(double n, double mean, double least) const {
        const double d = chance_at_bar - mean;
        return d > 0.0 && n * d * d > 2.0 * least * (mean * (1.0 - mean) + (2.0 / 3.0) * (1.0 - 2.0 * mean) * d - 0.5 * d * d);
    }

    // Whether an arm follows its cluster. Its chance not to is computed only if it may be above u.
    bool follows(const Rows& rows, const Known& known, double u) const {
        const double n = known.seen.plays, k = rows.concentration();
        const double centre = rows.mean[known.parent], off = known.seen.total - n * centre;
        const bool open = u < often || k < 1.0 || k * off * off > (odds_limit - known.room) * (k + n) * n * centre * (1.0 - centre);
        return !open || u >= rows.stray(known.leaf, known.seen, known.parent);
    }

    void try_known(const Rows& rows, const Known& known, Stream& rng) {
        // As Rows::believe, with one division: variance = part / (k + n + 1), and the strength is 1 / variance - 1.
        const double n = known.seen.plays, k = rows.concentration(), sharpness = rows.set.sharpness;
        const double per_play = 1.0 / (k + n), share = k * per_play, whole = k + n + 1.0;
        const double mean = share * rows.mean[known.parent] + known.seen.total * per_play;
        const double part = 1.0 + share * share * rows.variance[known.parent] * whole;
        if (!hopeless(sharpness * (whole - part), mean, safe * part)) return try_arm(rows, known, rng);
        const bool passes_alone = !hopeless(sharpness * (2.0 * AdaptiveBeta::own + n), known.mean_alone, safe);
        if (passes_alone && !follows(rows, known, rng.random())) {
            const double draw = rows.kind.draw(rows.kind.alone(known.seen, sharpness), rng);
            if (draw > bar) raise(draw, known.leaf);
            return;
        }
        skipped.push_back({known.leaf, 1.0, passes_alone});
    }

    static Drawn of_known(const Rows& rows, const Known& known, bool with_cluster) {
        if (!with_cluster) return rows.kind.alone(known.seen, rows.set.sharpness);
        double mean, variance;
        rows.believe(rows.concentration(), known.seen.plays, known.seen.total, known.parent, mean, variance);
        return rows.kind.following(mean, variance, rows.set.sharpness);
    }

    void try_arm(const Rows& rows, const Known& known, Stream& rng) {
        const double draw = rows.kind.draw(of_known(rows, known, follows(rows, known, rng.random())), rng);
        if (draw > bar) raise(draw, known.leaf);
    }

    static bool untouched(const Rows& rows, std::int32_t leaf) { return !(rows.seen(leaf).plays > 0.0); }
    bool is_stray(std::int32_t leaf) const { return std::find(strays.begin(), strays.end(), leaf) != strays.end(); }

    // Untouched arms: a few are strays, each with the same chance; the others of one cluster are all alike.
    void try_untouched(const Tree& tree, const Rows& rows, Stream& rng) {
        choose_strays(tree, rows, rng);
        const Drawn alone = rows.kind.alone({0.0, 0.0}, rows.set.sharpness);
        for (const std::int32_t leaf : strays) {
            const double draw = rows.kind.draw(alone, rng);
            if (draw > bar) raise(draw, leaf);
        }
        for (std::size_t c = 0; c < rows.n_leaves.size(); ++c) {
            std::int32_t members = rows.n_leaves[c] - rows.n_touched[c];
            for (const std::int32_t leaf : strays) members -= rows.cluster(tree, tree.parent[leaf]) == c;
            if (members > 0) try_cluster(rows, c, members, rng);
        }
        if (tree.content[winner] < 0) winner = any_member(tree, rows, winner, rng);
    }

    void choose_strays(const Tree& tree, const Rows& rows, Stream& rng) {
        strays.clear();
        const double gap = ln_one_minus(rows.chance);
        const double n_left = tree.n_arms - static_cast<double>(rows.touched.size());
        for (double rank = std::floor(ln(rng.random_open()) / gap); rank < n_left;
             rank += 1.0 + std::floor(ln(rng.random_open()) / gap)) {
            std::int32_t leaf;
            do leaf = tree.node_of[rng.integers(static_cast<std::uint64_t>(tree.n_arms))];
            while (!untouched(rows, leaf) || is_stray(leaf));
            strays.push_back(leaf);
        }
    }

    std::int32_t any_member(const Tree& tree, const Rows& rows, std::int32_t node, Stream& rng) const {
        std::int32_t leaf;
        do leaf = tree.first(node) + static_cast<std::int32_t>(rng.integers(static_cast<std::uint64_t>(tree.n_children(node))));
        while (tree.content[leaf] < 0 || !untouched(rows, leaf) || is_stray(leaf));
        return leaf;
    }

    Drawn of_skipped(const Rows& rows, const Skipped& one, Stream& rng) const {
        const Known& known = rows.known(one.node);
        return of_known(rows, known, one.follows || follows(rows, known, rng.random()));
    }

    static Drawn of_members(const Rows& rows, std::size_t c) {
        double mean, variance;
        rows.believe(rows.concentration(), 0.0, 0.0, c, mean, variance);
        return rows.kind.following(mean, variance, rows.set.sharpness);
    }

    // The highest of many equal draws, if it passes the bar. Draws raise the bar until so few of those left are expected
    // to pass it that only these need be drawn.
    void try_cluster(const Rows& rows, std::size_t c, std::int32_t members, Stream& rng) {
        const Drawn of = of_members(rows, c);
        const double n = of.x + of.y;
        if (hopeless(n, of.x / n, safe + ln(members))) {
            skipped.push_back({rows.node_of[c], static_cast<double>(members), true});
            return;
        }
        density.clear();
        density.add(of.x, of.y);
        for (; members > 0; --members) {
            const Tail tail = tail_at_bar();
            if (tail.area < 1.0 && tail.area * members < 2.0) {
                const double between = ln_one_minus(tail.area);
                for (double at = std::floor(ln(rng.random_open()) / between); at < members;
                     at += 1.0 + std::floor(ln(rng.random_open()) / between))
                    try_beyond(tail, rows.node_of[c], rng);
                return;
            }
            const double draw = rows.kind.draw(of, rng);
            if (draw > bar) raise(draw, rows.node_of[c]);
        }
    }

    // The tangent of ln f at the bar, which lies above ln f: the area below it bounds the chance to pass the bar.
    struct Tail {
        double from, log_density, slope, area;
    };
    Tail tail_at_bar() const {
        const double slope = bar > lowest ? density.slope(0, BetaLogOdds::Place(bar)) : 0.0;
        if (!(slope < 0.0)) return {bar, 0.0, 0.0, std::numeric_limits<double>::infinity()};
        const double log_density = density.log_density(0, bar);
        return {bar, log_density, slope, exp(log_density) / -slope};
    }

    // Draws from below the tangent, and keeps the draw if it is also below the density.
    void try_beyond(const Tail& tail, std::int32_t node, Stream& rng) {
        const double step = ln(rng.random_open()) / tail.slope, draw = tail.from + step;
        const double under = density.log_density(0, draw) - tail.log_density - tail.slope * step;
        if (ln(rng.random_open()) < under && draw > bar) raise(draw, node);
    }

    // Each that was skipped passes the bar with a chance of at most `rarely`.
    void revive_skipped(const Tree& tree, const Rows& rows, Stream& rng) {
        const double n = static_cast<double>(skipped.size()), u = rng.random_open();
        if (u < 1.0 - n * rarely) return;
        const double between = ln_one_minus(rarely);
        for (double at = std::floor(ln(u) / between); at < n; at += 1.0 + std::floor(ln(rng.random_open()) / between)) {
            const Skipped& one = skipped[static_cast<std::size_t>(at)];
            const bool leaf = tree.content[one.node] >= 0;
            const Drawn of = leaf ? of_skipped(rows, one, rng) : of_members(rows, rows.cluster(tree, one.node));
            density.clear();
            density.add(of.x, of.y);
            const Tail tail = tail_at_bar();
            if (rng.random() * rarely < tail.area * one.members) try_beyond(tail, one.node, rng);
        }
        if (tree.content[winner] < 0) winner = any_member(tree, rows, winner, rng);
    }
};

}  // namespace banditree
