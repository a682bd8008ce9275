// Beta beliefs: rewards in [0, 1]. Twin of banditree/beliefs/beta.py.
#pragma once

#include <cmath>

#include "../random.hpp"
#include "../tree.hpp"

namespace banditree {

struct BetaRows {
    static constexpr bool contextual = false;
    static constexpr double low = 0.0, high = 1.0;  // rewards allowed
    struct Node {
        double successes, failures;  // evidence
        double a, b;                 // prior
    };
    Node* nodes;       // (nodes,) side by side, because children are looked at together
    bool on_log_odds;  // some prior is below 1, where draws round to 0 or 1 and would tie

    std::size_t dim() const { return 0; }
    std::size_t stride() const { return 0; }
    void prepare(const double*, double*) const {}
    // Fractions of one reward may add up to a shade more or less than 1.
    double plays(std::int32_t node) const { return std::rint(nodes[node].successes + nodes[node].failures); }
    double rewards(std::int32_t node) const { return nodes[node].successes; }
    struct Posterior {
        double a, b;
    };
    Posterior posterior(std::int32_t node) const {
        const Node& here = nodes[node];
        return {here.a + here.successes, here.b + here.failures};
    }
    double mean(std::int32_t node, const double*) const {
        const auto [ours, theirs] = posterior(node);
        return ours / (ours + theirs);
    }
    double spread(std::int32_t node, const double*) const {
        const auto [ours, theirs] = posterior(node);
        const double both = ours + theirs;
        return std::sqrt(ours * theirs / (both + 1)) / both;
    }
    void sample(std::int32_t node, const Decisions& decisions, Stream& rng, double* out) const {
        const auto [ours, theirs] = posterior(node);
        if (!on_log_odds) return rng.beta_fill(ours, theirs, out, decisions.m);
        for (std::size_t j = 0; j < decisions.m; ++j) out[j] = rng.beta_log_odds(ours, theirs);
    }
    void observe(std::int32_t node, double reward, const double*) {
        nodes[node].successes += reward;
        nodes[node].failures += 1.0 - reward;
    }
};

}  // namespace banditree
