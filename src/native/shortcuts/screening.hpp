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

// Draws every arm.
struct NoShortcut {
    std::int32_t min_wide = 0;
    bool covers(const Tree&) const { return false; }
    template <class Rows>
    std::int32_t pick(const Tree&, const Rows&, Stream&) {
        return 0;
    }
};

template <class Kind>
struct Screening : NoShortcut {};

template <>
struct Screening<AdaptiveBeta> {
    using Rows = AdaptiveRows<AdaptiveBeta>;
    static constexpr double lowest = -std::numeric_limits<double>::infinity();
    static constexpr std::int32_t never = std::numeric_limits<std::int32_t>::max();
    static constexpr double often = 0.02;      // chance from which on it is computed whether an arm is a stray
    static constexpr double far = 4.0;         // the bound exp(-far) and all below it are above the area of the tangent
    static constexpr double unheard_of = 38.0;  // no random double is below exp(-38)
    std::int32_t min_wide = 48;                // with fewer arms, drawing all of them is as fast

    bool covers(const Tree& tree) const { return min_wide != never && tree.n_arms >= min_wide; }

    std::int32_t pick(const Tree& tree, const Rows& rows, Stream& rng) {
        bar = lowest;
        chance_at_bar = 0.0;
        winner = -1;
        odds_limit = ln(often / (1.0 - often)) - ln(rows.chance / (1.0 - rows.chance));
        if (!rows.touched.empty()) try_known(rows, rows.touched[rows.leader], rng.random() < often, rng);
        const double between = ln_one_minus(often);
        double rank = 0.0, next_low = skip(rng, between);
        rows.each_touched([&](std::size_t i) {
            const bool is_low = rank++ == next_low;
            if (is_low) next_low += 1.0 + skip(rng, between);
            if (i != rows.leader) try_known(rows, rows.touched[i], is_low, rng);
        });
        if (rows.touched.size() < static_cast<std::size_t>(tree.n_arms)) try_untouched(tree, rows, rng);
        return winner;
    }

  private:
    double odds_limit = 0.0;                // log factor from which on an arm is a stray often
    double bar = 0.0, chance_at_bar = 0.0;  // the highest draw so far, on log odds and as a probability
    std::int32_t winner = -1;               // its arm, or the cluster of untouched arms that it belongs to
    BetaLogOdds density;                    // the one looked at
    std::vector<std::int32_t> strays;       // untouched arms that do not follow their clusters in this decision

    void raise(double draw, std::int32_t node) {
        if (!(draw > bar)) return;
        bar = draw;
        winner = node;
        const double e = exp(-std::fabs(bar));
        chance_at_bar = bar < 0.0 ? e / (1.0 + e) : 1.0 / (1.0 + e);
    }

    // Beta(n m, n (1 - m)) passes the bar x with a chance of at most exp(-n KL(m, x)), and KL(m, x) is at least
    // d^2 / (2 v) with d = x - m and v = m (1 - m) + 2/3 (1 - 2 m) d - d^2 / 2. Returns n d^2 / (2 v), 0 if d is negative.
    double distance(double n, double mean) const {
        const double d = chance_at_bar - mean;
        return d > 0.0 ? n * d * d / (2.0 * mean * (1.0 - mean) + (4.0 / 3.0) * (1.0 - 2.0 * mean) * d - d * d) : 0.0;
    }

    // Whether an arm follows its cluster. Its chance not to is compared with a random number u, of which is known whether it
    // is low, below `often`; the chance is computed only if it may be above u.
    bool follows(const Rows& rows, const Known& known, bool is_low, Stream& rng) const {
        const double n = known.seen.plays, k = rows.concentration();
        const double centre = rows.mean[known.parent], off = known.seen.total - n * centre;
        const bool is_open = k < 1.0 || k * off * off > (odds_limit - known.room) * (k + n) * n * centre * (1.0 - centre);
        if (!is_low && !is_open) return true;
        const double u = is_low ? often * rng.random() : often + (1.0 - often) * rng.random();
        return u >= rows.stray(known.leaf, known.seen, known.parent);
    }

    void try_known(const Rows& rows, const Known& known, bool is_low, Stream& rng) {
        if (!follows(rows, known, is_low, rng))
            return raise(rows.kind.draw(rows.kind.alone(known.seen, rows.stray_sharpness), rng), known.leaf);
        // As Rows::believe, with one division: variance = part / (k + n + 1), and the strength is 1 / variance - 1.
        const double n = known.seen.plays, k = rows.concentration();
        const double per_play = 1.0 / (k + n), share = k * per_play, whole = k + n + 1.0;
        const double mean = share * rows.mean[known.parent] + known.seen.total * per_play;
        const double part = 1.0 + share * share * rows.variance[known.parent] * whole;
        const double away = distance(rows.sharpness * (whole - part), mean);
        if (away > unheard_of * part) return;
        try_equal(rows, rows.kind.following(mean, part / whole, rows.sharpness), away / part, 1, known.leaf, rng);
    }

