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
#include "descent.hpp"
#include "rules/best_arm.hpp"
#include "rules/thompson.hpp"
#include "rules/ucb.hpp"
#include "walk.hpp"

namespace nb = nanobind;

namespace banditree {
namespace {

using Ints = nb::ndarray<const std::int32_t, nb::c_contig, nb::device::cpu>;
using Positions = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Doubles = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;

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

// A context ready to use: none where none is needed, else doubles of the right length and size.
bool to_context(nb::handle value, std::size_t dim, Doubles& keep, const double*& out) {
    out = nullptr;
    if (dim == 0 || value.is_none()) return dim == 0 && value.is_none();
    if (!nb::ndarray_check(value) || !nb::try_cast(value, keep, false)) return false;
    if (keep.ndim() != 1 || keep.shape(0) != dim) return false;
    out = keep.data();
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
std::unique_ptr<Walk> make_walk(const std::string& belief, nb::list arrays, std::size_t dim, double v,
                                const std::string& rule, double c, bool flag, std::int32_t* summary) {
    auto array = [&](std::size_t i) {
        // Not converted: a copy would be gone at once, and the beliefs with it.
        return static_cast<double*>(nb::cast<nb::ndarray<double, nb::c_contig, nb::device::cpu>>(arrays[i], false).data());
    };
    if (belief == "Beta") {
        auto* nodes = reinterpret_cast<BetaRows::Node*>(array(0));  // (nodes, 4) doubles
        const double *a = array(1), *b = array(2);
        const std::size_t n_nodes = nb::len(nb::object(arrays[0])), n_priors = nb::len(nb::object(arrays[1]));
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
        return with_rule(LinearRows{array(0), array(1), array(2), array(3), array(4), array(5), array(6), array(7), dim,
                                    v, nb::len(nb::object(arrays[0]))},
                         rule, c, flag, summary);
    throw nb::value_error("no such belief");
}

// Adds to each arm's two numbers how many rewards it got, and their sum. Returns the place of the first reward outside
// [low, high], or -1.
std::int64_t group(const Positions& positions, const Doubles& rewards, double low, double high,
                   nb::ndarray<double, nb::ndim<2>, nb::c_contig> both) {
    const std::int64_t* arm = positions.data();
    const double* reward = rewards.data();
    double* of = both.data();
    for (std::size_t i = 0; i < positions.shape(0); ++i) {
        if (!(reward[i] >= low && reward[i] <= high)) return static_cast<std::int64_t>(i);
        of[2 * arm[i]] += 1.0;
        of[2 * arm[i] + 1] += reward[i];
    }
    return -1;
}

// Whether so many rewards are learned sooner one by one than by going through all arms at once, as NumPy does.
bool few(std::size_t n_rewards, std::int32_t n_arms) { return n_rewards <= 256 + static_cast<std::size_t>(n_arms) / 16; }

}  // namespace

void bind_walk(nb::module_& m) {
    nb::class_<BoundWalk>(m, "Walk")
        .def(
            "__init__",
            [](BoundWalk* self, Ints start, Ints parent, Ints content, Ints node_of, const std::string& belief,
               nb::list arrays, std::size_t dim, double v, const std::string& rule, double c, bool flag,
               nb::object summary, nb::object stream) {
                std::int32_t* kept = nullptr;
                if (!summary.is_none())
                    kept = nb::cast<nb::ndarray<std::int32_t, nb::ndim<1>, nb::c_contig>>(summary).data();
                auto walk = make_walk(belief, arrays, dim, v, rule, c, flag, kept);
                walk->tree = {start.data(), parent.data(), content.data(), node_of.data(),
                              static_cast<std::int32_t>(node_of.shape(0))};
                walk->rng = nb::cast<Stream*>(stream);
                nb::object keep = nb::make_tuple(start, parent, content, node_of, arrays, summary, stream);
                new (self) BoundWalk{std::move(walk), keep};
            },
            nb::arg("start"), nb::arg("parent"), nb::arg("content"), nb::arg("node_of"), nb::arg("belief"),
            nb::arg("arrays"), nb::arg("dim"), nb::arg("v"), nb::arg("rule"), nb::arg("c"), nb::arg("flag"),
            nb::arg("summary").none(), nb::arg("stream"))
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
                Doubles keep;
                const double* x;
                if (self.closed || !to_context(context, self.walk->dim(), keep, x)) return -1;
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
                if (dim > 0 && (keep.ndim() != 2 || keep.shape(0) != m || keep.shape(1) != dim))
                    throw nb::value_error("contexts must have one row a decision");
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
                Doubles keep;
                const double* x;
                if (self.closed || arm < 0 || arm >= self.walk->tree.n_arms || !to_double(reward, r) ||
                    !self.walk->supports(r) || !to_context(context, self.walk->dim(), keep, x))
                    return false;
                self.walk->update(arm, r, x);
                return true;
            },
            nb::arg("arm"), nb::arg("reward").none(), nb::arg("context").none())
        .def(
            "update_few",  // all of them; or none, where they are many, or one is not allowed
            [](BoundWalk& self, Positions arms, Doubles rewards, nb::object contexts) {
                Walk& walk = *self.walk;
                const std::size_t n = arms.shape(0);
                if (self.closed || !few(n, walk.tree.n_arms)) return false;
                for (std::size_t i = 0; i < n; ++i)
                    if (!walk.supports(rewards.data()[i])) return false;
                Doubles keep;
                if (walk.dim() > 0 && !nb::try_cast(contexts, keep, false))
                    throw nb::value_error("contexts do not fit this policy");
                walk.update_few(arms.data(), rewards.data(), walk.dim() > 0 ? keep.data() : nullptr, n);
                return true;
            },
            nb::arg("arms"), nb::arg("rewards"), nb::arg("contexts").none());
    m.def("group", &group, nb::arg("positions"), nb::arg("rewards"), nb::arg("low"), nb::arg("high"), nb::arg("both"));
}

}  // namespace banditree
