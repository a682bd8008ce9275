// The walk down the tree and the update up it. Twin of banditree/descent.py: the same steps, draw for draw.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "random.hpp"
#include "shortcut.hpp"
#include "sums.hpp"
#include "tree.hpp"

namespace banditree {

// What Python and the simulator see of a walk, whatever its belief and rule.
struct Walk {
    virtual ~Walk() = default;
    virtual std::size_t dim() const = 0;
    // One decision from today's beliefs: the place of an arm, or -1 where scores are not numbers.
    virtual std::int32_t choose(const double* context) = 0;
    virtual bool choose_many(const double* contexts, std::size_t m, std::int32_t* found) = 0;
    virtual bool supports(double reward) const = 0;
    virtual void update(std::int32_t arm, double reward, const double* context) = 0;
    // Python has changed the evidence: forget what was derived from it.
    virtual void reset() = 0;
    // Nodes with at least this many children are walked by an exact shortcut, where there is one.
    virtual std::int32_t& narrowest() = 0;

    Tree tree;
    Stream* rng = nullptr;
    std::int64_t evaluations = 0;  // children scored so far: the paper's computational cost
};

template <class Rows, class Rule>
struct Walker final : Walk {
    static constexpr std::size_t block = 65536;  // scores held at once when many decisions are made together
    Rows rows;
    Rule rule;
    Shortcut<Rows, Rule> shortcut;
    std::vector<double> scores, best, prepared;  // scratch: (k, m), (m,) and (m, stride)
    std::vector<std::int32_t> n_ties;            // scratch: (m,)

    Walker(Rows rows_, Rule rule_) : rows(std::move(rows_)), rule(std::move(rule_)), best(1), n_ties(1) {}

    std::size_t dim() const override { return rows.dim(); }

    std::int32_t choose(const double* context) override {
        const Decisions one = prepare(context, nullptr, 1);
        std::int32_t node = 0;
        while (tree.n_children(node) > 0) {
            std::int32_t step = 0;
            if (tree.n_children(node) > 1 && !pick(node, one, &step)) return -1;
            node = tree.first(node) + step;
        }
        return tree.content[node];
    }

    // Decisions that stand at the same node are scored together; nodes are visited depth first, left to right.
    bool choose_many(const double* contexts, std::size_t m, std::int32_t* found) override {
        struct Group {
            std::int32_t node;
            std::vector<std::int32_t> who;
        };
        std::vector<Group> waiting(1);
        waiting[0].node = 0;
        for (std::size_t i = 0; i < m; ++i) waiting[0].who.push_back(static_cast<std::int32_t>(i));
        std::vector<std::int32_t> step;
        while (!waiting.empty()) {
            Group group = std::move(waiting.back());
            waiting.pop_back();
            const std::int32_t node = group.node, k = tree.n_children(node);
            if (k == 0) {
                for (const std::int32_t i : group.who) found[i] = tree.content[node];
                continue;
            }
            step.assign(group.who.size(), 0);
            const std::size_t widest = std::max<std::size_t>(static_cast<std::size_t>(k), rows.dim() * rows.dim());
            const std::size_t at_once = std::max<std::size_t>(1, block / widest);
            for (std::size_t at = 0; k > 1 && at < group.who.size(); at += at_once) {
                const std::size_t size = std::min(at_once, group.who.size() - at);
                if (!pick(node, prepare(contexts, group.who.data() + at, size), step.data() + at)) return false;
            }
            // A stable sort by child keeps each group's decisions in order; the first child ends up on top.
            std::vector<std::int32_t> order(group.who.size());
            for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
            std::stable_sort(order.begin(), order.end(), [&](auto i, auto j) { return step[i] > step[j]; });
            for (std::size_t i = 0; i < order.size(); ++i) {
                const std::int32_t child = tree.first(node) + step[order[i]];
                if (i == 0 || step[order[i]] != step[order[i - 1]]) waiting.push_back({child, {}});
                waiting.back().who.push_back(group.who[order[i]]);
            }
        }
        return true;
    }

    void reset() override {
        rows.reset();
        shortcut.reset();
    }
    std::int32_t& narrowest() override { return shortcut.narrowest; }