    // Untouched arms: a few are strays, each with the same chance; the others of one cluster are all alike.
    void try_untouched(const Tree& tree, const Rows& rows, Stream& rng) {
        choose_strays(tree, rows, rng);
        const Drawn alone = rows.kind.alone({0.0, 0.0}, rows.stray_sharpness);
        for (const std::int32_t leaf : strays) raise(rows.kind.draw(alone, rng), leaf);
        for (std::size_t c = 0; c < rows.n_leaves.size(); ++c) {
            std::int32_t members = rows.n_leaves[c] - rows.n_touched[c];
            for (const std::int32_t leaf : strays) members -= rows.cluster(tree, tree.parent[leaf]) == c;
            if (members <= 0) continue;
            double mean, variance;
            rows.believe(rows.concentration(), 0.0, 0.0, c, mean, variance);
            const Drawn of = rows.kind.following(mean, variance, rows.sharpness);
            try_equal(rows, of, distance(of.x + of.y, mean), members, rows.node_of[c], rng);
        }
        if (tree.content[winner] < 0) winner = any_member(tree, rows, winner, rng);
    }

    static bool untouched(const Rows& rows, std::int32_t leaf) { return !(rows.seen(leaf).plays > 0.0); }
    bool is_stray(std::int32_t leaf) const { return std::find(strays.begin(), strays.end(), leaf) != strays.end(); }

    void choose_strays(const Tree& tree, const Rows& rows, Stream& rng) {
        strays.clear();
        const double between = ln_one_minus(rows.chance), n_left = tree.n_arms - static_cast<double>(rows.touched.size());
        for (double at = skip(rng, between); at < n_left; at += 1.0 + skip(rng, between)) {
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

    // How many do not happen before one does, if each happens with chance 1 - exp(between).
    static double skip(Stream& rng, double between) { return std::floor(ln(rng.random_open()) / between); }

    // The highest of equal draws, if it passes the bar; `away` is their distance from it. If few are expected to pass, only
    // these are drawn; else draws raise the bar until few of those left are expected to pass.
    void try_equal(const Rows& rows, const Drawn& of, double away, std::int32_t members, std::int32_t node, Stream& rng) {
        if (away > far) {
            const double at_most = members * exp_above(-away);
            if (at_most < 0.5) {
                const double u = rng.random();
                if (u >= at_most) return;
                look_at(of);
                return draw_beyond(tail_at_bar(), members, ln_one_minus(u), node, rng);
            }
        }
        for (bool looked = false; members > 0; --members) {
            if (members > 1 && bar > lowest) {
                if (!looked) look_at(of);
                looked = true;
                const Tail tail = tail_at_bar();
                if (tail.area < 1.0 && tail.area * members < 2.0) return draw_beyond(tail, members, ln(rng.random_open()), node, rng);
            }
            raise(rows.kind.draw(of, rng), node);
        }
    }

    void look_at(const Drawn& of) {
        density.clear();
        density.add(of.x, of.y);
    }

    // The tangent of ln f at the bar, which lies above ln f: the area below it bounds the chance to pass the bar.
    struct Tail {
        double from, log_density, slope, area;
    };
    Tail tail_at_bar() const {
        const double slope = density.slope(0, BetaLogOdds::Place(bar));
        if (!(slope < 0.0)) return {bar, 0.0, 0.0, std::numeric_limits<double>::infinity()};
        const double log_density = density.log_density(0, bar);
        return {bar, log_density, slope, exp(log_density) / -slope};
    }

    // Draws, for each member with the chance of the tangent's area, from below the tangent, and keeps a draw that is also
    // below the density. `ln_u` is the logarithm of a random number, which says where the first of them is.
    void draw_beyond(const Tail& tail, std::int32_t members, double ln_u, std::int32_t node, Stream& rng) {
        const double between = ln_one_minus(tail.area);
        for (double at = std::floor(ln_u / between); at < members; at += 1.0 + skip(rng, between)) {
            const double step = ln(rng.random_open()) / tail.slope, draw = tail.from + step;
            const double under = density.log_density(0, draw) - tail.log_density - tail.slope * step;
            if (ln(rng.random_open()) < under) raise(draw, node);
        }
    }
};

}  // namespace banditree
