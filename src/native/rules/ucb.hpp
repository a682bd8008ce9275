// Upper confidence bounds: mean + c spread. Twin of banditree/rules/ucb.py.
#pragma once

#include <cmath>
#include <limits>

#include "../math.hpp"
#include "../random.hpp"
#include "../tree.hpp"

namespace banditree {

struct UCB {
    double c;           // NaN: sqrt(2 ln n)
    bool global_clock;  // n counts the plays of the whole tree, not of the parent

    template <class Rows>
    double width(const Rows& rows, std::int32_t node) const {
        const double n = rows.plays(global_clock ? 0 : node);
        return std::isnan(c) ? std::sqrt(2.0 * ln(n > 1.0 ? n : 1.0)) : c;
    }

    template <class Rows>
    void score(const Tree& tree, const Rows& rows, std::int32_t node, const Decisions& decisions, Stream&,
               double* scores) const {
        const double width = this->width(rows, node);
        for (std::int32_t child = tree.start[node]; child < tree.start[node + 1]; ++child, scores += decisions.m) {
            if (rows.dim() == 0) {  // without contexts all decisions see the same
                const double value = index(rows, child, nullptr, width);
                for (std::size_t j = 0; j < decisions.m; ++j) scores[j] = value;
            } else {
                for (std::size_t j = 0; j < decisions.m; ++j)
                    scores[j] = index(rows, child, decisions.context(j), width);
            }
        }
    }

    template <class Rows>
    void summarise(const Tree&, const Rows&, std::int32_t) {}

  private:
    template <class Rows>
    static double index(const Rows& rows, std::int32_t child, const double* x, double width) {
        const double spread = rows.spread(child, x);
        return std::isinf(spread) ? spread : rows.mean(child, x) + width * spread;
    }
};

}  // namespace banditree
