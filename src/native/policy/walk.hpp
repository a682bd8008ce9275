// The interface of the walks, and what they share whatever their rule: exploring, checking rewards, fading, finding
// paths.
#pragma once

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>
#include <vector>

#include "policy/limits.hpp"
#include "stream.hpp"
#include "tree/shape.hpp"

namespace banditree {

constexpr double largest = 1e100, largest_context = 1e30;  // MAX_REWARD and MAX_CONTEXT in errors/checks.py
constexpr double most_plays = 1e15;                        // MAX_PLAYS in errors/checks.py: in one row of a batch

// Rewards of an arm or a node: how many, and their sum.
struct Sum {
    double count = 0.0, total = 0.0;
};

// The interface of a walk for Python and the simulator, independent of its belief and rule.
struct Walk {
    Walk(double low_, double high_) : low(low_), high(high_) {}
    virtual ~Walk() = default;
    virtual std::size_t dim() const = 0;
    // Makes one decision from the present beliefs: the position of an arm, or -1 if a score is not a number.
    virtual std::int32_t choose(const double* context) = 0;
    // The same among the arms that the limits allow.
    virtual std::int32_t choose_within(const Limits& limits, const double* context) = 0;
    virtual bool choose_many(const double* contexts, std::size_t m, std::int32_t* found) = 0;
    // Chooses k different arms, best first, with one draw per node: (k,). There are at least k; limits may be null.
    virtual bool slate(const Limits* limits, const double* context, std::size_t k,
                       std::vector<std::int32_t>& found) = 0;
    virtual void update(std::int32_t arm, double reward, const double* context) = 0;
    // The same for n rows, each the sum of plays[i] rewards of one arm (one if plays is null), contexts end to end.
    virtual void learn(const std::int64_t* arms, const double* rewards, const double* plays, const double* contexts,
                       std::size_t n) = 0;
    // Whether n rows are learned faster by summing them per arm and then making one pass over the tree, by
    // `learn_sums`.
    virtual bool learns_sums(std::size_t) const { return false; }
    // Learns what each arm got: (arms,).
    virtual void learn_sums(const Sum*) {}
    // The probabilities of the steps to an arm if it is given, else that of every arm: (steps,) or (arms,). False if
    // only Python computes them.
    virtual bool wins(const Limits*, const double*, std::int32_t, std::vector<double>&) { return false; }
    // The weight of each copy and the variance of its noise, for beliefs that are kept in copies and take contexts.
    virtual bool copies(std::vector<double>&, std::vector<double>&) { return false; }
    // What one copy believes in a context about n nodes: (5, n) mean and sd, those of a stray, and the odds to be one.
    virtual bool believed(const double*, std::size_t, const std::int64_t*, std::size_t, double*) { return false; }
    // Mean and standard deviation of a node's belief in a context, as the walk has derived them; for tests.
    virtual std::pair<double, double> moments(std::int32_t, const double*) { return {std::nan(""), std::nan("")}; }
    // Multiplies all evidence by a factor.
    virtual void forget(double factor) = 0;
    // Forgets what was derived from the evidence, because Python has changed it.
    virtual void reset() = 0;
    // Nodes with at least this many children are walked by an exact shortcut, if there is one; the largest int turns
    // off all shortcuts, also those that do not depend on the width.
    virtual std::int32_t& min_wide() = 0;

    bool supports(double reward) const { return std::fabs(reward) <= largest && reward >= low && reward <= high; }

    // Whether this can be the sum of this many rewards. An infinite bound stays infinite.
    bool allows(double sum, double plays) const {
        return plays > 0.0 && plays <= most_plays && std::fabs(sum) <= largest && sum >= low * plays &&
               sum <= high * plays;
    }

    const double low, high;  // the lowest and highest reward that the belief allows
    Tree tree;
    Stream* rng = nullptr;
    std::int64_t fade_every = 0, since_faded = 0;  // rewards between two steps of fading, 0 for none; since the last
    double fade_factor = 1.0;                      // by which a step multiplies all evidence
    double explore = 0.0;          // fraction of decisions made at random, all allowed arms equally likely
    std::int64_t evaluations = 0;  // children scored so far: the paper's computational cost
};

template <class Rows>
struct CommonWalk : Walk {
    Rows rows;
    std::vector<std::int32_t> path;  // the last path taken, the root first

    explicit CommonWalk(Rows rows_) : Walk(Rows::low, Rows::high), rows(std::move(rows_)) {}

    std::size_t dim() const override { return rows.dim(); }

  protected:
    // Evidence fades in steps, before the reward that comes `fade_every` rewards after the last step.
    void fade() {
        if (fade_every > 0 && since_faded++ == fade_every) {
            this->forget(fade_factor);
            since_faded = 1;
        }
    }

    bool explores() {
        if (!(explore > 0.0) || rng->random() >= explore) return false;
        path.clear();
        return true;
    }

    // The path up is usually the path just taken down; looking it up would cost one cache miss per level in a large
    // tree.
    void find(std::int32_t arm) {
        if (!path.empty() && tree.content[path.back()] == arm) return;
        path.clear();
        for (std::int32_t node = tree.node_of[arm]; node >= 0; node = tree.parent[node]) path.push_back(node);
        std::reverse(path.begin(), path.end());
    }

    // Draws k different arms, all ordered selections equally likely: the first k steps of a shuffle.
    void pick_any(const Limits* limits, std::size_t k, std::vector<std::int32_t>& found) {
        const auto n = static_cast<std::size_t>(limits ? limits->n_allowed : tree.n_arms);
        std::unordered_map<std::size_t, std::size_t> swapped;  // ranks that have moved
        const auto at = [&swapped](std::size_t i) { return swapped.count(i) ? swapped[i] : i; };
        found.clear();
        for (std::size_t i = 0; i < k; ++i) {
            const std::size_t j = i + rng->integers(n - i), rank = at(j);
            swapped[j] = at(i);
            found.push_back(limits ? limits->arm(static_cast<std::int32_t>(rank)) : static_cast<std::int32_t>(rank));
        }
    }
};

}  // namespace banditree
