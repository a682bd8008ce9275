// Thompson sampling in which a cluster draws from the belief of its best arm (TSMax). Twin of
// banditree/rules/best_arm.py.
#pragma once

#include <limits>
#include <vector>

#include "policy/limits.hpp"
#include "stream.hpp"
#include "tree/shape.hpp"

namespace banditree {

struct BestArm {
    static constexpr bool summarises = true;
    static constexpr bool draws = true;
    std::int32_t* summary;  // (nodes,) the best arm's leaf below each node; the node itself if no arm was tried
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

    // Scores of some children for one decision, in order: (k,). The best allowed arm represents its cluster.
    template <class Rows>
    void score_some(const Tree& tree, Rows& rows, std::int32_t, const Limits* limits,
                    const std::vector<std::int32_t>& children, const Decisions& one, Stream& rng,
                    double* scores) const {
        for (const std::int32_t child : children)
            rows.sample(limits ? best_within(tree, rows, *limits, child) : summary[child], 1, one, rng, scores++);
    }

    // The best of the children's best: highest mean, then most plays, then the first.
    template <class Rows>
    void summarise(const Tree& tree, Rows& rows, std::int32_t node) {
        Best best{*this, node};
        for (std::int32_t child = tree.start[node]; child < tree.start[node + 1]; ++child)
            best.meet(rows, summary[child]);
        summary[node] = best.arm;
    }

  private:
    struct Best {
        const BestArm& rule;
        std::int32_t arm;  // the representative if no arm was tried
        double mean = -std::numeric_limits<double>::infinity(), plays = 0.0;
        bool found = false;

        template <class Rows>
        void meet(Rows& rows, std::int32_t other) {
            const double its_plays = rows.plays(other);
            if (!rule.posterior && !(its_plays > 0.0)) return;
            double its_mean;
            if constexpr (Rows::contextual)
                its_mean = rows.rewards(other) / its_plays;  // a posterior mean would need a context
            else
                its_mean = rule.posterior ? rows.mean(other, nullptr) : rows.rewards(other) / its_plays;
            if (found && !(its_mean > mean || (its_mean == mean && its_plays > plays))) return;
            found = true, arm = other, mean = its_mean, plays = its_plays;
        }
    };

    // The representative of a node among its allowed arms; the first one if none of them was tried.
    template <class Rows>
    std::int32_t best_within(const Tree& tree, Rows& rows, const Limits& limits, std::int32_t node) const {
        const std::int32_t kept = tree.content[summary[node]];
        if (tree.n_children(node) == 0 || kept < 0)
            return summary[node];  // an arm; or no arm was tried, and the prior is used
        if (!limits.only && limits.allows(kept)) return summary[node];
        std::vector<std::int32_t> children;
        limits.allowed(tree, node, children);
        Best best{*this, -1};
        for (const std::int32_t child : children) {
            const std::int32_t other = best_within(tree, rows, limits, child);
            if (best.arm < 0) best.arm = other;
            best.meet(rows, other);
        }
        return best.arm;
    }
};

}  // namespace banditree
