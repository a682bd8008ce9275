// Thompson's rule: each child is worth a draw from its belief. Twin of banditree/rules/thompson.py.
#pragma once

#include <vector>

#include "../random.hpp"
#include "../tree.hpp"

namespace banditree {

struct Thompson {
    std::vector<double> spreads;  // scratch: (k, m)

    // Scores of a node's children, one row a child: (k, m).
    template <class Rows>
    void score(const Tree& tree, const Rows& rows, std::int32_t node, const Decisions& decisions, Stream& rng,
               double* scores) {
        const std::size_t k = static_cast<std::size_t>(tree.n_children(node)), m = decisions.m;
        if constexpr (Rows::contextual) {  // all children of a decision at once, then the draws in the usual order
            if (spreads.size() < k * m) spreads.resize(k * m);
            for (std::size_t j = 0; j < m; ++j)
                rows.moments(tree.first(node), k, decisions.context(j), scores + j, spreads.data() + j, m);
            for (std::size_t i = 0; i < k * m; ++i) scores[i] += spreads[i] * rng.standard_normal();
        } else {
            for (std::size_t i = 0; i < k; ++i)
                rows.sample(tree.first(node) + static_cast<std::int32_t>(i), decisions, rng, scores + i * m);
        }
    }

    template <class Rows>
    void summarise(const Tree&, const Rows&, std::int32_t) {}
};

}  // namespace banditree
