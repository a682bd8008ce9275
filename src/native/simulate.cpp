// Whole runs for Python, without the GIL.
#include "simulate.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include "walk.hpp"

namespace nb = nanobind;

namespace banditree {
namespace {

template <class T>
T* data(nb::handle array) {
    return nb::cast<nb::ndarray<T, nb::c_contig, nb::device::cpu>>(array, false).data();
}

World::Rewards rewards_of(const std::string& name) {
    if (name == "Bernoulli") return World::Rewards::bernoulli;
    if (name == "Bounded") return World::Rewards::bounded;
    if (name == "Gaussian") return World::Rewards::gaussian;
    if (name == "Uniform") return World::Rewards::uniform;
    throw nb::value_error("no such rewards");
}

World::Contexts contexts_of(const std::string& name) {
    if (name.empty()) return World::Contexts::none;
    if (name == "normal") return World::Contexts::normal;
    if (name == "uniform") return World::Contexts::uniform;
    if (name == "unit") return World::Contexts::unit;
    throw nb::value_error("no such contexts");
}

// `players`: (walk, arm_of, rewards stream, regret, plays) each. Gives the seconds of each, -1 for one that could not go on.
nb::list run(nb::ndarray<const double, nb::c_contig> truth, std::size_t dim, const std::string& rewards,
               double parameter, const std::string& contexts, Stream& context_stream, std::int64_t horizon,
               nb::ndarray<const std::int64_t, nb::c_contig> times, nb::list players, Monitor& monitor) {
    World world{truth.data(), truth.shape(0), dim, rewards_of(rewards), parameter, contexts_of(contexts)};
    std::vector<Player> ready;
    for (nb::handle entry : players) {
        const nb::tuple player = nb::cast<nb::tuple>(entry);
        ready.push_back({nb::cast<BoundWalk&>(player[0]).walk.get(), player[1].is_none() ? nullptr : data<const std::int32_t>(player[1]),
                         nb::cast<Stream*>(player[2]), data<double>(player[3]), data<std::int64_t>(player[4])});
    }
    {
        nb::gil_scoped_release release;
        simulate(world, ready, context_stream, horizon, times.data(), monitor);
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
          nb::arg("context_stream"), nb::arg("horizon"), nb::arg("times"), nb::arg("players"), nb::arg("monitor"));
}

}  // namespace banditree