    bool supports(double reward) const override {
        constexpr double largest = 1e100;  // LARGEST of beliefs/base.py: sums stay finite
        return std::fabs(reward) <= largest && reward >= Rows::low && reward <= Rows::high;
    }

    void update(std::int32_t arm, double reward, const double* context) override {
        const std::int32_t leaf = tree.node_of[arm];
        for (std::int32_t node = leaf; node >= 0; node = tree.parent[node]) {
            rows.observe(node, reward, context);
            shortcut.follow(tree, rows, node);
        }
        for (std::int32_t node = tree.parent[leaf]; node >= 0; node = tree.parent[node])
            rule.summarise(tree, rows, node);
    }

  private:
    // The contexts of m decisions, as the belief wants them: those of the decisions `who`, or the first where it is null.
    Decisions prepare(const double* contexts, const std::int32_t* who, std::size_t m) {
        const std::size_t stride = rows.stride();
        if (prepared.size() < m * stride) prepared.resize(m * stride);
        for (std::size_t j = 0; stride && j < m; ++j)
            rows.prepare(contexts + (who ? static_cast<std::size_t>(who[j]) : 0) * rows.dim(), prepared.data() + j * stride);
        return {m, prepared.data(), stride};
    }

    // The child with the highest score for each of m decisions, ties at random: (m,). False where a score is NaN.
    bool pick(std::int32_t node, const Decisions& decisions, std::int32_t* winners) {
        const std::size_t k = static_cast<std::size_t>(tree.n_children(node)), m = decisions.m;
        evaluations += static_cast<std::int64_t>(k * m);
        if (shortcut.covers(tree, rows, node)) {
            for (std::size_t j = 0; j < m; ++j) {
                winners[j] = shortcut.pick(tree, rows, rule, node, decisions.context(j), *rng);
                if (winners[j] < 0) return false;
            }
            return true;
        }
        if (scores.size() < k * m) scores.resize(k * m);
        rule.score(tree, rows, node, decisions, *rng, scores.data());
        if (m == 1) {
            *winners = pick_one(k);
            return *winners >= 0;
        }
        if (best.size() < m) best.resize(m), n_ties.resize(m);
        // The highest score of each decision first, without branches; then the few that are not below it.
        for (std::size_t j = 0; j < m; ++j) best[j] = scores[j];
        for (std::size_t i = 1; i < k; ++i) raise(best.data(), scores.data() + i * m, m);
        for (std::size_t j = 0; j < m; ++j) n_ties[j] = 0, winners[j] = -1;
        for (std::size_t i = 0; i < k; ++i) {
            const double* row = scores.data() + i * m;
            for (std::size_t j = 0; j < m; ++j) {
                if (row[j] < best[j]) continue;
                if (row[j] != best[j]) return false;  // NaN
                if (n_ties[j]++ == 0) winners[j] = static_cast<std::int32_t>(i);
            }
        }
        for (std::size_t j = 0; j < m; ++j) {
            if (n_ties[j] == 1) continue;
            std::uint64_t skip = rng->integers(static_cast<std::uint64_t>(n_ties[j]));
            for (std::size_t i = winners[j];; ++i) {
                if (scores[i * m + j] == best[j] && skip-- == 0) {
                    winners[j] = static_cast<std::int32_t>(i);
                    break;
                }
            }
        }
        return true;
    }
    std::int32_t pick_one(std::size_t k) {
        const double* score = scores.data();
        std::size_t winner = 0;
        std::uint64_t n = 1;
        double top = score[0];
        if (k < 8) {
            for (std::size_t i = 1; i < k; ++i) {
                if (score[i] > top) {
                    top = score[i], winner = i, n = 1;
                } else if (!(score[i] < top)) {
                    if (score[i] != top) return -1;
                    ++n;
                }
            }
            if (std::isnan(top)) return -1;
        } else {
            top = highest(score, k);
            n = 0;
            for (std::size_t i = 0; i < k; ++i) {
                if (score[i] < top) continue;
                if (score[i] != top) return -1;  // NaN
                if (n++ == 0) winner = i;
            }
        }
        if (n > 1)
            for (std::uint64_t skip = rng->integers(n); skip > 0; --skip)
                while (score[++winner] != top) {
                }
        return static_cast<std::int32_t>(winner);
    }
};

}  // namespace banditree
