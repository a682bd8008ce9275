// Simulates whole runs: several walks play one problem, step by step. Twin of banditree/simulation/stepper.py.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "numerics/math.hpp"
#include "numerics/sums.hpp"
#include "numerics/vectors.hpp"
#include "policy/descent.hpp"
#include "stream.hpp"

namespace banditree {

// Shared with the Python thread that watches: the progress of the runs, and whether to stop.
struct Monitor {
    std::atomic<std::int64_t> steps{0};
    std::atomic<bool> stop{false};
};

// The truth about the arms, and how rewards and contexts are drawn. Twin of banditree/problems/instance.py.
struct World {
    enum class Rewards { bernoulli, bounded, gaussian, uniform, clicks };
    enum class Contexts { none, normal, uniform, unit, constant, hidden };

    const double* truth;      // (arms,) means, or (arms, dim) coefficients
    std::size_t n_arms, dim;  // with the constant, if there is one
    Rewards rewards;
    double parameter;  // concentration or sd
    Contexts contexts;

    std::size_t hidden() const { return contexts == Contexts::hidden ? 1 : 0; }  // numbers that policies do not see
    std::size_t shown() const { return dim - hidden(); }

    // The expected reward where theta.x is `score`.
    double linked(double score) const {
        return rewards == Rewards::clicks ? 1.0 / (1.0 + exp(-std::max(score, -700.0))) : score;
    }

    double expected(std::int32_t arm, const double* x) const {
        if (!x) return truth[arm];
        const double* theta = truth + static_cast<std::size_t>(arm) * dim;
        double sum = 0.0;
        for (std::size_t i = 0; i < dim; ++i) sum += theta[i] * x[i];
        return linked(sum);
    }

    // The truth as (dim, arms), so that `best` reads the arms in order.
    std::vector<double> columns() const {
        std::vector<double> out(dim * n_arms);
        for (std::size_t arm = 0; arm < n_arms; ++arm)
            for (std::size_t i = 0; i < dim; ++i) out[i * n_arms + arm] = truth[arm * dim + i];
        return out;
    }
    double best(const double* columns, const double* x, double* scratch) const {
        double top;
        in_vectors([&]() BANDITREE_INLINE {
            weighted_sum(x, columns, dim, n_arms, scratch, n_arms);
            top = highest(scratch, n_arms);
        });
        return linked(top);
    }

    // Whether all rewards of an arm are allowed: checks their lowest and highest value.
    template <class Allowed>
    bool stays(std::size_t arm, const Allowed& allowed) const {
        if (rewards == Rewards::bernoulli || rewards == Rewards::bounded || rewards == Rewards::clicks)
            return allowed(0.0) && allowed(1.0);
        if (rewards == Rewards::gaussian || dim) return allowed(-1e100) && allowed(1e100);
        return allowed(0.0) && allowed(2.0 * truth[arm]);
    }

    double reward(double mean, Stream& rng) const {
        switch (rewards) {
            case Rewards::bernoulli:
            case Rewards::clicks:
                return rng.random() < mean ? 1.0 : 0.0;
            case Rewards::bounded:
                if (!(mean > 0.0 && mean < 1.0)) return mean;
                return rng.beta(mean * parameter, (1 - mean) * parameter);
            case Rewards::gaussian:
                return mean + parameter * rng.standard_normal();
            default:
                return 2 * mean * rng.random();
        }
    }

    void context(Stream& rng, double* x) const {
        const std::size_t first = contexts == Contexts::constant || contexts == Contexts::hidden ? 1 : 0;
        if (first) x[0] = 1.0;
        for (std::size_t i = first; i < dim; ++i)
            x[i] = contexts == Contexts::uniform ? rng.random() : rng.standard_normal();
        if (contexts != Contexts::unit) return;
        double square = x[0] * x[0];
        for (std::size_t i = 1; i < dim; ++i) square += x[i] * x[i];
        const double length = std::sqrt(square);
        for (std::size_t i = 0; i < dim; ++i) x[i] /= length;
    }
};

// When decisions are made and rewards learned: `batch` decisions at a time from the same beliefs, and the reward of
// step t (1, 2, ...) at the first batch that starts after step t + delay. Twin of Schedule in
// banditree/simulation/stepper.py.
struct Schedule {
    std::int64_t horizon, delay = 0, batch = 1;

