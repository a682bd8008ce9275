// Beta beliefs, for rewards in [0, 1]. Twin of banditree/beliefs/beta.py.
#pragma once

#include <cmath>

#include "stream.hpp"
#include "tree/shape.hpp"

namespace banditree {

struct BetaRows {
    static constexpr bool contextual = false;
    static constexpr double low = 0.0, high = 1.0;  // rewards allowed
    struct Node {
        double successes, failures;  // evidence
        Stream::Scales scales;       // of its posterior; a = 0 if not yet computed
    };
    Node* nodes;  // (nodes,) adjacent in memory, because children are read together
    std::size_t n_nodes;
    const double *a, *b;  // prior, (nodes,) or one for all
    std::size_t step;     // from one node's prior to the next: 1, or 0 if all share one
    bool on_log_odds;     // some prior parameter is below 1, so that draws would round to 0 or 1 and tie

    std::size_t dim() const { return 0; }
    // Forget cached posteriors, because Python has changed the evidence. Uniform ones, usual for untouched arms, are
    // marked now.
    void reset() {
        for (std::size_t i = 0; i < n_nodes; ++i) {
            const auto [ours, theirs] = posterior(static_cast<std::int32_t>(i));
            const bool uniform = !on_log_odds && ours == 1.0 && theirs == 1.0;
            nodes[i].scales = {uniform ? Stream::Scales::uniform : 0.0, 0.0};
        }
    }
    std::size_t stride() const { return 0; }
    void prepare(const double*, double*) const {}
    // r and 1 - r may add up to slightly more or less than 1; counts that have faded are not whole numbers.
    double plays(std::int32_t node) const {
        const double sum = nodes[node].successes + nodes[node].failures, whole = std::rint(sum);
        return std::fabs(sum - whole) <= 1e-9 * (sum > 1.0 ? sum : 1.0) ? whole : sum;
    }
    double rewards(std::int32_t node) const { return nodes[node].successes; }
    bool untouched(std::int32_t node) const {
        return step == 0 && nodes[node].successes == 0.0 && nodes[node].failures == 0.0;
    }
    struct Posterior {
        double a, b;
    };
    Posterior posterior(std::int32_t node) const {
        const Node& here = nodes[node];
        const std::size_t prior = static_cast<std::size_t>(node) * step;
        return {a[prior] + here.successes, b[prior] + here.failures};
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
    void sample(std::int32_t first, std::size_t k, const Decisions& decisions, Stream& rng, double* out) {
        for (std::int32_t node = first; node < first + static_cast<std::int32_t>(k); ++node, out += decisions.m) {
            const Stream::Scales scales = nodes[node].scales;
            if (scales.a > 0.0 || scales.a == Stream::Scales::uniform)
                rng.beta_fill(scales, out, decisions.m);
            else
                sample_afresh(node, decisions, rng, out);
        }
    }
    void observe(std::int32_t node, double total, double count, const double*) {
        nodes[node].successes += total;
        nodes[node].failures += count - total;
        if (nodes[node].scales.a > 0.0)
            keep_scales(node);
        else
            nodes[node].scales.a = 0.0;
    }

    void rescale(std::int32_t node, double by) {
        nodes[node].successes *= by;
        nodes[node].failures *= by;
    }

  private:
    void keep_scales(std::int32_t node) {
        const auto [ours, theirs] = posterior(node);
        nodes[node].scales = Stream::beta_scales(ours, theirs);
    }
    BANDITREE_RARE void sample_afresh(std::int32_t node, const Decisions& decisions, Stream& rng, double* out) {
        const auto [ours, theirs] = posterior(node);
        if (on_log_odds) {
            for (std::size_t j = 0; j < decisions.m; ++j) out[j] = rng.beta_log_odds(ours, theirs);
        } else {
            keep_scales(node);
            rng.beta_fill(ours, theirs, out, decisions.m);
        }
    }
};

}  // namespace banditree
