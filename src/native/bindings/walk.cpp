// Binds the walks for Python: each has a belief, a rule and arrays shared with NumPy.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <string>

#include "beliefs/adaptive_linear.hpp"
#include "beliefs/beta.hpp"
#include "beliefs/counts.hpp"
#include "beliefs/gaussian.hpp"
#include "beliefs/linear.hpp"
#include "bindings/checked.hpp"
#include "bindings/inputs.hpp"
#include "bindings/walk.hpp"
#include "policy/descent.hpp"
#include "policy/joint.hpp"
#include "rules/best_arm.hpp"
#include "rules/thompson.hpp"
#include "rules/ucb.hpp"

namespace nb = nanobind;

namespace banditree {
namespace {

bool has_twin(nb::handle rule, const char* name) { return attribute<std::string>(rule, "native") == name; }

// The representative of every node, null for rules that have none.
std::int32_t* representatives(nb::handle summary, nb::handle rule, std::size_t n_nodes) {
    require(summary.is_none() != has_twin(rule, "BestArm"), "a rule needs a summary, or takes none");
    if (summary.is_none()) return nullptr;
    auto* found = numbers<std::int32_t>(summary, n_nodes, "summary must have one node per node");
    for (std::size_t i = 0; i < n_nodes; ++i)
        require(static_cast<std::uint32_t>(found[i]) < n_nodes, "summary names a node that does not exist");
    return found;
}

template <class Rows>
std::unique_ptr<Walk> with_rule(Rows rows, nb::handle rule, std::int32_t* summary) {
    if (has_twin(rule, "UCB")) {
        const nb::object c = rule.attr("c");
        const UCB ucb{c.is_none() ? std::nan("") : attribute<double>(rule, "c"),
                      attribute<std::string>(rule, "clock") == "global"};
        return std::make_unique<Walker<Rows, UCB>>(std::move(rows), ucb);
    }
    if constexpr (!std::is_same_v<Rows, CountsRows>) {  // counts have no prior to sample from
        if (has_twin(rule, "Thompson")) return std::make_unique<Walker<Rows, Thompson>>(std::move(rows), Thompson{});
        if (has_twin(rule, "BestArm")) {
            const BestArm best{summary, attribute<std::string>(rule, "best") == "posterior"};
            return std::make_unique<Walker<Rows, BestArm>>(std::move(rows), best);
        }
    }
    throw nb::value_error("no such rule for this belief");
}

template <class Kind>
std::unique_ptr<Walk> joint(Kind kind, const AdaptiveSettings& set) {
    return std::make_unique<JointWalker<AdaptiveRows<Kind>, Screening<Kind>>>(AdaptiveRows<Kind>(kind, set));
}

// The numbers and arrays that settings of an adaptive belief name, see beliefs/draws.py.
Coupling coupling_of(nb::handle settings) {
    const nb::object given = settings.attr("coupling"), numbers_given = given.attr("numbers");
    const std::size_t values = nb::len(numbers_given);
    const char* what = "the shared number needs values and chances";
    require(values > 0, what);
    return {number(given, "shared", 0.0, 1.0),
            number(given, "own", 0.0, 1.0),
            number(given, "odds", 0.0, 1e100),
            numbers<double>(numbers_given, values, what),
            numbers<double>(given.attr("chances"), values, what),
            values};
}

// The height of every node, checked; sets the highest one.
const double* heights_of(nb::handle settings, std::size_t n_nodes, std::size_t& top) {
    const char* what = "every node needs a height";
    const double* height = numbers<double>(settings.attr("height"), n_nodes, what);
    top = 0;
    for (std::size_t i = 0; i < n_nodes; ++i) {
        require(height[i] >= 0.0 && height[i] < static_cast<double>(n_nodes), what);
        top = std::max(top, static_cast<std::size_t>(height[i]));
    }
    return height;
}

// `arrays` are those of AdaptiveLinearRows.native_arrays().
std::unique_ptr<Walk> joint_linear(nb::list arrays, std::size_t n_nodes, std::size_t dim) {
    const char* what = "the arrays of an adaptive linear belief do not fit together";
    require(nb::len(arrays) == 4 && dim > 0 && dim <= 32768, what);
    const std::size_t p = dim + 1, columns = 2 + p * (p + 1) / 2 + p;
    double* table = numbers<double>(arrays[0], n_nodes * columns, what);
    const double *plays = numbers<double>(arrays[1], n_nodes * 2, what),
                 *theta = numbers<double>(arrays[2], n_nodes * p, what);
    const nb::object given = arrays[3], log_prior = given.attr("log_prior");
    std::size_t top;
    const double* height = heights_of(given, n_nodes, top);
    const std::size_t copies = nb::len(log_prior), kinds = attribute<std::size_t>(given, "kinds"),
                      all = (top + 1) * copies;
    require(kinds > 0 && copies <= 16000 && kinds % AdaptiveLinearRows::lanes == 0 && copies > 0 && copies % kinds == 0,
            what);
    const auto array = [&](const char* name, std::size_t n) { return numbers<double>(given.attr(name), n, what); };
    const auto setting = [&](const char* name) { return number(given, name, 1e-300, 1e300); };
    const AdaptiveLinearSettings settings{height,
                                          array("level_width", all),
                                          array("slope_width", all),
                                          array("log_prior", copies),
                                          copies,
                                          kinds,
                                          setting("root_level_width"),
                                          setting("root_slope_width"),
                                          setting("stray_factor"),
                                          setting("noise_share"),
                                          setting("origin_step"),
                                          coupling_of(given)};
    AdaptiveLinearRows rows(table, plays, theta, settings, dim);
    return std::make_unique<JointWalker<AdaptiveLinearRows, NoShortcut>>(std::move(rows));
}

// `given` are those of AdaptiveRows.settings().
AdaptiveSettings settings_of(nb::handle given, std::size_t n_nodes) {
    const char* what = "the settings of an adaptive belief do not fit together";
    std::size_t top;
    const double* height = heights_of(given, n_nodes, top);
    const std::size_t copies = nb::len(nb::object(given.attr("steps")));
    require(copies > 0, what);
    const double* k = numbers<double>(given.attr("concentration"), (top + 1) * copies, what);
    const double* steps = numbers<double>(given.attr("steps"), copies, what);
    const std::size_t n_steps = attribute<std::size_t>(given, "n_steps");
    require(n_steps > 0 && copies % n_steps == 0, what);
    return {height, k, steps, copies, n_steps, number(given, "fall", 0.0, 1e300), coupling_of(given)};
}

// `arrays` are those of Rows.native_arrays().
std::unique_ptr<Walk> make_walk(nb::handle rows_given, nb::list arrays, std::size_t n_nodes, nb::handle rule,
                                std::int32_t* summary) {
    const std::string belief = attribute<std::string>(rows_given, "native");
    const nb::object given_dim = rows_given.attr("dim"), law = rows_given.attr("law");
    const std::size_t dim = given_dim.is_none() ? 0 : attribute<std::size_t>(rows_given, "dim");
    if (belief == "AdaptiveLinear") {
        require(has_twin(rule, "Thompson"), "adaptive beliefs are drawn from");
        return joint_linear(arrays, n_nodes, dim);
    }
    const bool adaptive = belief.rfind("Adaptive", 0) == 0;
    const std::string kind = adaptive ? belief.substr(8) : belief;
    const std::size_t n_own = kind == "LearnedGaussian" ? (adaptive ? 6 : 8)
                              : kind == "Gaussian"      ? 5
                              : kind == "Counts"        ? 2
                                                        : 3;
    require(nb::len(arrays) == n_own + (adaptive ? 1 : 0), "a belief needs all of its arrays");
    require((belief == "Linear") == (dim > 0) && dim <= 32768, "dim does not fit this belief");
    auto array = [&](std::size_t i, std::size_t a_node = 1) {
        return numbers<double>(arrays[i], n_nodes * a_node, "a belief's arrays must be doubles, one row per node");
    };
    const auto setting = [&](const char* name) { return number(rows_given, name, -1e300, 1e300); };
    if (adaptive) {
        require(has_twin(rule, "Thompson"), "adaptive beliefs are drawn from");
        const AdaptiveSettings set = settings_of(arrays[n_own], n_nodes);
        const auto chosen = [&](const char* name) { return number(law, name, 1e-300, 1e300); };
        const double lift = number(law, "stray_lift", -1e300, 1e300), width = chosen("stray_width");
        if (kind == "Gaussian")
            return joint(AdaptiveGaussian{array(0), array(1), nullptr, nullptr, array(3), array(4), lift, width,
                                          *array(2), *array(4) / *array(3)},
                         set);
        if (kind == "LearnedGaussian")
            return joint(AdaptiveLearnedGaussian{array(0), array(1), array(2), array(3), array(4), array(5), lift,
                                                 width, 1.0, setting("centre")},
                         set);
        if (kind == "Beta") {
            const double *a = array(1), *b = array(2);
            return joint(AdaptiveBeta{reinterpret_cast<BetaRows::Node*>(array(0, 4)), a, b, chosen("level_plays"),
                                      chosen("stray_spread")},
                         set);
        }
    }
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
        return with_rule(rows, rule, summary);
    }
    if (belief == "Gaussian")
        return with_rule(GaussianRows{array(0), array(1), array(3), array(4), {array(2)}}, rule, summary);
    if (belief == "LearnedGaussian") {
        const double centre = setting("centre"), least = setting("least_sd"), equal = setting("equal");
        const LearnedNoise noise{array(0), array(1), array(2), array(3), array(5), array(6),
                                 array(7), centre,   least,    equal,    n_nodes};
        return with_rule(LearnedGaussianRows{array(0), array(1), array(4), array(5), noise}, rule, summary);
    }
    if (belief == "Counts") return with_rule(CountsRows{array(0), array(1)}, rule, summary);
    if (belief == "Linear")
        return with_rule(LinearRows{array(0, 2 + dim * dim + dim), array(1), array(2, dim), dim,
                                    attribute<double>(rows_given, "v"), n_nodes},
                         rule, summary);
    throw nb::value_error("no such belief");
}

constexpr std::int64_t learned = -1;  // result of `learn`; any other is the first row that is not allowed

constexpr std::size_t most_listed = 256;  // SHORT in policy/inputs.py: most rewards that `learn_lists` takes

// Learns one reward. False if something is not ready to use.
bool learn_one(BoundWalk& self, std::int64_t position, nb::handle reward, nb::handle context) {
    double r;
    const double* x;
    if (position < 0 || position >= self.walk->tree.n_arms || !to_double(reward, r) || !self.walk->supports(r) ||
        !to_context(context, self, x))
        return false;
    self.walk->update(static_cast<std::int32_t>(position), r, x);
    return true;
}

// Calls take(arm, sum, plays) for each row, up to the first whose arm or sum is not allowed. Returns its number, or
// `learned`.
template <class Take>
std::int64_t each_row(const Walk& walk, const Positions& arms, const double* sums, const double* plays,
                      const Take& take) {
    const std::int64_t *arm = arms.data(), n = static_cast<std::int64_t>(arms.shape(0));
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t position = read(arm + i);
        const double sum = read(sums + i), count = plays ? read(plays + i) : 1.0;
        if (position < 0 || position >= walk.tree.n_arms || !walk.allows(sum, count)) return i;
        take(position, sum, count);
    }
    return learned;
}

