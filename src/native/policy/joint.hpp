// Chooses among all arms at once, from beliefs that depend on the whole tree, and learns along the paths of the arms
// played. Twin of the part of banditree/policy/descent.py for beliefs that are `joint`, draw for draw unless a shortcut
// is taken.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "beliefs/adaptive.hpp"
#include "beliefs/draws.hpp"
#include "policy/races.hpp"
#include "policy/walk.hpp"
#include "shortcuts/screening.hpp"

namespace banditree {

template <class Rows, class Shortcut>
struct JointWalker final : CommonWalk<Rows> {
    using Common = CommonWalk<Rows>;
    using Common::explores, Common::fade, Common::find, Common::path, Common::pick_any, Common::rows;
    using Walk::evaluations, Walk::rng, Walk::tree;
    Shortcut shortcut;

    explicit JointWalker(Rows rows_) : Common(std::move(rows_)) {}

    std::int32_t choose(const double* context) override {
        if (explores()) return static_cast<std::int32_t>(rng->integers(static_cast<std::uint64_t>(tree.n_arms)));
        if (tree.n_arms == 1) return 0;
        rows.begin(tree, context, *rng);
        if (!shortcut.covers(tree)) return best(nullptr);
        evaluations += tree.n_arms;
        return tree.content[shortcut.pick(tree, rows, nullptr, *rng)];
    }

    std::int32_t choose_within(const Limits& limits, const double* context) override {
        if (explores()) return limits.uniform(*rng);
        if (limits.n_allowed == 1) return limits.arm(0);
        rows.begin(tree, context, *rng);
        if (limits.only || !shortcut.covers(tree)) return best(&limits);
        evaluations += limits.n_allowed;
        return tree.content[shortcut.pick(tree, rows, &limits, *rng)];
    }

    bool choose_many(const double* contexts, std::size_t m, std::int32_t* found) override {
        for (std::size_t i = 0; i < m; ++i) found[i] = choose(contexts ? contexts + i * rows.dim() : nullptr);
        return true;
    }

    bool slate(const Limits* limits, const double* context, std::size_t k, std::vector<std::int32_t>& found) override {
        if (explores()) {
            pick_any(limits, k, found);
            return true;
        }
        if ((limits ? limits->n_allowed : tree.n_arms) == 1) {
            found.assign(1, limits ? limits->arm(0) : 0);
            return true;
        }
        rows.begin(tree, context, *rng);
        score(limits);
        std::vector<std::size_t> order(scores.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        const auto higher = [this](std::size_t i, std::size_t j) { return scores[i] > scores[j]; };
        std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k), order.end(), higher);
        found.clear();
        for (std::size_t i = 0; i < k; ++i) found.push_back(tree.content[among[order[i]]]);
        return true;
    }

    void update(std::int32_t arm, double reward, const double* context) override { observe(arm, reward, 1.0, context); }

    void learn(const std::int64_t* arms, const double* rewards, const double* plays, const double* contexts,
               std::size_t n) override {
        if (n > Rows::largest_batch + static_cast<std::size_t>(tree.n_arms) / 16)
            rows.reset();  // one pass over the tree is faster
        for (std::size_t i = 0; i < n; ++i)
            observe(static_cast<std::int32_t>(arms[i]), rewards[i], plays ? plays[i] : 1.0,
                    contexts ? contexts + i * rows.dim() : nullptr);
    }

    bool copies(std::vector<double>& weight, std::vector<double>& variance) override {
        if constexpr (Rows::contextual) {
            rows.bring_up_to_date(tree);
            rows.weights(weight, variance);
        }
        return Rows::contextual;
    }

    bool believed(const double* context, std::size_t copy, const std::int64_t* nodes, std::size_t n,
                  double* out) override {
        if constexpr (Rows::contextual) {
            rows.bring_up_to_date(tree);
            rows.look_at_all(tree, context, copy);
            for (std::size_t i = 0; i < n; ++i) rows.describe(tree, static_cast<std::int32_t>(nodes[i]), out + i, n);
        }
        return Rows::contextual;
    }

    bool wins(const Limits* limits, const double* context, std::int32_t arm, std::vector<double>& out) override {
        races.wins(tree, rows, limits, context, arm, out);
        return true;
    }

    void forget(double factor) override {
        for (std::int32_t node = 0; node < tree.n_nodes; ++node) rows.rescale(node, factor);
        rows.reset();
    }
    void reset() override { rows.reset(); }
    std::int32_t& min_wide() override { return shortcut.min_wide; }

  private:
    Races<Rows> races;
    std::vector<std::int32_t> among;  // scratch: the leaves that compete, in order
    std::vector<double> scores;

    void observe(std::int32_t arm, double reward, double count, const double* context) {
        find(arm);
        fade();
        rows.learn(tree, path, reward, count, context);
    }

    std::int32_t best(const Limits* limits) {
        score(limits);
        return tree
            .content[among[static_cast<std::size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin())]];
    }

    // Draws once for each allowed arm, all with one number in common, and once more for the one that is the stray, if
    // any is.
    void score(const Limits* limits) {
        list_arms(limits);
        evaluations += static_cast<std::int64_t>(among.size());
        const Coupling& coupling = rows.coupling();
        const double number = coupling.numbers[pick(coupling.chances, coupling.values, rng->random())];
        scores.resize(among.size() + 1);
        for (std::size_t i = 0; i < among.size(); ++i) scores[i] = rows.odds(tree, among[i]);
        scores.back() = 1.0;
        const std::size_t stray = pick(scores.data(), scores.size(), rng->random());
        scores.pop_back();
        for (std::size_t i = 0; i < among.size(); ++i) {
            const Drawn of = coupling.given(number, rows.following(tree, among[i]));
            scores[i] = of.x + of.y * rng->standard_normal();
        }
        if (stray == among.size()) return;
        const Drawn of = rows.alone(tree, among[stray]);
        scores[stray] = std::max(scores[stray], of.x + of.y * rng->standard_normal());
    }

    // Writes the leaves of the arms that may be chosen into `among`.
    void list_arms(const Limits* limits) {
        among.clear();
        if (limits && limits->only) {
            for (const std::int32_t arm : limits->arms) among.push_back(tree.node_of[arm]);
            std::sort(among.begin(), among.end());
            return;
        }
        for (std::int32_t node = 1; node < tree.n_nodes; ++node)
            if (tree.content[node] >= 0 && (!limits || limits->allows(tree.content[node]))) among.push_back(node);
    }
};

}  // namespace banditree
