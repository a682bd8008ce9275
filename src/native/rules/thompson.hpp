// Thompson's rule: score each child by a draw from its belief. Twin of banditree/rules/thompson.py.
#pragma once

#include <vector>

#include "policy/limits.hpp"
#include "stream.hpp"
#include "tree/shape.hpp"

namespace banditree {

struct Thompson {
    static constexpr bool summarises = false;
    static constexpr bool draws = true;

    // Scores of a node's children, one row per child: (k, m).
    template <class Rows>
    void score(const Tree& tree, Rows& rows, std::int32_t node, const Decisions& decisions, Stream& rng,
               double* scores) {
        rows.sample(tree.first(node), static_cast<std::size_t>(tree.n_children(node)), decisions, rng, scores);
    }

    // Scores of some children for one decision, in order: (k,).
    template <class Rows>
    void score_some(const Tree&, Rows& rows, std::int32_t, const Limits*, const std::vector<std::int32_t>& children,
                    const Decisions& one, Stream& rng, double* scores) {
        for (const std::int32_t child : children) rows.sample(child, 1, one, rng, scores++);
    }

    template <class Rows>
    void summarise(const Tree&, const Rows&, std::int32_t) {}
};

}  // namespace banditree