// Learns all rows, or none of them.
std::int64_t learn(BoundWalk& self, Positions arms, nb::object rewards, nb::object plays, nb::object contexts) {
    Walk& walk = *self.walk;
    const std::size_t n = arms.shape(0);
    const double *sums = numbers_of(rewards, n), *counts = numbers_of(plays, n);
    require(sums && aligned(arms.data()), "there must be one number per reward, and positions must be aligned");
    Doubles keep;
    const double* x = rows_of(contexts, n, walk.dim(), keep);
    if (walk.learns_sums(n)) {
        std::vector<Sum> of_arm(static_cast<std::size_t>(walk.tree.n_arms));
        const auto add = [to = of_arm.data()](std::int64_t arm, double sum, double count) {
            to[arm].count += count;
            to[arm].total += sum;
        };
        const std::int64_t bad = each_row(walk, arms, sums, counts, add);
        if (bad == learned) walk.learn_sums(of_arm.data());
        return bad;
    }
    std::vector<std::int64_t> where;
    std::vector<double> total, count;
    where.reserve(n), total.reserve(n), count.reserve(n);
    const std::int64_t bad = each_row(walk, arms, sums, counts, [&](std::int64_t arm, double sum, double many) {
        where.push_back(arm), total.push_back(sum), count.push_back(many);
    });
    if (bad != learned) return bad;
    walk.learn(where.data(), total.data(), counts ? count.data() : nullptr, x, n);
    return learned;
}

