// Upper confidence bounds: score each child by mean + c spread. Twin of banditree/rules/ucb.py.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "numerics/math.hpp"
#include "policy/limits.hpp"
#include "stream.hpp"
#include "tree/shape.hpp"

namespace banditree {

struct UCB {
    static constexpr bool summarises = false;
    static constexpr bool draws = false;
    double c;           // NaN: sqrt(2 ln n)
    bool global_clock;  // n counts the plays of the whole tree, not of the parent

    template <class Rows>
    double width(const Rows& rows, std::int32_t node) const {
        const double n = rows.plays(global_clock ? 0 : node);
        return std::isnan(c) ? std::sqrt(2.0 * ln(n > 1.0 ? n : 1.0)) : c;
    }

    template <class Rows>
    void score(const Tree& tree, Rows& rows, std::int32_t node, const Decisions& decisions, Stream&, double* scores) {
        const double width = this->width(rows, node);
        const std::size_t k = static_cast<std::size_t>(tree.n_children(node)), m = decisions.m;
        if constexpr (Rows::contextual) {
            for (std::size_t j = 0; j < m; ++j) {
                rows.moments(tree.first(node), k, decisions.context(j));
                for (std::size_t i = 0; i < k; ++i)
                    scores[i * m + j] = rows.means[i] + width * std::sqrt(rows.variances[i]);
            }
        } else {  // without contexts all decisions have the same scores
            for (std::size_t i = 0; i < k; ++i, scores += m) {
                const std::int32_t child = tree.first(node) + static_cast<std::int32_t>(i);
                const double index = this->index(rows, child, width);
                for (std::size_t j = 0; j < m; ++j) scores[j] = index;
            }
        }
    }

    template <class Rows>
    static double index(Rows& rows, std::int32_t child, double width) {
        const double spread = rows.spread(child, nullptr);
        return std::isinf(spread) ? spread : rows.mean(child, nullptr) + width * spread;
    }

    // Scores of some children for one decision, in order: (k,).
    template <class Rows>
    void score_some(const Tree&, Rows& rows, std::int32_t node, const Limits*,
                    const std::vector<std::int32_t>& children, const Decisions& one, Stream&, double* scores) {
        const double width = this->width(rows, node);
        for (const std::int32_t child : children) {
            if constexpr (Rows::contextual) {
                rows.moments(child, 1, one.context(0));
                *scores++ = rows.means[0] + width * std::sqrt(rows.variances[0]);
            } else {
                *scores++ = index(rows, child, width);
            }
        }
    }

    template <class Rows>
    void summarise(const Tree&, const Rows&, std::int32_t) {}
};

}  // namespace banditree
