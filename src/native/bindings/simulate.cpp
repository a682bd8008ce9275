// Simulates whole runs for Python, without the GIL.
#include "simulation/stepper.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include "bindings/checked.hpp"
#include "bindings/walk.hpp"

namespace nb = nanobind;

namespace banditree {
namespace {

World::Rewards rewards_of(const std::string& name) {
    if (name == "Bernoulli") return World::Rewards::bernoulli;
    if (name == "Bounded") return World::Rewards::bounded;
    if (name == "Gaussian") return World::Rewards::gaussian;
    if (name == "Uniform") return World::Rewards::uniform;
    if (name == "Clicks") return World::Rewards::clicks;
    throw nb::value_error("no such rewards");
}

World::Contexts contexts_of(const std::string& name) {
    if (name.empty()) return World::Contexts::none;
    if (name == "normal") return World::Contexts::normal;
    if (name == "uniform") return World::Contexts::uniform;
    if (name == "unit") return World::Contexts::unit;
    if (name == "constant") return World::Contexts::constant;
    if (name == "hidden") return World::Contexts::hidden;
    throw nb::value_error("no such contexts");
}

// Requires that rewards can be drawn around these means.
void require_world(const World& world) {
    require(std::isfinite(world.parameter) && (world.rewards != World::Rewards::bounded || world.parameter > 0.0),
            "the parameter of the rewards must be finite, and above 0 for bounded ones");
    const bool shares = world.rewards == World::Rewards::bernoulli || world.rewards == World::Rewards::bounded;
    for (std::size_t i = 0; i < world.n_arms * (world.dim ? world.dim : 1); ++i)
        require(
            std::isfinite(world.truth[i]) && (world.dim || !shares || (world.truth[i] >= 0.0 && world.truth[i] <= 1.0)),
            "the truth must be finite, and from 0 to 1 if rewards are");
}

// Copies the truth, which must have one number per arm, or dim numbers per arm.
std::vector<double> truth_of(nb::handle given, std::size_t n_arms, std::size_t dim) {
    Doubles truth;
    require(nb::try_cast(given, truth, false) && truth.ndim() == (dim ? 2u : 1u) && truth.shape(0) > 0 &&
                (!n_arms || truth.shape(0) == n_arms) && (!dim || truth.shape(1) == dim) && aligned(truth.data()),
            "the truth needs one row per arm");
    return {truth.data(), truth.data() + truth.shape(0) * (dim ? dim : 1)};
}

void require_support(const World& world, const Walk& walk) {
    for (std::size_t i = 0; i < world.n_arms; ++i)
        require(world.stays(i, [&walk](double reward) { return walk.supports(reward); }),
                "a player's belief does not allow the rewards of this problem");
}

// `players`: (walk, arm_of, rewards stream, regret, plays, trace or None) each. Returns the seconds of each, -1 for one
// that could not go on. If `every` is above 0, next_truth(k) gives the truth from step k * every + 1 on.
nb::list run(nb::object truth, std::size_t dim, const std::string& rewards, double parameter,
             const std::string& contexts, Stream* context_stream, std::int64_t horizon, Positions times,
             nb::list players, Monitor& monitor, std::int64_t delay, std::int64_t batch, std::int64_t every,
             nb::object next_truth) {
    constexpr std::int64_t longest = std::int64_t{1} << 60;  // sums of two of these still fit
    require(horizon >= 0 && horizon < longest && delay >= 0 && delay < longest && batch > 0 && batch < longest &&
                every >= 0 && every < longest,
            "steps must be neither negative nor too many");
    require(every == 0 || !next_truth.is_none(), "a problem that changes needs its next truth");
    std::vector<double> now = truth_of(truth, 0, dim);
    World world{now.data(), now.size() / (dim ? dim : 1), dim, rewards_of(rewards), parameter, contexts_of(contexts)};
    require_world(world);
    require((dim > 0) == (world.contexts != World::Contexts::none),
            "contexts are needed if dim is above 0, and only then");
    require(dim == 0 || context_stream, "contexts need a stream");
    require(dim != 1 || world.contexts != World::Contexts::hidden, "a hidden constant needs other numbers beside it");
    const std::size_t n_times = times.shape(0);
    const std::int64_t* time = times.data();
    require(aligned(time) && (n_times > 0 ? time[n_times - 1] == horizon : horizon == 0),
            "times must end at the horizon");
    for (std::size_t i = 0; i < n_times; ++i)
        require(time[i] > (i ? time[i - 1] : 0), "times must increase, from 1 on");
    std::vector<Player> ready;
    for (nb::handle entry : players) {
        const nb::tuple player = nb::cast<nb::tuple>(entry);
        require(player.size() == 6, "a player is a walk, its arms, a stream, two arrays, and a third one or None");
        Walk* walk = nb::cast<BoundWalk&>(player[0]).walk.get();
        const std::size_t n_arms = static_cast<std::size_t>(walk->tree.n_arms);
        const std::int32_t* arm_of = nullptr;
        if (!player[1].is_none()) {
            arm_of = numbers<const std::int32_t>(player[1], n_arms, "a player needs the position of each of its arms");
            for (std::size_t i = 0; i < n_arms; ++i)
                require(static_cast<std::uint32_t>(arm_of[i]) < world.n_arms,
                        "a player has an arm that the problem does not have");
        }
        require_support(world, *walk);
        require((walk->dim() == world.shown() || walk->dim() == 0) && (arm_of || n_arms == world.n_arms),
                "a player does not fit the problem");
        std::int64_t* trace = nullptr;
        if (!player[5].is_none())
            trace = numbers<std::int64_t>(player[5], n_times * world.n_arms,
                                          "a trace needs the plays of each arm at each time");
        ready.push_back({walk, arm_of, nb::cast<Stream*>(player[2]),
                         numbers<double>(player[3], n_times, "regret needs one number per time"),
                         numbers<std::int64_t>(player[4], world.n_arms, "plays needs one number per arm"), trace});
    }
    const auto change = [&](std::int64_t k) {
        nb::gil_scoped_acquire acquire;
        now = truth_of(next_truth(k), world.n_arms, dim);
        world.truth = now.data();
        require_world(world);
        for (const Player& player : ready) require_support(world, *player.walk);
    };
    {
        nb::gil_scoped_release release;
        simulate(world, ready, context_stream, {horizon, delay, batch}, times.data(), monitor, every, change);
    }
    nb::list seconds;
    for (const Player& player : ready) seconds.append(player.seconds);
    return seconds;
}

}  // namespace

void bind_simulate(nb::module_& m) {
    nb::class_<Monitor>(m, "Monitor")
        .def(nb::init<>())
        .def("add", [](Monitor& self, std::int64_t steps) { self.steps += steps; })
        .def_prop_ro("steps", [](const Monitor& self) { return self.steps.load(); })
        .def_prop_rw(
            "stop", [](const Monitor& self) { return self.stop.load(); },
            [](Monitor& self, bool stop) { self.stop = stop; });
    m.def("run", &run, nb::arg("truth"), nb::arg("dim"), nb::arg("rewards"), nb::arg("parameter"), nb::arg("contexts"),
          nb::arg("context_stream").none(), nb::arg("horizon"), nb::arg("times").noconvert(), nb::arg("players"),
          nb::arg("monitor"), nb::arg("delay") = 0, nb::arg("batch") = 1, nb::arg("every") = 0,
          nb::arg("next_truth").none() = nb::none());
}

}  // namespace banditree