nb::object positions_of(const std::vector<std::int32_t>& found) {
    auto* copy = new std::int32_t[found.size() + 1];
    std::copy(found.begin(), found.end(), copy);
    nb::capsule owner(copy, [](void* p) noexcept { delete[] static_cast<std::int32_t*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, std::int32_t, nb::ndim<1>>(copy, {found.size()}, owner));
}

nb::object doubles_of(const std::vector<double>& numbers, std::initializer_list<std::size_t> shape) {
    auto* copy = new double[numbers.size() + 1];
    std::copy(numbers.begin(), numbers.end(), copy);
    nb::capsule owner(copy, [](void* p) noexcept { delete[] static_cast<double*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, double>(copy, shape, owner));
}

// Limits as Python holds them, with the arrays of the tree kept alive.
struct BoundLimits {
    Tree tree;
    Limits limits;
    nb::object keep;
};

// The limits in a Python object, null for None.
const Limits* limits_of(const BoundWalk& self, nb::object within) {
    if (within.is_none()) return nullptr;
    const BoundLimits& bound = nb::cast<const BoundLimits&>(within);
    require(self.walk->tree.parent == bound.tree.parent, "these limits are for another tree");
    require(bound.limits.n_allowed > 0, "one arm at least must be allowed");
    return &bound.limits;
}

}  // namespace

void bind_walk(nb::module_& m) {
    plain_array = reinterpret_cast<PyTypeObject*>(nb::module_::import_("numpy").attr("ndarray").ptr());
    plain_int64 = reinterpret_cast<PyTypeObject*>(nb::module_::import_("numpy").attr("int64").ptr());
    // `choose`, `update` and `learn_lists` take and return arms by their ids. They are called without the policy's
    // lock, and refuse while it is held. The others take and return positions, and the caller holds the lock.
    nb::class_<BoundWalk>(m, "Walk", nb::is_weak_referenceable())
        .def(
            "__init__",
            [](BoundWalk* self, nb::handle given) {  // a NativeWalk of policy/engines.py
                nb::object shape = given.attr("shape"), rows = given.attr("rows"), rule = given.attr("rule");
                const Ints start = ints(shape, "start"), parent = ints(shape, "parent");
                const Ints content = ints(shape, "content"), node_of = ints(shape, "node_of");
                const nb::tuple arms = attribute<nb::tuple>(given.attr("tree"), "arms");
                const nb::dict position_of = attribute<nb::dict>(given.attr("tree"), "index");
                const std::size_t n_nodes = parent.shape(0), n_arms = node_of.shape(0);
                constexpr std::size_t most = std::numeric_limits<std::int32_t>::max();
                require(n_nodes > 0 && n_nodes < most && start.shape(0) == n_nodes + 1 && content.shape(0) == n_nodes &&
                            n_arms <= n_nodes && nb::len(arms) == n_arms,
                        "arms, start, parent, content and node_of do not fit together");
                const Tree tree{start.data(),
                                parent.data(),
                                content.data(),
                                node_of.data(),
                                static_cast<std::int32_t>(n_arms),
                                static_cast<std::int32_t>(n_nodes)};
                require_tree(tree);
                nb::object arrays = rows.attr("native_arrays")(), summary = given.attr("summary");
                nb::object stream = given.attr("rng");
                Stream* rng = nullptr;
                if (stream.is_none() || !nb::try_cast(stream, rng)) throw nb::type_error("rng must be a Stream");
                auto walk =
                    make_walk(rows, nb::cast<nb::list>(arrays), n_nodes, rule, representatives(summary, rule, n_nodes));
                walk->tree = tree;
                walk->rng = rng;
                walk->explore = number(given, "explore", 0.0, 1.0);
                walk->fade_every = attribute<std::int64_t>(given.attr("fading"), "every");
                walk->fade_factor = number(given.attr("fading"), "factor", 1e-300, 1.0);
                require(walk->fade_every >= 0, "fading.every must not be negative");
                new (self)
                    BoundWalk{std::move(walk), nb::make_tuple(shape, arrays, summary, stream), arms, position_of};
            },
            nb::arg("walk"))
        .def_prop_ro("evaluations", [](const BoundWalk& self) { return self.walk->evaluations; })
        .def_rw("is_held", &BoundWalk::is_held)
        .def_prop_rw(
            "since_faded", [](const BoundWalk& self) { return self.walk->since_faded; },
            [](BoundWalk& self, std::int64_t rewards) {
                require(rewards >= 0 && rewards <= self.walk->fade_every, "since_faded must be from 0 to fade_every");
                self.walk->since_faded = rewards;
            })
        .def(
            "forget", [](BoundWalk& self, double factor) { self.walk->forget(factor); }, nb::arg("factor"))
        .def("reset", [](BoundWalk& self) { self.walk->reset(); })
        .def(
            "wins",
            [](BoundWalk& self, nb::object within, nb::handle context, std::int32_t arm) -> nb::object {
                const double* x;
                const Limits* limits = limits_of(self, within);
                require(to_context(context, self, x) && arm >= -1 && arm < self.walk->tree.n_arms,
                        "no such arm, or context");
                require(arm < 0 || !limits || limits->allows(arm), "the arm must be allowed");
                std::vector<double> chances;
                bool known;
                {  // the caller holds the policy, so that nobody else gets in while other threads run
                    const nb::gil_scoped_release release;
                    known = self.walk->wins(limits, x, arm, chances);
                }
                if (!known) return nb::none();
                return doubles_of(chances, {chances.size()});
            },
            nb::arg("limits").none(), nb::arg("context").none(), nb::arg("arm") = -1)
        .def("copies",
             [](BoundWalk& self) {
                 std::vector<double> weight, variance;
                 require(self.walk->copies(weight, variance), "this belief has no copies to show");
                 return nb::make_tuple(doubles_of(weight, {weight.size()}), doubles_of(variance, {variance.size()}));
             })
        .def(
            "believed",
            [](BoundWalk& self, Doubles context, Positions copies, Positions nodes) {
                std::vector<double> weight, variance;
                require(self.walk->copies(weight, variance), "this belief has no copies to show");
                require(context.ndim() == 1 && context.shape(0) == self.walk->dim() && aligned(context.data()),
                        "the context does not fit");
                const std::size_t n = nodes.shape(0), m = copies.shape(0);
                for (std::size_t i = 0; i < n; ++i)
                    require(nodes.data()[i] >= 0 && nodes.data()[i] < self.walk->tree.n_nodes, "there is no such node");
                std::vector<double> out(m * 5 * n);
                for (std::size_t i = 0; i < m; ++i) {
                    const std::int64_t copy = copies.data()[i];
                    require(copy >= 0 && copy < static_cast<std::int64_t>(weight.size()), "there is no such copy");
                    self.walk->believed(context.data(), static_cast<std::size_t>(copy), nodes.data(), n,
                                        out.data() + i * 5 * n);
                }
                return doubles_of(out, {m, 5, n});
            },
            nb::arg("context").noconvert(), nb::arg("copies").noconvert(), nb::arg("nodes").noconvert())
        .def(
            "moments",
            [](BoundWalk& self, std::int32_t node, nb::handle context) {
                const double* x;
                require(node >= 0 && node < self.walk->tree.n_nodes && to_context(context, self, x),
                        "no such node, or context");
                const auto [mean, sd] = self.walk->moments(node, x);
                return nb::make_tuple(mean, sd);
            },
            nb::arg("node"), nb::arg("context").none())
        .def_prop_rw(
            "min_wide", [](BoundWalk& self) { return self.walk->min_wide(); },
            [](BoundWalk& self, std::int32_t children) {
                self.walk->min_wide() = children;
                self.walk->reset();
            })
        .def(
            "choose",
            [](BoundWalk& self, nb::handle context) -> nb::object {
                const double* x;
                if (self.is_held || !to_context(context, self, x)) return nb::none();
                const std::int32_t position = self.walk->choose(x);
                return position < 0 ? nb::none() : nb::borrow(NB_TUPLE_GET_ITEM(self.arms.ptr(), position));
            },
            nb::arg("context").none())
        .def(
            "choose_many",
            [](BoundWalk& self, std::size_t m, nb::object contexts) -> nb::object {
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
            [](BoundWalk& self, nb::handle arm, nb::handle reward, nb::handle context) {
                std::int64_t position;
                return !self.is_held && to_position(self, arm, position) && learn_one(self, position, reward, context);
            },
            nb::arg("arm").none(), nb::arg("reward").none(), nb::arg("context").none())
        .def("learn_one", &learn_one, nb::arg("position"), nb::arg("reward").none(), nb::arg("context").none())
        .def(
            "learn_lists",  // arms and rewards in lists: all of them, or none if something is not ready to use
            [](BoundWalk& self, nb::handle arms, nb::handle rewards, nb::handle contexts) {
                if (self.is_held || !PyList_CheckExact(arms.ptr()) || !PyList_CheckExact(rewards.ptr())) return false;
                const std::size_t n = nb::len(arms);
                const double* x;
                if (n > most_listed || nb::len(rewards) != n || !to_context(contexts, self, x, n)) return false;
                std::array<std::int64_t, most_listed> where;
                std::array<double, most_listed> sums;
                for (std::size_t i = 0; i < n; ++i) {
                    const auto at = static_cast<Py_ssize_t>(i);
                    if (!to_position(self, NB_LIST_GET_ITEM(arms.ptr(), at), where[i]) ||
                        !to_double(NB_LIST_GET_ITEM(rewards.ptr(), at), sums[i]) || !self.walk->supports(sums[i]))
                        return false;
                }
                self.walk->learn(where.data(), sums.data(), nullptr, x, n);
                return true;
            },
            nb::arg("arms").none(), nb::arg("rewards").none(), nb::arg("contexts").none())
        .def("learn", &learn, nb::arg("arms").noconvert(), nb::arg("rewards"), nb::arg("plays").none(),
             nb::arg("contexts").none())
        .def(
            "limits",
            [](BoundWalk& self, Positions arms, bool only) {
                require(aligned(arms.data()), "positions must be aligned");
                std::vector<std::int32_t> named(arms.shape(0));
                for (std::size_t i = 0; i < named.size(); ++i) {
                    const std::int64_t arm = read(arms.data() + i);
                    require(arm >= 0 && arm < self.walk->tree.n_arms, "arms must be positions of arms");
                    named[i] = static_cast<std::int32_t>(arm);
                }
                require(!named.empty() || !only, "at least one arm must be allowed");
                return BoundLimits{self.walk->tree, Limits(self.walk->tree, std::move(named), only), self.keep};
            },
            nb::arg("arms").noconvert(), nb::arg("only"))
        .def(
            "choose_within",
            [](BoundWalk& self, nb::object within, nb::handle context) -> std::int32_t {
                const double* x;
                const Limits* limits = limits_of(self, within);
                if (!to_context(context, self, x)) return -1;
                return limits ? self.walk->choose_within(*limits, x) : self.walk->choose(x);
            },
            nb::arg("limits").none(), nb::arg("context").none())
        .def(
            "slate",
            [](BoundWalk& self, std::size_t k, nb::object within, nb::handle context) -> nb::object {
                const double* x;
                const Limits* limits = limits_of(self, within);
                if (k > static_cast<std::size_t>(limits ? limits->n_allowed : self.walk->tree.n_arms))
                    throw nb::value_error("there are not that many arms");
                if (!to_context(context, self, x)) return nb::none();
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
            nb::arg("node"))
        .def("arms_allowed", [](const BoundLimits& self) {
            std::vector<std::int32_t> found;
            for (std::int32_t rank = 0; self.limits.only && rank < self.limits.n_allowed; ++rank)
                found.push_back(self.limits.arms[static_cast<std::size_t>(rank)]);
            for (std::int32_t arm = 0; !self.limits.only && arm < self.tree.n_arms; ++arm)
                if (self.limits.allows(arm)) found.push_back(arm);
            return positions_of(found);
        });
}

}  // namespace banditree