    bool at_once() const { return delay == 0 && batch == 1; }
    bool starts_batch(std::int64_t t) const { return (t - 1) % batch == 0; }
    bool arrives(std::int64_t t) const { return t + delay < last_start(); }  // otherwise the run ends first
    std::int64_t last_start() const { return (horizon - 1) / batch * batch + 1; }
};

// A reward on its way to a policy.
struct Reward {
    std::int64_t step;
    std::int32_t arm;
    double value;
};

// One policy in a run: its walk, the positions of its arms, and its results.
struct Player {
    Walk* walk;
    const std::int32_t* arm_of;  // (the policy's arms,) their positions in the problem, or null if they are the same
    Stream* rewards;
    double* regret;       // (times,) cumulative
    std::int64_t* plays;  // (arms of the world,)
    std::int64_t* trace;  // (times, arms of the world) plays until each time, or null if they are not wanted
    double sum = 0.0, seconds = 0.0;   // seconds are -1 if the walk could not go on because a score was not a number
    std::size_t next = 0;              // position in times
    std::deque<Reward> late = {};      // rewards that have not been learned yet, the oldest first
    std::deque<double> contexts = {};  // those of them, end to end

    // Learns the rewards that have arrived before step t, in the order of the steps.
    void learn_arrived(std::int64_t t, std::int64_t delay, std::vector<double>& x) {
        while (!late.empty() && late.front().step + delay < t) {
            const std::size_t dim = walk->dim();
            x.assign(contexts.begin(), contexts.begin() + static_cast<std::ptrdiff_t>(dim));
            walk->update(late.front().arm, late.front().value, dim ? x.data() : nullptr);
            contexts.erase(contexts.begin(), contexts.begin() + static_cast<std::ptrdiff_t>(dim));
            late.pop_front();
        }
    }
};

// Stops early if told to. `change`, if given, replaces the truth at regular intervals.
inline void simulate(World& world, std::vector<Player>& players, Stream* contexts, const Schedule& schedule,
                     const std::int64_t* times, Monitor& monitor, std::int64_t every = 0,
                     const std::function<void(std::int64_t)>& change = {}) {
    // Contexts and the best arm's value are the same for all players: computed once for a block of steps.
    constexpr std::int64_t stretch = 512;
    std::vector<double> x(world.dim * stretch), best(stretch), one(world.dim);
    std::vector<double> columns, values(world.dim ? world.n_arms : 0);
    const bool at_once = schedule.at_once();
    for (std::int64_t from = 0, to; from < schedule.horizon; from = to) {
        to = std::min(from + stretch, schedule.horizon);
        if (every) {
            if (from > 0 && from % every == 0) change(from / every);
            to = std::min(to, (from / every + 1) * every);
        }
        if (from == 0 || (every && from % every == 0)) {
            if (world.dim)
                columns = world.columns();
            else
                std::fill(best.begin(), best.end(), highest(world.truth, world.n_arms));
        }
        for (std::int64_t t = from; world.dim && t < to; ++t) {
            double* here = x.data() + static_cast<std::size_t>(t - from) * world.dim;
            world.context(*contexts, here);
            best[static_cast<std::size_t>(t - from)] = world.best(columns.data(), here, values.data());
        }
        for (Player& player : players) {
            if (player.seconds < 0.0) continue;
            const auto start = std::chrono::steady_clock::now();
            const bool told = player.walk->dim() > 0;  // otherwise it plays without contexts
            for (std::int64_t t = from; t < to; ++t) {
                if (monitor.stop.load(std::memory_order_relaxed)) return;
                const std::size_t at = static_cast<std::size_t>(t - from);
                const double* here = world.dim ? x.data() + at * world.dim : nullptr;
                const double* known = told ? here + world.hidden() : nullptr;
                if (!at_once && schedule.starts_batch(t + 1)) player.learn_arrived(t + 1, schedule.delay, one);
                const std::int32_t place = player.walk->choose(known);
                if (place < 0) {
                    player.seconds = -1.0;
                    break;
                }
                const std::int32_t arm = player.arm_of ? player.arm_of[place] : place;
                const double mean = world.expected(arm, here);
                const double reward = world.reward(mean, *player.rewards);
                if (at_once) {
                    player.walk->update(place, reward, known);
                } else if (schedule.arrives(t + 1)) {
                    player.late.push_back({t + 1, place, reward});
                    if (known) player.contexts.insert(player.contexts.end(), known, known + world.shown());
                }
                player.sum += best[at] - mean;
                ++player.plays[arm];
                if (t + 1 == times[player.next]) {
                    if (player.trace)
                        std::copy_n(player.plays, world.n_arms, player.trace + player.next * world.n_arms);
                    player.regret[player.next++] = player.sum;
                }
            }
            monitor.steps.fetch_add(to - from, std::memory_order_relaxed);
            const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
            if (player.seconds >= 0.0) player.seconds += taken.count();
        }
    }
}

}  // namespace banditree
