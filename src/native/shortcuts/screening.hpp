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
    static constexpr double safe = 22.0;                  // a bound of e^-22 on the chance to pass the bar is enough
    static constexpr double rarely = 2.0611536224385579e-9;  // e^-20, at least the chance that a screened one passes
    std::int32_t min_wide = 48;                           // with fewer arms, drawing all of them is as fast

    bool covers(const Tree& tree) const { return min_wide != never && tree.n_arms >= min_wide; }

    std::int32_t pick(const Tree& tree, const Rows& rows, Stream& rng) {
        bar = lowest;
        chance_at_bar = 0.0;
        strays.clear();
        winner = -1;
        skipped.clear();
        if (rows.leader >= 0) try_arm(tree, rows, rows.leader, rng);
        for (const std::int32_t leaf : rows.touched)
            if (leaf != rows.leader && !hopeless(tree, rows, leaf)) try_arm(tree, rows, leaf, rng);
        if (rows.touched.size() < static_cast<std::size_t>(tree.n_arms)) try_untouched(tree, rows, rng);
        revive_skipped(tree, rows, rng);
        return winner;
    }

  private:
    double bar = 0.0, chance_at_bar = 0.0;  // the highest draw so far, on log odds and as a probability
    std::int32_t winner = -1;
    BetaLogOdds density;  // the one looked at
    struct Skipped {
        std::int32_t node;  // a leaf, or a cluster for those of its arms that are untouched and follow it
        double members;
    };
    std::vector<Skipped> skipped;
    std::vector<std::int32_t> strays;  // untouched arms that do not follow their clusters now

    void raise(double draw, std::int32_t leaf) {
        bar = draw;
        winner = leaf;
        const double e = exp(-std::fabs(bar));
        chance_at_bar = bar < 0.0 ? e / (1.0 + e) : 1.0 / (1.0 + e);
    }

    // The largest variance p (1 - p) between a mean and the bar.
    double widest(double mean) const {
        if (chance_at_bar <= 0.5) return chance_at_bar * (1.0 - chance_at_bar);
        return mean >= 0.5 ? mean * (1.0 - mean) : 0.25;
    }

    // P(Beta(a, b) >= x) <= exp(-(a + b) KL(a / (a + b), x)), and KL(m, x) >= (x - m)^2 / (2 v) with v = widest(m).
    bool hopeless(const Tree& tree, const Rows& rows, std::int32_t leaf) {
        const Seen known = rows.seen(leaf);
        const double sharpness = rows.set.sharpness, n_own = 2.0 * AdaptiveBeta::own + known.plays;
        const double gap_own = chance_at_bar * n_own - (AdaptiveBeta::own + known.total);
        const double v = chance_at_bar <= 0.5 ? chance_at_bar * (1.0 - chance_at_bar) : 0.25;
        if (!(gap_own > 0.0 && sharpness * gap_own * gap_own > 2.0 * safe * v * n_own)) return false;
        double mean, variance;
        rows.believe(rows.concentration(), known.plays, known.total, rows.cluster(tree, tree.parent[leaf]), mean, variance);
        const double gap = chance_at_bar - mean;
        if (!(gap > 0.0 && sharpness * (1.0 - variance) * gap * gap > 2.0 * safe * widest(mean) * variance)) return false;
        skipped.push_back({leaf, 1.0});
        return true;
    }

    Drawn drawn(const Tree& tree, const Rows& rows, std::int32_t leaf, Stream& rng) const {
        const Seen known = rows.seen(leaf);
        const std::size_t parent = rows.cluster(tree, tree.parent[leaf]);
        if (rng.random() < rows.stray(leaf, known, parent)) return rows.kind.alone(known, rows.set.sharpness);
        double mean, variance;
        rows.believe(rows.concentration(), known.plays, known.total, parent, mean, variance);
        return rows.kind.following(mean, variance, rows.set.sharpness);
    }

    void try_arm(const Tree& tree, const Rows& rows, std::int32_t leaf, Stream& rng) {
        const double draw = rows.kind.draw(drawn(tree, rows, leaf, rng), rng);
        if (draw > bar) raise(draw, leaf);
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

    static Drawn of_members(const Rows& rows, std::size_t c) {
        double mean, variance;
        rows.believe(rows.concentration(), 0.0, 0.0, c, mean, variance);
        return rows.kind.following(mean, variance, rows.set.sharpness);
    }

    // The highest of many equal draws, if it passes the bar. Draws raise the bar until so few of those left are expected
    // to pass it that only these need be drawn.
    void try_cluster(const Rows& rows, std::size_t c, std::int32_t members, Stream& rng) {
        const Drawn of = of_members(rows, c);
        const double n = of.x + of.y, mean = of.x / n, gap = chance_at_bar - mean;
        if (bar > lowest && gap > 0.0 && n * gap * gap > 2.0 * widest(mean) * (safe + ln(members))) {
            skipped.push_back({rows.node_of[c], static_cast<double>(members)});
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
            const Drawn of = leaf ? drawn(tree, rows, one.node, rng) : of_members(rows, rows.cluster(tree, one.node));
            density.clear();
            density.add(of.x, of.y);
            const Tail tail = tail_at_bar();
            if (rng.random() * rarely < tail.area * one.members) try_beyond(tail, one.node, rng);
        }
        if (tree.content[winner] < 0) winner = any_member(tree, rows, winner, rng);
    }
};

}  // namespace banditree
