// The walk down the tree and the update up it. Twin of banditree/descent.py: the same steps, draw for draw.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>
#include <utility>
#include <vector>

#include "random.hpp"
#include "shortcut.hpp"
#include "sums.hpp"
#include "tree.hpp"
#include "vectors.hpp"

namespace banditree {

// LARGEST of errors/checks.py, of a reward or an entry of a context: sums of them and of their squares stay finite.
constexpr double largest = 1e100;

// What Python and the simulator see of a walk, whatever its belief and rule.
struct Walk {
    virtual ~Walk() = default;
    virtual std::size_t dim() const = 0;
    // One decision from today's beliefs: the place of an arm, or -1 where scores are not numbers.
    virtual std::int32_t choose(const double* context) = 0;
    virtual bool choose_many(const double* contexts, std::size_t m, std::int32_t* found) = 0;
    virtual bool supports(double reward) const = 0;
    virtual void update(std::int32_t arm, double reward, const double* context) = 0;
    // The same for n rewards, contexts end to end. What the rule keeps is brought up to date once for all of them.
    virtual void update_few(const std::int64_t* arms, const double* rewards, const double* contexts, std::size_t n) = 0;
    // Python has changed the evidence: forget what was derived from it.
    virtual void reset() = 0;
    // Nodes with at least this many children are walked by an exact shortcut, where there is one; the largest number there
    // is turns off all shortcuts, also those that do not depend on the width.
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
    std::vector<double> scores, column, prepared, best;  // scratch: (k, m), (k,), (m, stride) and (m,)
    std::vector<std::int32_t> n_ties, path;              // scratch: (m,); the last way down or up, the root first

    Walker(Rows rows_, Rule rule_) : rows(std::move(rows_)), rule(std::move(rule_)) {}

    std::size_t dim() const override { return rows.dim(); }

    std::int32_t choose(const double* context) override {
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

    // Decisions that stand at the same node are scored together; nodes are visited depth first, left to right.
    bool choose_many(const double* contexts, std::size_t m, std::int32_t* found) override {
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

    void reset() override {
        rows.reset();
        shortcut.reset();
    }
    std::int32_t& narrowest() override { return shortcut.narrowest; }

    bool supports(double reward) const override {
        return std::fabs(reward) <= largest && reward >= Rows::low && reward <= Rows::high;
    }

    void update(std::int32_t arm, double reward, const double* context) override {
        observe(arm, reward, context);
        for (std::size_t i = path.size() - 1; i-- > 0;) rule.summarise(tree, rows, path[i]);
    }

    void update_few(const std::int64_t* arms, const double* rewards, const double* contexts, std::size_t n) override {
        std::vector<std::int32_t> touched;
        for (std::size_t i = 0; i < n; ++i) {
            observe(static_cast<std::int32_t>(arms[i]), rewards[i], contexts ? contexts + i * rows.dim() : nullptr);
            touched.insert(touched.end(), path.begin(), path.end() - 1);
        }
        std::sort(touched.begin(), touched.end(), std::greater<>());  // a child's number is above its parent's
        touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
        for (const std::int32_t node : touched) rule.summarise(tree, rows, node);
    }

  private:
    // A reward, for every node on the way up.
    void observe(std::int32_t arm, double reward, const double* context) {
        // The way up is mostly the way down just taken; looking it up costs a miss of the cache a level in a large tree.
        if (path.empty() || tree.content[path.back()] != arm) {
            path.clear();
            for (std::int32_t node = tree.node_of[arm]; node >= 0; node = tree.parent[node]) path.push_back(node);
            std::reverse(path.begin(), path.end());
        }
        for (std::size_t i = path.size(); i-- > 0;) {
            rows.observe(path[i], reward, context);
            if (i > 0) shortcut.follow(tree, rows, path[i - 1], path[i]);
        }
    }

    // Sort keys, which are below k, and the values with them; equal keys stay in order. By counting, unless k is so great
    // that the counts alone would take longer.
    static void sort_by(std::int32_t* key, std::int32_t k, std::int32_t* value, std::int32_t* scratch, std::size_t n) {
        if (static_cast<std::size_t>(k) > 16 * n) {
            std::vector<std::pair<std::int32_t, std::int32_t>> both(n);
            for (std::size_t i = 0; i < n; ++i) both[i] = {key[i], value[i]};
            std::stable_sort(both.begin(), both.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
            for (std::size_t i = 0; i < n; ++i) std::tie(key[i], value[i]) = both[i];
            return;
        }
        std::vector<std::size_t> place(static_cast<std::size_t>(k) + 1);
        for (std::size_t i = 0; i < n; ++i) ++place[key[i] + 1];
        for (std::size_t c = 1; c < place.size(); ++c) place[c] += place[c - 1];
        for (std::size_t i = 0; i < n; ++i) scratch[place[key[i]]++] = value[i];
        std::copy(scratch, scratch + n, value);
        std::size_t at = 0;
        for (std::int32_t c = 0; c < k; ++c)
            for (; at < place[c]; ++at) key[at] = c;
    }

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
