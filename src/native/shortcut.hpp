// Which nodes are walked by an exact shortcut, and how it follows the beliefs. Only Thompson's rule on Beta beliefs has one.
#pragma once

#include <memory>
#include <vector>

#include "beliefs/beta.hpp"
#include "rules/thompson.hpp"
#include "tree.hpp"
#include "wide.hpp"

namespace banditree {

// For other beliefs and rules every node is walked plainly.
template <class Rows, class Rule>
struct Shortcut {
    void reset() {}
    bool covers(const Tree&, const Rows&, std::int32_t) const { return false; }
    std::int32_t pick(const Tree&, const Rows&, std::int32_t, Stream&) { return 0; }
    void follow(const Tree&, const Rows&, std::int32_t) {}
    std::int32_t narrowest = 0;
};

template <>
struct Shortcut<BetaRows, Thompson> {
    // Children from which on the shortcut is faster than plain draws (measured: see docs/benchmarks.md).
    std::int32_t narrowest = 48;

    // Forget everything: Python has changed the evidence.
    void reset() { wide.clear(); }

    // Below 1 a prior's density is not log-concave, and there is no tangent to rely on.
    bool covers(const Tree& tree, const BetaRows& rows, std::int32_t node) const {
        return tree.n_children(node) >= narrowest && !rows.on_log_odds;
    }

    std::int32_t pick(const Tree& tree, const BetaRows& rows, std::int32_t node, Stream& rng) {
        const std::size_t cluster = static_cast<std::size_t>(~tree.content[node]);
        if (wide.size() <= cluster) wide.resize(cluster + 1);
        if (!wide[cluster]) {
            wide[cluster] = std::make_unique<WideNode>(tree.n_children(node));
            for (std::int32_t i = 0; i < tree.n_children(node); ++i) {
                const auto [a, b] = rows.posterior(tree.first(node) + i);
                wide[cluster]->add(i, a, b);
            }
        }
        return wide[cluster]->pick(rng);
    }

    // The belief of a child has changed.
    void follow(const Tree& tree, const BetaRows& rows, std::int32_t child) {
        const std::int32_t node = tree.parent[child];
        if (node < 0) return;
        const std::size_t cluster = static_cast<std::size_t>(~tree.content[node]);
        if (cluster >= wide.size() || !wide[cluster]) return;
        const auto [a, b] = rows.posterior(child);
        wide[cluster]->move(child - tree.first(node), a, b);
    }

  private:
    std::vector<std::unique_ptr<WideNode>> wide;  // by cluster, made when first needed
};

}  // namespace banditree
