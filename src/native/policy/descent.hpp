// Walks down the tree to choose, and updates beliefs on the way up. Twin of banditree/policy/descent.py, draw for draw.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "numerics/sort_by.hpp"
#include "numerics/sums.hpp"
#include "numerics/vectors.hpp"
#include "policy/limits.hpp"
#include "policy/walk.hpp"
#include "shortcuts/shortcut.hpp"
#include "stream.hpp"
#include "tree/shape.hpp"

namespace banditree {

template <class Rows, class Rule>
struct Walker final : CommonWalk<Rows> {
    static constexpr std::size_t block = 65536;  // most scores in memory when many decisions are made together
    using Common = CommonWalk<Rows>;
    using Common::explores, Common::fade, Common::find, Common::path, Common::pick_any, Common::rows;
    using Walk::evaluations, Walk::explore, Walk::fade_every, Walk::rng, Walk::tree;
    Rule rule;
    Shortcut<Rows, Rule> shortcut;
    std::vector<double> scores, column, prepared, best;  // scratch: (k, m), (k,), (m, stride) and (m,)
    std::vector<std::int32_t> n_ties;                    // scratch: (m,)
    std::vector<std::int32_t> among;                     // scratch: the children that limits leave to choose from

    Walker(Rows rows_, Rule rule_) : Common(std::move(rows_)), rule(std::move(rule_)) {}

    std::int32_t choose(const double* context) override {
        if (explores()) return static_cast<std::int32_t>(rng->integers(static_cast<std::uint64_t>(tree.n_arms)));
        const Decisions one = prepare(context, nullptr, 1);
        std::int32_t node = 0;
        path.assign(1, node);
        while (tree.n_children(node) > 0) {
            std::int32_t step = 0;
            if (tree.n_children(node) > 1 && !pick(node, one, &step)) return -1;
            node = tree.first(node) + step;
            path.push_back(node);
        }
        return tree.content[node];
    }

    std::int32_t choose_within(const Limits& limits, const double* context) override {
        if (explores()) return limits.uniform(*rng);
        const Decisions one = prepare(context, nullptr, 1);
        std::int32_t node = 0;
        path.assign(1, node);
        while (tree.n_children(node) > 0) {
            if (!step_within(limits, one, &node)) return -1;
            path.push_back(node);
        }
        return tree.content[node];
    }

    // Each node is drawn once and keeps its order, so the best arm left is always the next one depth first.
    bool slate(const Limits* limits, const double* context, std::size_t k, std::vector<std::int32_t>& found) override {
        if (explores()) {
            pick_any(limits, k, found);
            return true;
        }
        const Decisions one = prepare(context, nullptr, 1);
        found.clear();
        std::vector<std::int32_t> waiting{0};
        while (found.size() < k) {
            const std::int32_t node = waiting.back();
            waiting.pop_back();
            if (tree.n_children(node) == 0) {
                found.push_back(tree.content[node]);
                continue;
            }
            list_children(limits, node);
            if (among.size() > 1) {
                score_listed(limits, node, one);
                if (!sort_listed()) return false;
            }
            waiting.insert(waiting.end(), among.rbegin(), among.rend());
        }
        return true;
    }

