// Whole runs: several walks meet one world, step by step. Twin of the loop in banditree/simulation.py.
#pragma once

#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <vector>

#include "descent.hpp"
#include "random.hpp"
#include "sums.hpp"
#include "vectors.hpp"

namespace banditree {

// Shared with the Python thread that watches: how far the runs are, and whether to stop.
struct Monitor {
    std::atomic<std::int64_t> steps{0};
    std::atomic<bool> stop{false};
};

// The truth about the arms, and how rewards and contexts are drawn. Twin of banditree/problems/instance.py.
struct World {
    enum class Rewards { bernoulli, bounded, gaussian, uniform };
    enum class Contexts { none, normal, uniform, unit };

    const double* truth;  // (arms,) means, or (arms, dim) coefficients
    std::size_t n_arms, dim;
    Rewards rewards;
    double parameter;  // concentration or sd
    Contexts contexts;

    double expected(std::int32_t arm, const double* x) const {
        if (!x) return truth[arm];
        const double* theta = truth + static_cast<std::size_t>(arm) * dim;
        double sum = 0.0;
        for (std::size_t i = 0; i < dim; ++i) sum += theta[i] * x[i];
        return sum;
    }

    // The truth with the arms side by side, (dim, arms), to find the best of them by `best`.
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
        return top;
    }

    // Whether all rewards of an arm are allowed, by their ends.
    template <class Allowed>
    bool stays(std::size_t arm, const Allowed& allowed) const {
        if (rewards == Rewards::bernoulli || rewards == Rewards::bounded) return allowed(0.0) && allowed(1.0);
        if (rewards == Rewards::gaussian || dim) return allowed(-1e100) && allowed(1e100);
        return allowed(0.0) && allowed(2.0 * truth[arm]);
    }

    double reward(double mean, Stream& rng) const {
        switch (rewards) {
            case Rewards::bernoulli: return rng.random() < mean ? 1.0 : 0.0;
            case Rewards::bounded:
                if (!(mean > 0.0 && mean < 1.0)) return mean;
                return rng.beta(mean * parameter, (1 - mean) * parameter);
            case Rewards::gaussian: return mean + parameter * rng.standard_normal();
            default: return 2 * mean * rng.random();
        }
    }

    void context(Stream& rng, double* x) const {
        for (std::size_t i = 0; i < dim; ++i) x[i] = contexts == Contexts::uniform ? rng.random() : rng.standard_normal();
        if (contexts != Contexts::unit) return;
        double square = x[0] * x[0];
        for (std::size_t i = 1; i < dim; ++i) square += x[i] * x[i];
        const double length = std::sqrt(square);
        for (std::size_t i = 0; i < dim; ++i) x[i] /= length;
    }
};

// One policy in the world: its walk, where its arms are, and what is kept of its run.
struct Player {
    Walk* walk;
    const std::int32_t* arm_of;  // (the policy's arms,) their places in the world, or null where they are the same
    Stream* rewards;
    double* regret;        // (times,) cumulative
    std::int64_t* plays;   // (arms of the world,)
    std::function<void(std::int32_t, double, const double*)> careful;  // learns what the walk refuses to
    double sum = 0.0, seconds = 0.0;  // seconds are -1 where the walk could not go on: its scores were not numbers
    std::size_t next = 0;  // place in times
};

// Stops early when told.
inline void simulate(const World& world, std::vector<Player>& players, Stream& contexts, std::int64_t horizon,
                     const std::int64_t* times, Monitor& monitor) {
    // Contexts and the best arm's value are the same for all players: drawn and found once for a stretch of steps.
    constexpr std::int64_t stretch = 512;
    std::vector<double> x(world.dim * stretch), best(stretch, world.dim ? 0.0 : highest(world.truth, world.n_arms));
    const std::vector<double> columns = world.columns();
    std::vector<double> values(world.dim ? world.n_arms : 0);
    for (std::int64_t from = 0; from < horizon; from += stretch) {
        const std::int64_t to = from + stretch < horizon ? from + stretch : horizon;
        for (std::int64_t t = from; world.dim && t < to; ++t) {
            double* here = x.data() + static_cast<std::size_t>(t - from) * world.dim;
            world.context(contexts, here);
            best[static_cast<std::size_t>(t - from)] = world.best(columns.data(), here, values.data());
        }
        for (Player& player : players) {
            if (player.seconds < 0.0) continue;
            const auto start = std::chrono::steady_clock::now();
            for (std::int64_t t = from; t < to; ++t) {
                if (monitor.stop.load(std::memory_order_relaxed)) return;
                const std::size_t at = static_cast<std::size_t>(t - from);
                const double* here = world.dim ? x.data() + at * world.dim : nullptr;
                const std::int32_t place = player.walk->choose(here);
                if (place < 0) {
                    player.seconds = -1.0;
                    break;
                }
                const std::int32_t arm = player.arm_of ? player.arm_of[place] : place;
                const double mean = world.expected(arm, here);
                const double reward = world.reward(mean, *player.rewards);
                if (!player.walk->update(place, reward, here)) player.careful(place, reward, here);
                player.sum += best[at] - mean;
                ++player.plays[arm];
                if (t + 1 == times[player.next]) player.regret[player.next++] = player.sum;
            }
            monitor.steps.fetch_add(to - from, std::memory_order_relaxed);
            const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
            if (player.seconds >= 0.0) player.seconds += taken.count();
        }
    }
}

}  // namespace banditree
