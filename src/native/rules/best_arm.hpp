// Thompson samples in which a cluster stands for its best arm (TSMax). Twin of banditree/rules/best_arm.py.
#pragma once

#include <limits>

#include "../random.hpp"
#include "../tree.hpp"

namespace banditree {

struct BestArm {
    std::int32_t* summary;  // (nodes,) the best arm's leaf below each node; the node itself where no arm was tried
    bool posterior;         // by posterior mean over all arms, not by empirical mean over those tried

    template <class Rows>
    void score(const Tree& tree, Rows& rows, std::int32_t node, const Decisions& decisions, Stream& rng,
               double* scores) const {
        const std::int32_t first = tree.first(node), k = tree.n_children(node);
        const std::size_t m = decisions.m;
        if constexpr (Rows::contextual) {  // drawn decision by decision, as linear beliefs are
            for (std::size_t j = 0; j < m; ++j)
                for (std::int32_t i = 0; i < k; ++i)
                    rows.sample(summary[first + i], 1, {1, decisions.context(j), 0}, rng, scores + i * m + j);
        } else {
            for (std::int32_t i = 0; i < k; ++i) rows.sample(summary[first + i], 1, decisions, rng, scores + i * m);
        }
    }

    // The best of the children's best: highest mean, then most plays, then the first.
    template <class Rows>
    void summarise(const Tree& tree, Rows& rows, std::int32_t node) {
        double best_mean = -std::numeric_limits<double>::infinity(), best_plays = 0.0;
        std::int32_t best = node;
        for (std::int32_t child = tree.start[node]; child < tree.start[node + 1]; ++child) {
            const std::int32_t arm = summary[child];
            const double plays = rows.plays(arm);
            if (!posterior && !(plays > 0.0)) continue;
            double mean;
            if constexpr (Rows::contextual)
                mean = rows.rewards(arm) / plays;  // a posterior mean would need a context
            else
                mean = posterior ? rows.mean(arm, nullptr) : rows.rewards(arm) / plays;
            if (best == node || mean > best_mean || (mean == best_mean && plays > best_plays)) {
                best = arm;
                best_mean = mean;
                best_plays = plays;
            }
        }
        summary[node] = best;
    }
};

}  // namespace banditree
