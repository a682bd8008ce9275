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

// What `learn` answers where it has learned nothing; else it is -1, or the first row that is not allowed.
constexpr std::int64_t learned = -1, refused = -2;

// One-dimensional numbers, aligned and n of them; null for None.
const double* column(nb::object array, std::size_t n, Doubles& keep) {
    if (array.is_none()) return nullptr;
    if (!nb::try_cast(array, keep, false) || keep.ndim() != 1 || keep.shape(0) != n)
        throw nb::value_error("there must be one number per reward");
    return keep.data();
}

// Contexts as rows of doubles: none where none are needed, else one for each of n decisions or rewards.
const double* rows_of(nb::object contexts, std::size_t n, std::size_t dim, Doubles& keep) {
    if (contexts.is_none() != (dim == 0) || (dim > 0 && !nb::try_cast(contexts, keep, false)))
        throw nb::value_error("contexts do not fit this policy");
    if (dim == 0) return nullptr;
    if (keep.ndim() != 2 || keep.shape(0) != n || keep.shape(1) != dim)
        throw nb::value_error("contexts must have one row each");
    return keep.data();
}

nb::object positions_of(const std::vector<std::int32_t>& found) {
    auto* copy = new std::int32_t[found.size() + 1];
    std::copy(found.begin(), found.end(), copy);
    nb::capsule owner(copy, [](void* p) noexcept { delete[] static_cast<std::int32_t*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, std::int32_t, nb::ndim<1>>(copy, {found.size()}, owner));
}

// Limits as Python holds them: with the arrays of the tree kept alive.
struct BoundLimits {
    Tree tree;
    Limits limits;
    nb::object keep;
};

void check_same_tree(const BoundWalk& walk, const BoundLimits& within) {
    if (walk.walk->tree.parent != within.tree.parent) throw nb::value_error("these limits are for another tree");
}

}  // namespace

void bind_walk(nb::module_& m) {
    nb::class_<BoundWalk>(m, "Walk")
        .def(
            "__init__",
            [](BoundWalk* self, Ints start, Ints parent, Ints content, Ints node_of, const std::string& belief,
               nb::list arrays, std::size_t dim, double v, const std::string& rule, double c, bool flag,
               nb::object summary, nb::object stream, double explore) {
                std::int32_t* kept = nullptr;
                if (!summary.is_none())
                    kept = nb::cast<nb::ndarray<std::int32_t, nb::ndim<1>, nb::c_contig>>(summary).data();
                auto walk = make_walk(belief, arrays, dim, v, rule, c, flag, kept);
                walk->tree = {start.data(), parent.data(), content.data(), node_of.data(),
                              static_cast<std::int32_t>(node_of.shape(0)), static_cast<std::int32_t>(parent.shape(0))};
                walk->explore = explore;
                walk->rng = nb::cast<Stream*>(stream);
                nb::object keep = nb::make_tuple(start, parent, content, node_of, arrays, summary, stream);
                new (self) BoundWalk{std::move(walk), keep};
            },
            nb::arg("start"), nb::arg("parent"), nb::arg("content"), nb::arg("node_of"), nb::arg("belief"),
            nb::arg("arrays"), nb::arg("dim"), nb::arg("v"), nb::arg("rule"), nb::arg("c"), nb::arg("flag"),
            nb::arg("summary").none(), nb::arg("stream"), nb::arg("explore"))
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
                Doubles keep;
                const double* x = rows_of(contexts, m, self.walk->dim(), keep);
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
            "learn",  // all rows, or none of them
            [](BoundWalk& self, Positions arms, nb::object rewards, nb::object plays, nb::object contexts) {
                Walk& walk = *self.walk;
                const std::size_t n = arms.shape(0);
                if (self.closed) return refused;
                Doubles keep_rewards, keep_plays, keep;
                const double *sums = column(rewards, n, keep_rewards), *counts = column(plays, n, keep_plays);
                const double* x = rows_of(contexts, n, walk.dim(), keep);
                if (!sums) throw nb::value_error("there must be one number per reward");
                for (std::size_t i = 0; i < n; ++i) {
                    if (arms.data()[i] < 0 || arms.data()[i] >= walk.tree.n_arms) throw nb::index_error("no such arm");
                    if (!walk.allows(sums[i], counts ? counts[i] : 1.0)) return static_cast<std::int64_t>(i);
                }
                walk.learn(arms.data(), sums, counts, x, n);
                return learned;
            },
            nb::arg("arms"), nb::arg("rewards"), nb::arg("plays").none(), nb::arg("contexts").none())
        .def(
            "limits",
            [](BoundWalk& self, Positions arms, bool only) {
                std::vector<std::int32_t> named(arms.shape(0));
                for (std::size_t i = 0; i < named.size(); ++i) {
                    if (arms.data()[i] < 0 || arms.data()[i] >= self.walk->tree.n_arms) throw nb::index_error("no such arm");
                    named[i] = static_cast<std::int32_t>(arms.data()[i]);
                }
                return BoundLimits{self.walk->tree, Limits(self.walk->tree, std::move(named), only), self.keep};
            },
            nb::arg("arms"), nb::arg("only"))
        .def(
            "choose_within",
            [](BoundWalk& self, const BoundLimits& within, nb::handle context) -> std::int32_t {
                Doubles keep;
                const double* x;
                check_same_tree(self, within);
                if (self.closed || !to_context(context, self.walk->dim(), keep, x)) return -1;
                return self.walk->choose_within(within.limits, x);
            },
            nb::arg("limits"), nb::arg("context").none())
        .def(
            "slate",
            [](BoundWalk& self, std::size_t k, nb::object within, nb::handle context) -> nb::object {
                Doubles keep;
                const double* x;
                const BoundLimits* bound = within.is_none() ? nullptr : &nb::cast<const BoundLimits&>(within);
                if (bound) check_same_tree(self, *bound);
                const Limits* limits = bound ? &bound->limits : nullptr;
                if (k > static_cast<std::size_t>(limits ? limits->n_allowed : self.walk->tree.n_arms))
                    throw nb::value_error("there are not so many arms");
                if (self.closed || !to_context(context, self.walk->dim(), keep, x)) return nb::none();
                std::vector<std::int32_t> found;
                if (!self.walk->slate(limits, x, k, found)) return nb::none();
                return positions_of(found);
            },
            nb::arg("k"), nb::arg("limits").none(), nb::arg("context").none());
    nb::class_<BoundLimits>(m, "Limits")
        .def_prop_ro("n_allowed", [](const BoundLimits& self) { return self.limits.n_allowed; })
        .def(
            "allowed",
            [](const BoundLimits& self, std::int32_t node) {
                if (node < 0 || node >= self.tree.n_nodes) throw nb::index_error("no such node");
                std::vector<std::int32_t> found;
                self.limits.allowed(self.tree, node, found);
                return positions_of(found);
            },
            nb::arg("node"));
}

}  // namespace banditree
