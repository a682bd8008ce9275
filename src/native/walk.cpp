// The walks for Python: a belief, a rule and the arrays they share with NumPy.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <limits>
#include <memory>
#include <string>

#include "beliefs/beta.hpp"
#include "beliefs/counts.hpp"
#include "beliefs/gaussian.hpp"
#include "beliefs/linear.hpp"
#include "checked.hpp"
#include "descent.hpp"
#include "rules/best_arm.hpp"
#include "rules/thompson.hpp"
#include "rules/ucb.hpp"
#include "walk.hpp"

namespace nb = nanobind;

namespace banditree {
namespace {

PyTypeObject* plain_array = nullptr;  // numpy.ndarray, once the module is loaded

// A Python float, int or bool as a double. False for anything else, which Python then converts or explains: no code of the
// user's runs in the middle of a step.
bool to_double(nb::handle value, double& out) {
    PyObject* object = value.ptr();
    if (PyFloat_Check(object)) {
        out = PyFloat_AS_DOUBLE(object);
        return true;
    }
    if (!PyLong_Check(object)) return false;
    out = PyLong_AsDouble(object);
    if (out == -1.0 && PyErr_Occurred()) {  // beyond the range of doubles
        PyErr_Clear();
        return false;
    }
    return true;
}

// A context ready to use: none where none is needed, else doubles of the right length and size, in a plain NumPy array (a
// masked one is another type). They are copied before they are looked at, because another thread may change the array.
bool to_context(nb::handle value, std::size_t dim, std::vector<double>& copy, const double*& out) {
    out = nullptr;
    if (dim == 0 || value.is_none()) return dim == 0 && value.is_none();
    Doubles given;
    if (Py_TYPE(value.ptr()) != plain_array || !nb::try_cast(value, given, false)) return false;
    if (given.ndim() != 1 || given.shape(0) != dim || !aligned(given.data())) return false;
    copy.assign(given.data(), given.data() + dim);
    out = copy.data();
    for (std::size_t i = 0; i < dim; ++i)
        if (!(std::fabs(out[i]) <= largest)) return false;  // NaN too
    return true;
}

template <class Rows>
std::unique_ptr<Walk> with_rule(Rows rows, const std::string& rule, double c, bool flag, std::int32_t* summary) {
    if (rule == "UCB") return std::make_unique<Walker<Rows, UCB>>(std::move(rows), UCB{c, flag});
    if constexpr (!std::is_same_v<Rows, CountsRows>) {  // counts have nothing to sample from
        if (rule == "Thompson") return std::make_unique<Walker<Rows, Thompson>>(std::move(rows), Thompson{});
        if (rule == "BestArm") return std::make_unique<Walker<Rows, BestArm>>(std::move(rows), BestArm{summary, flag});
    }
    throw nb::value_error("no such rule for this belief");
}

// `arrays` are those of Rows.native_arrays().
std::unique_ptr<Walk> make_walk(const std::string& belief, nb::list arrays, std::size_t n_nodes, std::size_t dim, double v,
                                const std::string& rule, double c, bool flag, std::int32_t* summary) {
    const std::size_t n_arrays = belief == "Beta" ? 3 : belief == "Gaussian" ? 5 : belief == "Counts" ? 2 : 9;
    require(nb::len(arrays) == n_arrays, "a belief needs all of its arrays");
    require((belief == "Linear") == (dim > 0) && dim <= 32768, "dim does not fit this belief");
    auto array = [&](std::size_t i, std::size_t a_node = 1) {
        return numbers<double>(arrays[i], n_nodes * a_node, "a belief's arrays must be doubles, one row per node");
    };
    if (belief == "Beta") {
        static_assert(sizeof(BetaRows::Node) == 4 * sizeof(double));
        auto* nodes = reinterpret_cast<BetaRows::Node*>(array(0, 4));
        const std::size_t n_priors = nb::len(nb::object(arrays[1])) == 1 ? 1 : n_nodes;  // one for all
        const char* what = "a prior needs doubles, one per node or one for all";
        const double *a = numbers<double>(arrays[1], n_priors, what), *b = numbers<double>(arrays[2], n_priors, what);
        bool small = false;
        for (std::size_t i = 0; i < n_priors; ++i) small |= a[i] < 1.0 || b[i] < 1.0;
        BetaRows rows{nodes, n_nodes, a, b, n_priors == n_nodes ? 1u : 0u, small};
        rows.reset();
        return with_rule(rows, rule, c, flag, summary);
    }
    if (belief == "Gaussian")
        return with_rule(GaussianRows{array(0), array(1), array(2), array(3), array(4)}, rule, c, flag, summary);
    if (belief == "Counts") return with_rule(CountsRows{array(0), array(1)}, rule, c, flag, summary);
    if (belief == "Linear")
        return with_rule(LinearRows{array(0), array(1), array(2, dim * dim), array(3, dim), array(4), array(5, dim),
                                    array(6, dim * (dim + 1) / 2), array(7, dim), array(8), dim, v, n_nodes},
                         rule, c, flag, summary);
    throw nb::value_error("no such belief");
}

// Adds to each arm's two numbers how many rewards it got, and their sum. Returns the place of the first reward outside
// [low, high], or -1. Each place is read once: it is the one that was checked.
std::int64_t group(const Positions& positions, const Doubles& rewards, double low, double high,
                   nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu> both) {
    const std::int64_t* arm = positions.data();
    const double* reward = rewards.data();
    double* of = both.data();
    const std::size_t n = positions.shape(0);
    require(rewards.ndim() == 1 && rewards.shape(0) == n && both.shape(1) == 2, "group needs one reward for each arm");
    require(aligned(arm) && aligned(reward) && aligned(of), "group needs arrays that are aligned");
    for (std::size_t i = 0; i < n; ++i) {
        const double r = reward[i];
        const std::uint64_t at = static_cast<std::uint64_t>(arm[i]);  // what is below 0 is huge so
        if (!(r >= low && r <= high)) return static_cast<std::int64_t>(i);
        require(at < both.shape(0), "group needs places of arms");
        of[2 * at] += 1.0;
        of[2 * at + 1] += r;
    }
    return -1;
}

// Whether so many rewards are learned sooner one by one than by going through all arms at once, as NumPy does.
bool few(std::size_t n_rewards, std::int32_t n_arms) { return n_rewards <= 256 + static_cast<std::size_t>(n_arms) / 16; }

}  // namespace

void bind_walk(nb::module_& m) {
    plain_array = reinterpret_cast<PyTypeObject*>(nb::module_::import_("numpy").attr("ndarray").ptr());
    nb::class_<BoundWalk>(m, "Walk")
        .def(
            "__init__",
            [](BoundWalk* self, Ints start, Ints parent, Ints content, Ints node_of, const std::string& belief,
               nb::list arrays, std::size_t dim, double v, const std::string& rule, double c, bool flag,
               nb::object summary, nb::object stream, nb::object careful) {
                const std::size_t n_nodes = parent.shape(0), n_arms = node_of.shape(0);
                constexpr std::size_t most = std::numeric_limits<std::int32_t>::max();
                require(n_nodes > 0 && n_nodes < most && start.shape(0) == n_nodes + 1 && content.shape(0) == n_nodes &&
                            n_arms <= n_nodes,
                        "start, parent, content and node_of do not fit together");
                require(aligned(start.data()) && aligned(parent.data()) && aligned(content.data()) && aligned(node_of.data()),
                        "a tree needs arrays that are aligned");
                const Tree tree{start.data(), parent.data(), content.data(), node_of.data(), static_cast<std::int32_t>(n_arms)};
                require_tree(tree, static_cast<std::int32_t>(n_nodes));
                std::int32_t* kept = nullptr;
                require(summary.is_none() == (rule != "BestArm"), "a rule needs a summary, or takes none");
                if (!summary.is_none()) {
                    kept = numbers<std::int32_t>(summary, n_nodes, "summary must have one node per node");
                    for (std::size_t i = 0; i < n_nodes; ++i)
                        require(static_cast<std::uint32_t>(kept[i]) < n_nodes, "summary names a node that is not there");
                }
                Stream* rng = nullptr;
                if (stream.is_none() || !nb::try_cast(stream, rng)) throw nb::type_error("stream must be a Stream");
                auto walk = make_walk(belief, arrays, n_nodes, dim, v, rule, c, flag, kept);
                walk->tree = tree;
                walk->rng = rng;
                nb::object keep = nb::make_tuple(start, parent, content, node_of, arrays, summary, stream);
                new (self) BoundWalk{std::move(walk), keep, careful};
            },
            nb::arg("start").noconvert(), nb::arg("parent").noconvert(), nb::arg("content").noconvert(),
            nb::arg("node_of").noconvert(), nb::arg("belief"),
            nb::arg("arrays"), nb::arg("dim"), nb::arg("v"), nb::arg("rule"), nb::arg("c"), nb::arg("flag"),
            nb::arg("summary").none(), nb::arg("stream"), nb::arg("careful").none() = nb::none())
        .def_prop_ro("evaluations", [](const BoundWalk& self) { return self.walk->evaluations; })
        .def(
            "close",
            [](BoundWalk& self, bool closed) { self.closed = closed; }, nb::arg("closed") = true)
        .def("reset", [](BoundWalk& self) { self.walk->reset(); })
        .def_prop_rw(
            "narrowest", [](BoundWalk& self) { return self.walk->narrowest(); },
            [](BoundWalk& self, std::int32_t children) {
                self.walk->narrowest() = children;
                self.walk->reset();
            })
        .def(
            "choose",
            [](BoundWalk& self, nb::handle context) -> std::int32_t {
                const double* x;
                if (self.closed || !to_context(context, self.walk->dim(), self.context, x)) return -1;
                return self.walk->choose(x);
            },
            nb::arg("context").none())
        .def(
            "choose_many",
            [](BoundWalk& self, std::size_t m, nb::object contexts) -> nb::object {
                if (self.closed) return nb::none();
                if (m > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
                    throw nb::value_error("too many decisions at once");
                const std::size_t dim = self.walk->dim();
                Doubles keep;
                if (contexts.is_none() != (dim == 0) || (dim > 0 && !nb::try_cast(contexts, keep, false)))
                    throw nb::value_error("contexts do not fit this policy");
                require(dim == 0 || (keep.ndim() == 2 && keep.shape(0) == m && keep.shape(1) == dim && aligned(keep.data())),
                        "contexts must have one row per decision");
                const double* x = dim > 0 ? keep.data() : nullptr;
                auto* found = new std::int32_t[m ? m : 1];
                nb::capsule owner(found, [](void* p) noexcept { delete[] static_cast<std::int32_t*>(p); });
                if (!self.walk->choose_many(x, m, found)) return nb::none();
                return nb::cast(nb::ndarray<nb::numpy, std::int32_t, nb::ndim<1>>(found, {m}, owner));
            },
            nb::arg("m"), nb::arg("contexts").none())
        .def(
            "update",
            [](BoundWalk& self, std::int32_t arm, nb::handle reward, nb::handle context) {
                double r;
                const double* x;
                if (self.closed || arm < 0 || arm >= self.walk->tree.n_arms || !to_double(reward, r) ||
                    !self.walk->supports(r) || !to_context(context, self.walk->dim(), self.context, x))
                    return false;
                return self.walk->update(arm, r, x);
            },
            nb::arg("arm"), nb::arg("reward").none(), nb::arg("context").none())
        .def(
            "update_few",  // all of them; or none, where they are many, one is not allowed, or digits would be lost
            [](BoundWalk& self, Positions arms, Doubles rewards, nb::object contexts) {
                Walk& walk = *self.walk;
                const std::size_t n = arms.shape(0), dim = walk.dim();
                if (self.closed || !few(n, walk.tree.n_arms)) return false;
                require(rewards.ndim() == 1 && rewards.shape(0) == n && aligned(arms.data()) && aligned(rewards.data()),
                        "update_few needs one reward for each arm");
                Doubles keep;
                require(contexts.is_none() == (dim == 0) && (dim == 0 || nb::try_cast(contexts, keep, false)),
                        "contexts do not fit this policy");
                require(dim == 0 || (keep.ndim() == 2 && keep.shape(0) == n && keep.shape(1) == dim && aligned(keep.data())),
                        "contexts must have one row per reward");
                // Copied first: what is checked is what is learned, whatever another thread does to the arrays.
                const std::vector<std::int64_t> where(arms.data(), arms.data() + n);
                const std::vector<double> what(rewards.data(), rewards.data() + n);
                const std::vector<double> x(keep.data(), keep.data() + n * dim);
                for (const std::int64_t arm : where) require(arm >= 0 && arm < walk.tree.n_arms, "arms must be places of arms");
                for (const double reward : what)
                    if (!walk.supports(reward)) return false;
                for (const double entry : x) require(std::fabs(entry) <= largest, "contexts must be finite, and not too large");
                return walk.update_few(where.data(), what.data(), dim > 0 ? x.data() : nullptr, n);
            },
            nb::arg("arms").noconvert(), nb::arg("rewards").noconvert(), nb::arg("contexts").none());
    m.def("group", &group, nb::arg("positions").noconvert(), nb::arg("rewards").noconvert(), nb::arg("low"), nb::arg("high"),
          nb::arg("both").noconvert());
}

}  // namespace banditree
