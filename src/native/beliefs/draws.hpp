// Draws of arms that share a number, and at most one arm that draws once more, as a stray. Twin of
// banditree/beliefs/draws.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace banditree {

// Mean and standard deviation of a normal draw, on the scale on which arms compete.
struct Drawn {
    double x, y;
};

// What the draws of one decision have in common.
struct Coupling {
    double shared, own;  // the parts of a standard deviation that all arms share, and that is each arm's own
    double odds;         // of an arm to be the stray, before its rewards are considered, against there being none
    const double *numbers, *chances;  // the values of the shared number, (values,) each
    std::size_t values;

    // A draw, given the shared number.
    Drawn given(double number, const Drawn& of) const { return {of.x + of.y * (shared * number), of.y * own}; }
};

// The place that a uniform number picks by weight.
inline std::size_t pick(const double* weights, std::size_t n, double u) {
    double total = 0.0, up_to = 0.0;
    for (std::size_t i = 0; i < n; ++i) total += weights[i];
    for (std::size_t i = 0; i + 1 < n; ++i)
        if ((up_to += weights[i]) > u * total) return i;
    return n - 1;
}

// Arms that are equal in all of this draw from the same distribution.
struct Group {
    std::int32_t node;  // the arm, or its cluster
    double plays, total;
    bool operator==(const Group& other) const {
        return node == other.node && plays == other.plays && total == other.total;
    }
};

// What classes of equal arms draw from: (classes,) each.
struct Draws {
    std::vector<double> mean, sd;              // of an arm
    std::vector<double> stray_mean, stray_sd;  // of its further draw, if it is the stray
    std::vector<double> odds;                  // that it is

    void resize(std::size_t classes) {
        for (auto* column : {&mean, &sd, &stray_mean, &stray_sd, &odds}) column->resize(classes);
    }
    void set(std::size_t i, const Drawn& follows, const Drawn& alone, double odds_of_arm) {
        mean[i] = follows.x, sd[i] = follows.y, stray_mean[i] = alone.x, stray_sd[i] = alone.y, odds[i] = odds_of_arm;
    }
    std::size_t classes() const { return mean.size(); }

    // Measures means from the highest of those that follow their cluster, and all in units of the widest: what is safe
    // to compute with, and wins as often.
    void rescale() {
        constexpr double narrowest = 1e-10,
                         least = 1e-100;  // relative to the distance from the highest mean, and to the widest
        const double highest = *std::max_element(mean.begin(), mean.end());
        double widest = 0.0;
        for (auto [means, sds] : {std::pair{&mean, &sd}, std::pair{&stray_mean, &stray_sd}})
            for (std::size_t i = 0; i < classes(); ++i) {
                (*means)[i] -= highest;
                (*sds)[i] = std::max((*sds)[i], narrowest * std::fabs((*means)[i]));
                widest = std::max(widest, (*sds)[i]);
            }
        for (auto* means : {&mean, &stray_mean})
            for (double& x : *means) x /= widest;
        for (auto* sds : {&sd, &stray_sd})
            for (double& x : *sds) x = std::max(x / widest, least);
    }
};

}  // namespace banditree