    // Decisions at the same node are scored together; nodes are visited depth first, left to right.
    bool choose_many(const double* contexts, std::size_t m, std::int32_t* found) override {
        if (explore > 0.0) {  // each decision first draws whether it explores
            for (std::size_t i = 0; i < m; ++i)
                if ((found[i] = choose(contexts ? contexts + i * rows.dim() : nullptr)) < 0) return false;
            return true;
        }
        struct Group {
            std::int32_t node;
            std::size_t from, to;  // the decisions who[from] .. who[to - 1]
        };
        std::vector<std::int32_t> who(m), step(m), sorted(m);
        for (std::size_t i = 0; i < m; ++i) who[i] = static_cast<std::int32_t>(i);
        std::vector<Group> waiting{{0, 0, m}};
        while (!waiting.empty()) {
            const auto [node, from, to] = waiting.back();
            waiting.pop_back();
            const std::int32_t k = tree.n_children(node);
            if (k == 0) {
                for (std::size_t i = from; i < to; ++i) found[who[i]] = tree.content[node];
                continue;
            }
            std::fill(step.begin() + from, step.begin() + to, 0);
            const std::size_t widest = std::max<std::size_t>(static_cast<std::size_t>(k), rows.dim() * rows.dim());
            const std::size_t at_once = std::max<std::size_t>(1, block / widest);
            for (std::size_t at = from; k > 1 && at < to; at += at_once) {
                const std::size_t size = std::min(at_once, to - at);
                if (!pick(node, prepare(contexts, who.data() + at, size), step.data() + at)) return false;
            }
            // A stable sort by child keeps each group's decisions in order; the first child ends up on top.
            sort_by(step.data() + from, k, who.data() + from, sorted.data() + from, to - from);
            for (std::size_t end = to; end > from;) {
                std::size_t begin = end - 1;
                while (begin > from && step[begin - 1] == step[end - 1]) --begin;
                waiting.push_back({tree.first(node) + step[begin], begin, end});
                end = begin;
            }
        }
        return true;
    }

    // Where nothing is drawn, the scores that decide are those that the probabilities come from: computed in another
    // way they may differ in their last digit, and nearly equal children would have another winner.
    bool wins(const Limits* limits, const double* context, std::int32_t arm, std::vector<double>& out) override {
        if constexpr (Rule::draws) return false;
        const Decisions one = prepare(context, nullptr, 1);
        if (arm >= 0) {
            find(arm);
            out.clear();
            for (std::size_t i = 0; i + 1 < path.size(); ++i) {
                if (!share_listed(limits, path[i], one)) return false;
                out.push_back(scores[static_cast<std::size_t>(
                    std::lower_bound(among.begin(), among.end(), path[i + 1]) - among.begin())]);
            }
            return true;
        }
        out.assign(static_cast<std::size_t>(tree.n_arms), 0.0);
        std::vector<std::pair<std::int32_t, double>> waiting{{0, 1.0}};
        while (!waiting.empty()) {
            const auto [node, chance] = waiting.back();
            waiting.pop_back();
            if (tree.n_children(node) == 0) {
                out[static_cast<std::size_t>(tree.content[node])] = chance;
                continue;
            }
            if (!share_listed(limits, node, one)) return false;
            for (std::size_t i = 0; i < among.size(); ++i)
                if (scores[i] > 0.0) waiting.emplace_back(among[i], chance * scores[i]);
        }
        return true;
    }

    std::pair<double, double> moments(std::int32_t node, const double* context) override {
        if constexpr (Rows::contextual) {
            rows.moments(node, 1, prepare(context, nullptr, 1).context(0));
            return {rows.means[0], std::sqrt(rows.variances[0])};
        }
        return Walk::moments(node, context);
    }

    void forget(double factor) override {
        for (std::int32_t node = 0; node < tree.n_nodes; ++node) rows.rescale(node, factor);
        reset();
        if constexpr (Rule::summarises) summarise_all();
    }
    void reset() override {
        rows.reset();
        shortcut.reset();
    }
    std::int32_t& min_wide() override { return shortcut.min_wide; }

    void update(std::int32_t arm, double reward, const double* context) override {
        observe_one(arm, reward, 1.0, context);
        if constexpr (Rule::summarises && shares_means<Rows>) return summarise_all();
        for (std::size_t i = path.size() - 1; i-- > 0;) rule.summarise(tree, rows, path[i]);
    }

    void learn(const std::int64_t* arms, const double* rewards, const double* plays, const double* contexts,
               std::size_t n) override {
        if (Rows::contextual && many(n)) rows.reset();  // so that nodes are solved once, and not updated with each row
        std::vector<std::int32_t> touched;
        for (std::size_t i = 0; i < n; ++i) {
            observe_one(static_cast<std::int32_t>(arms[i]), rewards[i], plays ? plays[i] : 1.0,
                        contexts ? contexts + i * rows.dim() : nullptr);
            if constexpr (Rule::summarises) touched.insert(touched.end(), path.begin(), path.end() - 1);
        }
        if constexpr (Rule::summarises && shares_means<Rows>) return summarise_all();
        std::sort(touched.begin(), touched.end(), std::greater<>());  // a child has a higher number than its parent
        touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
        for (const std::int32_t node : touched) rule.summarise(tree, rows, node);
    }

