// Binds winning probabilities as Python functions. Equal children are merged into classes, which are computed once.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "beliefs/densities.hpp"
#include "beliefs/quantiles.hpp"
#include "beliefs/winning.hpp"
#include "bindings/walk.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace banditree {
namespace {

using Values = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Row = nb::ndarray<nb::numpy, double, nb::ndim<1>>;

void refuse(const char* name, double value, const char* must) {
    const std::string shown = nb::str(nb::float_(value)).c_str();
    throw nb::value_error((std::string(name) + "=" + shown + " must be " + must).c_str());
}

void check_lengths(const Values& x, const Values& y) {
    if (x.shape(0) != y.shape(0)) throw nb::value_error("both arrays must have the same length, one value per child");
    if (x.shape(0) == 0) throw nb::value_error("there must be at least one child");
}

// Children with the same pair of numbers are one class.
struct Merged {
    std::vector<double> x, y, size;       // (classes,)
    std::vector<std::uint32_t> class_of;  // (k,)

    Merged(const Values& xs, const Values& ys) : class_of(xs.shape(0)) {
        std::vector<std::uint32_t> table(64, none);  // classes by their pair: linear probing
        for (std::size_t i = 0; i < class_of.size(); ++i) {
            const double u = xs(i) + 0.0, v = ys(i) + 0.0;  // turns -0 into 0
            std::size_t at = probe(table, u, v);
            if (table[at] == none) {
                if (2 * (x.size() + 1) > table.size()) {
                    table.assign(2 * table.size(), none);
                    for (std::size_t c = 0; c < x.size(); ++c)
                        table[probe(table, x[c], y[c])] = static_cast<std::uint32_t>(c);
                    at = probe(table, u, v);
                }
                table[at] = static_cast<std::uint32_t>(x.size());
                x.push_back(u);
                y.push_back(v);
                size.push_back(0.0);
            }
            class_of[i] = table[at];
            size[table[at]] += 1.0;
        }
    }

  private:
    static constexpr std::uint32_t none = 0xffffffff;
    std::size_t probe(const std::vector<std::uint32_t>& table, double u, double v) const {
        const std::uint64_t mixed = to_bits(u) * 0x9e3779b97f4a7c15 ^ to_bits(v);
        std::size_t at =
            static_cast<std::size_t>((mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9 >> 20) & (table.size() - 1);
        while (table[at] != none && !(x[table[at]] == u && y[table[at]] == v)) at = (at + 1) & (table.size() - 1);
        return at;
    }
};

std::vector<double> beta_shares(const Merged& merged) {
    BetaLogOdds each;
    for (std::size_t c = 0; c < merged.x.size(); ++c) each.add(merged.x[c], merged.y[c]);
    return Winning<BetaLogOdds>(std::move(each), merged.size).won;
}

// A child whose sd is 0 always draws its mean; such children with the same mean share their probability.
std::vector<double> normal_shares(const Merged& merged) {
    const std::size_t k = merged.x.size();
    const double highest = *std::max_element(merged.x.begin(), merged.x.end());
    constexpr double infinity = std::numeric_limits<double>::infinity();
    double floor = -infinity, scale = 0.0, alone = 0.0;
    std::vector<double> mean(k), sd(k), found(k, 0.0);
    for (std::size_t c = 0; c < k; ++c) {
        mean[c] = merged.x[c] - highest;  // differences of close doubles are exact
        sd[c] = merged.y[c] == 0.0 ? 0.0 : std::max(merged.y[c], NormalDensities::narrowest * -mean[c]);
        scale = std::max(scale, sd[c]);
        if (sd[c] == 0.0) floor = std::max(floor, mean[c]);
    }
    NormalDensities each;
    std::vector<double> size;
    std::vector<std::size_t> from;
    for (std::size_t c = 0; c < k; ++c) {
        if (sd[c] == 0.0) {
            if (mean[c] == floor) alone += merged.size[c];
            continue;
        }
        each.add(mean[c] / scale, std::max(sd[c] / scale, NormalDensities::least));
        size.push_back(merged.size[c]);
        from.push_back(c);
    }
    double rest = 1.0;
    if (!from.empty()) {
        const Winning<NormalDensities> winning(std::move(each), size, floor == -infinity ? floor : floor / scale);
        for (std::size_t j = 0; j < from.size(); ++j) found[from[j]] = winning.won[j];
        rest = winning.rest;
    }
    for (std::size_t c = 0; c < k; ++c)
        if (sd[c] == 0.0 && mean[c] == floor) found[c] = rest / alone;
    return found;
}

void check_beta(const Values& a, const Values& b) {
    check_lengths(a, b);
    for (std::size_t i = 0; i < a.shape(0); ++i) {
        if (!(a(i) > 0.0 && std::isfinite(a(i)))) refuse("a", a(i), "finite and above 0");
        if (!(b(i) > 0.0 && std::isfinite(b(i)))) refuse("b", b(i), "finite and above 0");
    }
}

void check_normal(const Values& mean, const Values& sd) {
    check_lengths(mean, sd);
    for (std::size_t i = 0; i < mean.shape(0); ++i) {
        if (!std::isfinite(mean(i))) refuse("mean", mean(i), "finite");
        if (!(sd(i) >= 0.0 && std::isfinite(sd(i)))) refuse("sd", sd(i), "finite and at least 0");
    }
}

Row handed_out(const std::vector<double>& shares, const Merged& merged) {
    const std::size_t k = merged.class_of.size();
    double* out = new double[k];
    const nb::capsule owner(out, [](void* p) noexcept { delete[] static_cast<double*>(p); });
    for (std::size_t i = 0; i < k; ++i) out[i] = shares[merged.class_of[i]];
    return {out, {k}, owner};
}

}  // namespace

void bind_winning(nb::module_& m) {
    m.def(
        "beta_ends",
        [](Values a, Values b, double low, double high) {
            check_lengths(a, b);
            const std::size_t k = a.shape(0);
            auto* ends = new double[2 * k];
            nb::capsule owner(ends, [](void* p) noexcept { delete[] static_cast<double*>(p); });
            BetaEnds beta;
            for (std::size_t i = 0; i < k; ++i) beta.of(a(i), b(i), low, high, ends + 2 * i);
            return nb::ndarray<nb::numpy, double, nb::ndim<2>>(ends, {k, 2}, owner);
        },
        "a"_a, "b"_a, "low"_a, "high"_a, "Return two quantiles of each Beta(a, b): (k, 2).");
    m.def(
        "beta_wins",
        [](const Values& a, const Values& b) {
            check_beta(a, b);
            const Merged merged(a, b);
            return handed_out(beta_shares(merged), merged);
        },
        "a"_a, "b"_a, "Return the probability that each child's draw from Beta(a, b) is the highest.");
    m.def(
        "normal_wins",
        [](const Values& mean, const Values& sd) {
            check_normal(mean, sd);
            const Merged merged(mean, sd);
            return handed_out(normal_shares(merged), merged);
        },
        "mean"_a, "sd"_a, "Return the probability that each child's draw from N(mean, sd^2) is the highest.");
}

}  // namespace banditree
