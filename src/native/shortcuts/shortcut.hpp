// Decides which nodes are walked by an exact shortcut, and keeps it up to date: Thompson's rule on Beta beliefs and UCB
// on counts have one for wide nodes, Thompson's rule on linear beliefs has one for all nodes.
#pragma once

#include <limits>
#include <memory>
#include <vector>

#include "beliefs/beta.hpp"
#include "beliefs/counts.hpp"
#include "beliefs/linear.hpp"
#include "rules/thompson.hpp"
#include "rules/ucb.hpp"
#include "shortcuts/few_roots.hpp"
#include "shortcuts/wide.hpp"
#include "shortcuts/wide_ucb.hpp"
#include "tree/shape.hpp"

namespace banditree {

// What a shortcut needs from a belief and a rule: a pair of numbers that determines the belief of a child, and the
// choice among classes of equal pairs. `min_wide`: with fewer children plain scores are faster
// (docs/notes/exact-sampling.md has the crossings). `untouched`: no reward was ever seen below a node, and its children
// share one prior, so they are all equal.
struct ThompsonOnBeta {
    using Wide = WideThompson;
    static bool untouched(const BetaRows& rows, std::int32_t node) { return rows.untouched(node); }
    static constexpr std::int32_t min_wide = 48;
    // If a prior parameter is below 1, the density is not log-concave, and its tangent bounds nothing.
    static bool holds(const BetaRows& rows) { return !rows.on_log_odds; }
    static BetaRows::Posterior pair(const BetaRows& rows, std::int32_t node) { return rows.posterior(node); }
    static std::int32_t pick(Wide& wide, const BetaRows&, const Thompson&, std::int32_t, Stream& rng,
                             const Excluded& gone) {
        return wide.pick(rng, gone);
    }
};

struct UCBOnCounts {
    using Wide = WideUCB;
    static bool untouched(const CountsRows& rows, std::int32_t node) { return rows.count[node] == 0.0; }
    static constexpr std::int32_t min_wide = 40;
    struct Pair {
        double count, total;
    };
    static bool holds(const CountsRows&) { return true; }
    static Pair pair(const CountsRows& rows, std::int32_t node) { return {rows.count[node], rows.total[node]}; }
    static std::int32_t pick(Wide& wide, const CountsRows& rows, const UCB& rule, std::int32_t node, Stream& rng,
                             const Excluded& gone) {
        return wide.pick(rule.width(rows, node), rng, gone);
    }
};

// The children of a node that a pick leaves out, as nodes; null for none.
using Listed = const std::vector<std::int32_t>*;

// Other beliefs and rules have no shortcut.
template <class Rows, class Rule>
struct Shortcut {
    void reset() {}
    bool covers(const Tree&, const Rows&, std::int32_t) const { return false; }
    // Whether it can also pick among some of the children.
    bool covers_some(const Tree&, const Rows&, std::int32_t) const { return false; }
    std::int32_t pick(const Tree&, const Rows&, const Rule&, std::int32_t, const double*, Stream&, Listed) { return 0; }
    void follow(const Tree&, const Rows&, std::int32_t, std::int32_t) {}
    std::int32_t min_wide = 0;
};

template <class Way, class Rows, class Rule>
struct WideNodes {
    static constexpr std::int32_t never = std::numeric_limits<std::int32_t>::max();
    std::int32_t min_wide = Way::min_wide;

    // Forgets everything, because Python has changed the evidence.
    void reset() { wide.clear(); }

    // If nearly every child is its own class (fractional rewards), classes are worthwhile only from twice the width.
    bool covers(const Tree& tree, const Rows& rows, std::int32_t node) const {
        if (min_wide == never) return false;
        if (Way::untouched(rows, node)) return true;
        const std::int32_t k = tree.n_children(node);
        if (k < min_wide || !Way::holds(rows)) return false;
        const std::size_t cluster = static_cast<std::size_t>(~tree.content[node]);
        if (k >= 2 * min_wide || cluster >= wide.size() || !wide[cluster]) return true;
        return 2 * wide[cluster]->n_classes() <= static_cast<std::size_t>(k);
    }

    bool covers_some(const Tree& tree, const Rows& rows, std::int32_t node) const { return covers(tree, rows, node); }

    std::int32_t pick(const Tree& tree, const Rows& rows, const Rule& rule, std::int32_t node, const double*,
                      Stream& rng, Listed listed) {
        const Excluded gone{listed, tree.first(node)};
        // Equal children are equally likely, and need not be read.
        if (Way::untouched(rows, node)) {
            const std::size_t n_left = static_cast<std::size_t>(tree.n_children(node)) - gone.size();
            return gone.left(static_cast<std::int32_t>(rng.integers(n_left)));
        }
        const std::size_t cluster = static_cast<std::size_t>(~tree.content[node]);
        if (wide.size() <= cluster) wide.resize(cluster + 1);
        if (!wide[cluster]) {
            wide[cluster] = std::make_unique<typename Way::Wide>(tree.n_children(node));
            for (std::int32_t i = 0; i < tree.n_children(node); ++i) {
                const auto [x, y] = Way::pair(rows, tree.first(node) + i);
                wide[cluster]->add(i, x, y);
            }
        }
        return Way::pick(*wide[cluster], rows, rule, node, rng, gone);
    }

    // Updates the classes after the belief of a child has changed.
    void follow(const Tree& tree, const Rows& rows, std::int32_t node, std::int32_t child) {
        const std::size_t cluster = static_cast<std::size_t>(~tree.content[node]);
        if (cluster >= wide.size() || !wide[cluster]) return;
        const auto [x, y] = Way::pair(rows, child);
        wide[cluster]->move(child - tree.first(node), x, y);
    }

  private:
    std::vector<std::unique_ptr<typename Way::Wide>> wide;  // by cluster, made when first needed
};

template <>
struct Shortcut<BetaRows, Thompson> : WideNodes<ThompsonOnBeta, BetaRows, Thompson> {};
template <>
struct Shortcut<CountsRows, UCB> : WideNodes<UCBOnCounts, CountsRows, UCB> {};

template <>
struct Shortcut<LinearRows, Thompson> {
    std::int32_t min_wide = 2;
    FewRoots few_roots;

    void reset() {}
    void follow(const Tree&, const LinearRows&, std::int32_t, std::int32_t) {}
    bool covers(const Tree& tree, const LinearRows&, std::int32_t node) const {
        return tree.n_children(node) >= min_wide;
    }
    bool covers_some(const Tree&, const LinearRows&, std::int32_t) const { return false; }
    std::int32_t pick(const Tree& tree, LinearRows& rows, const Thompson&, std::int32_t node, const double* context,
                      Stream& rng, Listed) {
        return few_roots.pick(rows, tree.first(node), static_cast<std::size_t>(tree.n_children(node)), context, rng);
    }
};

}  // namespace banditree