    bool learns_sums(std::size_t n) const override { return !learns_by_row<Rows> && many(n); }

    void learn_sums(const Sum* of_arm) override {
        std::vector<Sum> sums(static_cast<std::size_t>(tree.n_nodes));
        for (std::int32_t arm = 0; arm < tree.n_arms; ++arm)
            sums[static_cast<std::size_t>(tree.node_of[arm])] = of_arm[arm];
        for (std::int32_t node = tree.n_nodes; node-- > 0;) {
            const Sum here = sums[static_cast<std::size_t>(node)];
            if (here.count == 0.0) continue;
            if (node > 0) {
                Sum& above = sums[static_cast<std::size_t>(tree.parent[node])];
                above.count += here.count;
                above.total += here.total;
            }
            rows.observe(node, here.total, here.count, nullptr);
        }
        shortcut.reset();
        for (std::int32_t node = tree.n_nodes; Rule::summarises && node-- > 0;)
            if (tree.n_children(node) > 0 && sums[static_cast<std::size_t>(node)].count > 0.0)
                rule.summarise(tree, rows, node);
    }

  private:
    // Chooses all representatives again.
    void summarise_all() {
        for (std::int32_t node = tree.n_nodes; node-- > 0;)
            if (tree.n_children(node) > 0) rule.summarise(tree, rows, node);
    }

    void observe_one(std::int32_t arm, double reward, double count, const double* context) {
        fade();
        observe(arm, reward, count, context);
    }

    // Whether a pass over all nodes is faster than n rewards one by one. If evidence fades, the order matters.
    bool many(std::size_t n) const { return n > 256 + static_cast<std::size_t>(tree.n_arms) / 16 && fade_every == 0; }

    // Learns `count` rewards with sum `reward` at every node on the way up.
    void observe(std::int32_t arm, double reward, double count, const double* context) {
        find(arm);
        for (std::size_t i = path.size(); i-- > 0;) {
            rows.observe(path[i], reward, count, context);
            if (i > 0) shortcut.follow(tree, rows, path[i - 1], path[i]);
        }
    }

    // Takes one step down among the allowed children. False if a score is NaN.
    bool step_within(const Limits& limits, const Decisions& one, std::int32_t* node) {
        if constexpr (!Rule::summarises) {  // else the representative of a cluster may depend on limits further down
            const Limits::Children* excluded = limits.at(*node);
            std::int32_t step = 0;
            if (!limits.only && !excluded) {
                if (tree.n_children(*node) > 1 && !pick(*node, one, &step)) return false;
                *node = tree.first(*node) + step;
                return true;
            }
            const std::size_t n_left = static_cast<std::size_t>(tree.n_children(*node)) - excluded->size();
            if (!limits.only && n_left > 1 && shortcut.covers_some(tree, rows, *node)) {
                evaluations += static_cast<std::int64_t>(n_left);
                step = shortcut.pick(tree, rows, rule, *node, one.context(0), *rng, excluded);
                *node = tree.first(*node) + step;
                return step >= 0;
            }
        }
        return step_listed(limits, one, node);
    }

    bool step_listed(const Limits& limits, const Decisions& one, std::int32_t* node) {
        list_children(&limits, *node);
        std::int32_t step = 0;
        if (among.size() > 1) {
            score_listed(&limits, *node, one);
            step = highest_place(scores.data(), among.size(), *rng);
            if (step < 0) return false;
        }
        *node = among[static_cast<std::size_t>(step)];
        return true;
    }

    // Writes the children of a node that may be chosen into `among`.
    void list_children(const Limits* limits, std::int32_t node) {
        if (limits) return limits->allowed(tree, node, among);
        among.resize(static_cast<std::size_t>(tree.n_children(node)));
        std::iota(among.begin(), among.end(), tree.first(node));
    }

