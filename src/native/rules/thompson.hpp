// Thompson's rule: each child is worth a draw from its belief. Twin of banditree/rules/thompson.py.
#pragma once

#include "../random.hpp"
#include "../tree.hpp"

namespace banditree {

struct Thompson {
    // Scores of a node's children, one row a child: (k, m).
    template <class Rows>
    void score(const Tree& tree, Rows& rows, std::int32_t node, const Decisions& decisions, Stream& rng, double* scores) {
        rows.sample(tree.first(node), static_cast<std::size_t>(tree.n_children(node)), decisions, rng, scores);
    }

    template <class Rows>
    void summarise(const Tree&, const Rows&, std::int32_t) {}
};

}  // namespace banditree
