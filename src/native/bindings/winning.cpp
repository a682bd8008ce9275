// Binds winning probabilities as Python functions. Equal children are grouped into classes, which are computed once.
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
struct Alike {
    std::vector<double> x, y, size;       // (classes,)
    std::vector<std::uint32_t> class_of;  // (k,)

    Alike(const Values& xs, const Values& ys) : class_of(xs.shape(0)) {
        std::vector<std::uint32_t> table(64, none);  // classes by their pair: linear probing
        for (std::size_t i = 0; i < class_of.size(); ++i) {
            const double u = xs(i) + 0.0, v = ys(i) + 0.0;  // turns -0 into 0
            std::size_t at = probe(table, u, v);
            if (table[at] == none) {
                if (2 * (x.size() + 1) > table.size()) {
                    table.assign(2 * table.size(), none);
                    for (std::size_t c = 0; c < x.size(); ++c) table[probe(table, x[c], y[c])] = static_cast<std::uint32_t>(c);
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
        std::size_t at = static_cast<std::size_t>((mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9 >> 20) & (table.size() - 1);
        while (table[at] != none && !(x[table[at]] == u && y[table[at]] == v)) at = (at + 1) & (table.size() - 1);
        return at;
    }
};

std::vector<double> beta_shares(const Alike& alike) {
    BetaLogOdds each;
    for (std::size_t c = 0; c < alike.x.size(); ++c) each.add(alike.x[c], alike.y[c]);
    return Winning<BetaLogOdds>(std::move(each), alike.size).won;
}

// A child whose sd is 0 always draws its mean; such children with the same mean share their probability.
std::vector<double> normal_shares(const Alike& alike) {
    const std::size_t k = alike.x.size();
    const double highest = *std::max_element(alike.x.begin(), alike.x.end());
    constexpr double infinity = std::numeric_limits<double>::infinity();
    double floor = -infinity, scale = 0.0, alone = 0.0;
    std::vector<double> mean(k), sd(k), found(k, 0.0);
    for (std::size_t c = 0; c < k; ++c) {
        mean[c] = alike.x[c] - highest;  // differences of close doubles are exact
        sd[c] = alike.y[c] == 0.0 ? 0.0 : std::max(alike.y[c], NormalDensities::narrowest * -mean[c]);
        scale = std::max(scale, sd[c]);
        if (sd[c] == 0.0) floor = std::max(floor, mean[c]);
    }
    NormalDensities each;
    std::vector<double> size;
    std::vector<std::size_t> from;
    for (std::size_t c = 0; c < k; ++c) {
        if (sd[c] == 0.0) {
            if (mean[c] == floor) alone += alike.size[c];
            continue;
        }
        each.add(mean[c] / scale, std::max(sd[c] / scale, NormalDensities::least));
        size.push_back(alike.size[c]);
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

// The probability of a member of each class, whose draws have density (u, v) with this share, and else (x, y).
template <class Densities>
Row mixed(Densities each, const Values& share, const Values& size) {
    std::vector<double> shares(share.data(), share.data() + share.shape(0)), sizes(size.data(), size.data() + size.shape(0));
    for (std::size_t i = 0; i < shares.size(); ++i) {
        if (!(shares[i] >= 0.0 && shares[i] <= 1.0)) refuse("share", shares[i], "from 0 to 1");
        if (!(sizes[i] >= 1.0 && std::isfinite(sizes[i]))) refuse("size", sizes[i], "at least 1");
    }
    const auto won = Winning<Densities>(std::move(each), sizes, -std::numeric_limits<double>::infinity(), shares).won;
    double* out = new double[won.size()];
    const nb::capsule owner(out, [](void* p) noexcept { delete[] static_cast<double*>(p); });
    std::copy(won.begin(), won.end(), out);
    return {out, {won.size()}, owner};
}

Row handed_out(const std::vector<double>& shares, const Alike& alike) {
    const std::size_t k = alike.class_of.size();
    double* out = new double[k];
    const nb::capsule owner(out, [](void* p) noexcept { delete[] static_cast<double*>(p); });
    for (std::size_t i = 0; i < k; ++i) out[i] = shares[alike.class_of[i]];
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
            const Alike alike(a, b);
            return handed_out(beta_shares(alike), alike);
        },
        "a"_a, "b"_a, "Return the probability that each child's draw from Beta(a, b) is the highest.");
    m.def(
        "normal_mixed_wins",
        [](const Values& mean, const Values& sd, const Values& other, const Values& other_sd, const Values& share,
           const Values& size) {
            check_normal(mean, sd), check_normal(other, other_sd), check_lengths(mean, other), check_lengths(mean, share),
                check_lengths(mean, size);
            const std::size_t k = mean.shape(0);
            double highest = mean(0), scale = 0.0;
            for (std::size_t i = 0; i < k; ++i) highest = std::max({highest, mean(i), other(i)});
            std::vector<double> sds;
            for (std::size_t i = 0; i < 2 * k; ++i) {
                const double at = (i < k ? mean(i) : other(i - k)) - highest, width = i < k ? sd(i) : other_sd(i - k);
                if (!(width > 0.0)) refuse("sd", width, "above 0");
                sds.push_back(std::max(width, NormalDensities::narrowest * -at));
                scale = std::max(scale, sds.back());
            }
            NormalDensities each;
            for (std::size_t i = 0; i < 2 * k; ++i)
                each.add(((i < k ? mean(i) : other(i - k)) - highest) / scale, std::max(sds[i] / scale, NormalDensities::least));
            return mixed(std::move(each), share, size);
        },
        "mean"_a, "sd"_a, "other"_a, "other_sd"_a, "share"_a, "size"_a,
        "Return the probability that a member of each class has the highest draw: from N(other, other_sd^2) with this share.");
    m.def(
        "normal_wins",
        [](const Values& mean, const Values& sd) {
            check_normal(mean, sd);
            const Alike alike(mean, sd);
            return handed_out(normal_shares(alike), alike);
        },
        "mean"_a, "sd"_a, "Return the probability that each child's draw from N(mean, sd^2) is the highest.");
}

}  // namespace banditree