    // Writes the scores of the children listed, in order, into `scores`: (k,).
    void score_listed(const Limits* limits, std::int32_t node, const Decisions& one) {
        evaluations += static_cast<std::int64_t>(among.size());
        if (scores.size() < among.size()) scores.resize(among.size());
        rule.score_some(tree, rows, node, limits, among, one, *rng, scores.data());
    }

    // Lists the children of a node, and writes the probability of each into `scores`: ties share it. False if a score
    // is NaN.
    bool share_listed(const Limits* limits, std::int32_t node, const Decisions& one) {
        list_children(limits, node);
        const std::size_t k = among.size();
        if (scores.size() < k) scores.resize(k);
        rule.score_some(tree, rows, node, limits, among, one, *rng, scores.data());
        for (std::size_t i = 0; i < k; ++i)
            if (std::isnan(scores[i])) return false;
        const double top = *std::max_element(scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(k));
        const auto n_best =
            static_cast<double>(std::count(scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(k), top));
        for (std::size_t i = 0; i < k; ++i) scores[i] = scores[i] == top ? 1.0 / n_best : 0.0;
        return true;
    }

    // Sorts the children listed by their scores, the highest first, ties in random order. False if a score is NaN.
    bool sort_listed() {
        const std::size_t k = among.size();
        std::vector<std::size_t> order(k);
        std::iota(order.begin(), order.end(), 0);
        for (std::size_t i = 0; i < k; ++i)
            if (std::isnan(scores[i])) return false;
        std::stable_sort(order.begin(), order.end(),
                         [this](std::size_t i, std::size_t j) { return scores[i] > scores[j]; });
        for (std::size_t from = 0, to; from < k; from = to) {
            for (to = from + 1; to < k && scores[order[to]] == scores[order[from]];) ++to;
            for (std::size_t i = to - 1; i > from; --i) std::swap(order[i], order[from + rng->integers(i - from + 1)]);
        }
        std::vector<std::int32_t> sorted(k);
        for (std::size_t i = 0; i < k; ++i) sorted[i] = among[order[i]];
        among.swap(sorted);
        return true;
    }

    // Prepares the contexts of m decisions for the belief: those of the decisions `who`, or the first m if it is null.
    Decisions prepare(const double* contexts, const std::int32_t* who, std::size_t m) {
        const std::size_t stride = rows.stride();
        if (prepared.size() < m * stride) prepared.resize(m * stride);
        for (std::size_t j = 0; stride && j < m; ++j)
            rows.prepare(contexts + (who ? static_cast<std::size_t>(who[j]) : 0) * rows.dim(),
                         prepared.data() + j * stride);
        return {m, prepared.data(), stride};
    }

    // Finds the child with the highest score for each of m decisions, ties at random: (m,). False if a score is NaN.
    bool pick(std::int32_t node, const Decisions& decisions, std::int32_t* winners) {
        const std::size_t k = static_cast<std::size_t>(tree.n_children(node)), m = decisions.m;
        evaluations += static_cast<std::int64_t>(k * m);
        if (shortcut.covers(tree, rows, node)) {
            for (std::size_t j = 0; j < m; ++j) {
                winners[j] = shortcut.pick(tree, rows, rule, node, decisions.context(j), *rng, nullptr);
                if (winners[j] < 0) return false;
            }
            return true;
        }
        if (scores.size() < k * m) scores.resize(k * m);
        rule.score(tree, rows, node, decisions, *rng, scores.data());
        if (m == 1) {
            *winners = highest_place(scores.data(), k, *rng);
            return *winners >= 0;
        }
        if (best.size() < m) best.resize(m), n_ties.resize(m);
        in_vectors([this, k, m, winners]() BANDITREE_INLINE {
            highest_of_columns(scores.data(), k, m, best.data(), winners, n_ties.data());
        });
        for (std::size_t j = 0; j < m; ++j) {
            if (n_ties[j] == 1) continue;  // else there are ties, or a score that is not a number
            column.resize(k);
            for (std::size_t i = 0; i < k; ++i) column[i] = scores[i * m + j];
            winners[j] = highest_place(column.data(), k, *rng);
            if (winners[j] < 0) return false;
        }
        return true;
    }
};

}  // namespace banditree
