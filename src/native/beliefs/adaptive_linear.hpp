// Beliefs about linear rewards that learn how far to trust the tree, for levels and for slopes. Twin of
// banditree/beliefs/adaptive_linear.py, which explains them. Here the sums of the clusters are kept up to date along the
// path of each reward, and matrices of several copies are inverted together.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "beliefs/adaptive_kinds.hpp"
#include "beliefs/race.hpp"
#include "numerics/lanes.hpp"
#include "numerics/math.hpp"
#include "numerics/vectors.hpp"
#include "stream.hpp"
#include "tree/shape.hpp"

namespace banditree {

// The arrays of AdaptiveLinearRows.settings().
struct AdaptiveLinearSettings {
    const double* height;       // (nodes,)
    const double* level_width;  // (heights, copies) of a node of this height around its parent
    const double* slope_width;  // (heights, copies)
    const double* log_prior;    // (copies,)
    std::size_t copies, kinds;  // copies that differ in the widths of arms are of different kinds: copy % kinds
    double root_level_width, root_slope_width, sharpness, log_at_stake, strays, growth, most_stray, largest_factor, stray_width,
        stray_factor, faded_step, noise_share, centre_step;
};

struct AdaptiveLinearRows {
    static constexpr double low = -std::numeric_limits<double>::infinity(), high = -low;
    static constexpr bool contextual = true;
    static constexpr std::size_t lanes = 8;   // matrices inverted together
    static constexpr std::size_t n_slots = 6;  // inverses kept of each arm and cluster
    static constexpr std::size_t largest_batch = 256;
    static constexpr std::int64_t refresh = 1 << 16;  // rewards after which all sums are made anew, so that rounding cannot add up

    double* table;              // (nodes + 1, columns) rows, squares, gram (upper triangle, with a constant first), moment
    const double* prior_plays;  // (nodes, 2) what is known beforehand of levels and slopes, in plays
    const double* prior_theta;  // (nodes, p)
    AdaptiveLinearSettings set;
    double* scale;
    std::size_t d, p, triangle, entries, columns;

    AdaptiveLinearRows(double* table_, const double* prior_plays_, const double* prior_theta_, AdaptiveLinearSettings set_,
                       double* scale_, std::size_t dim_)
        : table(table_), prior_plays(prior_plays_), prior_theta(prior_theta_), set(set_), scale(scale_), d(dim_), p(dim_ + 1),
          triangle(p * (p + 1) / 2), entries(triangle + p), columns(2 + triangle + p) {}

    std::size_t dim() const { return d; }
    void reset() { stale = true; }
    void rescale(std::int32_t node, double by) {
        for (std::size_t i = 0; i < columns; ++i) row(node)[i] *= by;
    }

    // Gets ready for a decision in a context: draws a copy, and computes what it believes about the clusters.
    void begin(const Tree& tree, const double* context, Stream& rng) {
        bring_up_to_date(tree);
        const double u = rng.random() * cumulative.back();
        const auto at = static_cast<std::size_t>(std::upper_bound(cumulative.begin(), cumulative.end(), u) - cumulative.begin());
        look(tree, context, std::min(at, set.copies - 1));
        for (std::size_t i = 0; i * lanes < parent_of.size(); ++i) believe(i, false);
    }

    // The parameters of the draw of an arm; u says whether it follows its cluster.
    Drawn drawn(const Tree& tree, std::int32_t leaf, double u) {
        const Arm& arm = believed(tree, leaf);
        if (u >= arm.stray) return arm.following;
        const std::int32_t at = place[static_cast<std::size_t>(leaf)];
        if (at >= 0) believe(static_cast<std::size_t>(at) / lanes, true);
        return arm.alone;
    }
    double draw(const Drawn& of, Stream& rng) const { return of.x + of.y * rng.standard_normal(); }

    // Learns `count` rewards with sum `total`, in one context, of the arm at the end of a path.
    void learn(const Tree& tree, const std::vector<std::int32_t>& path, double total, double count, const double* x) {
        const std::int32_t leaf = path.back();
        for (const std::int32_t node : path) observe(row(node), total, count, x);
        fade();
        if (stale) return;
        if (standardise(row(0)) || ++learned % refresh == 0) {
            stale = true;  // all is made anew before it is used
            return;
        }
        const std::size_t at = note(tree, leaf);
        old_own.resize(entries), own.resize(entries);
        take(at, old_own.data());
        read(leaf, own.data());
        put(at, own.data());
        // What the cluster passes on changes with what it gets: take back the old message, and add the new one.
        for (std::size_t i = path.size() - 1; i-- > 0;) {
            const std::size_t c = cluster(tree, path[i]);
            open(c);
            if (i > 0) before.assign(block(c), block(c) + entries * set.copies);
            if (i + 2 == path.size()) {
                send_arm(old_own.data(), c, -1.0);
                send_arm(own.data(), c, 1.0);
            } else {
                for (std::size_t e = 0; e < entries * set.copies; ++e) block(c)[e] += change[e];
            }
            forget_inverses(cluster_tags, c);
            if (i == 0) break;
            change.assign(entries * set.copies, 0.0);
            send_cluster(before.data(), height_of[c], -1.0, change.data());
            send_cluster(block(c), height_of[c], 1.0, change.data());
        }
        weighed = false;
    }

    // Computes all that one copy believes in one context.
    void look_at_all(const Tree& tree, const double* context, std::size_t which) {
        look(tree, context, which);
        for (std::size_t i = 0; i * lanes < parent_of.size(); ++i) believe(i, true);
    }

    // Computes what one copy believes about the clusters, in one context.
    void look(const Tree& tree, const double* context, std::size_t which) {
        copy = which;
        z[0] = 1.0;
        for (std::size_t j = 0; j < d; ++j) z[j + 1] = (context[j] - centre[j]) * per_scale[j];
        sigma = std::sqrt(variance[copy]);
        const auto n_arms = static_cast<double>(tree.n_arms);
        const double plays = row(0)[2] * weight_of_evidence;
        chance = std::min(set.strays / std::max(n_arms, 2.0) * (1.0 + plays / (set.growth * n_arms)), set.most_stray);
        const double length = ln_one_plus(plays / n_arms);
        const bool falls = length * (set.sharpness - 1.0) > set.log_at_stake * set.sharpness;
        sharpness = falls ? length / (length - set.log_at_stake) : set.sharpness;
        mean.resize(above.size() * p);
        along.resize(above.size());
        untouched.resize(above.size());
        arms.resize(parent_of.size());
        for (std::size_t c = 0; c < above.size(); ++c) {
            double* m = mean.data() + c * p;
            along[c] = -1.0;
            if (c > 0 && slot[c] < 0) {
                std::copy_n(mean.data() + above[c] * p, p, m);
                continue;
            }
            const Widths w = widths(c);
            for (std::size_t i = 0; i < p; ++i) {
                vector[i] = c == 0 ? 0.0 : mean[above[c] * p + i] * (i ? w.slope_precision : w.level_precision);
                if (slot[c] >= 0) vector[i] += sum(c, triangle + i, copy);
            }
            if (slot[c] < 0) {  // the root, before anything is known
                std::fill_n(m, p, 0.0);
                continue;
            }
            multiply(inverse_of_cluster(c), vector.data(), m);
        }
    }

    struct Arm {
        Drawn following, alone;
        double stray;  // chance that it does not follow its cluster
    };

    // What the copy looked at believes about an arm; `believe` has computed it if there is evidence.
    const Arm& believed(const Tree& tree, std::int32_t leaf) {
        const std::int32_t at = place[static_cast<std::size_t>(leaf)];
        if (at >= 0) return arms[static_cast<std::size_t>(at)];
        const std::size_t c = cluster(tree, tree.parent[leaf]);
        if (along[c] < 0.0) {  // the same for all arms of the cluster that nothing is known about
            const double* m = mean.data() + c * p;
            const double v0 = set.level_width[copy] * set.level_width[copy], v1 = set.slope_width[copy] * set.slope_width[copy];
            double value = 0.0, own_part = v0;
            for (std::size_t i = 0; i < p; ++i) value += z[i] * m[i];
            for (std::size_t i = 1; i < p; ++i) own_part += v1 * (z[i] * z[i]);
            along[c] = quadratic(c, z.data()) + own_part;
            const double to_sd = sigma / std::sqrt(sharpness), more = stray_variance() - v0;
            untouched[c] = {{value, to_sd * std::sqrt(along[c])}, {value, to_sd * std::sqrt(along[c] + more)}, chance};
        }
        return untouched[c];
    }

    // Computes what the copy looked at believes about eight arms with evidence; `all` also what they are as strays.
    void believe(std::size_t block_of_arms, bool all) {
        const std::size_t first = block_of_arms * lanes, n = std::min(lanes, parent_of.size() - first);
        const double w0 = set.level_width[copy], w1 = set.slope_width[copy], v0 = w0 * w0, l0 = 1.0 / v0, l1 = 1.0 / (w1 * w1);
        const double vs = stray_variance(), more = vs - v0, fewer = l0 - 1.0 / vs, to_sd = sigma / std::sqrt(sharpness);
        Eight* const y = scratch(2);  // L^-1 z, L^-1 e_0 and L^-1 f, then P z and P e_0: (5, p)
        double* const numbers = work.data() + work.size() - 4 * lanes;  // value, level, own variance, P_00: (4, lanes)
        for (std::size_t i = 0; i < p; ++i)
            for (std::size_t l = 0; l < lanes; ++l)
                reinterpret_cast<double*>(y + 2 * p + i)[l] = (i ? l1 : l0) * mean[(l < n ? parent_of[first + l] : 0) * p + i];
        in_vectors([&]() BANDITREE_INLINE { solve(block_of_arms, l0, l1, all, y, numbers); });
        for (std::size_t l = 0; l < n; ++l) {
            const std::size_t c = parent_of[first + l];
            const double value = numbers[l], apart = numbers[lanes + l] - mean[c * p], own_part = numbers[2 * lanes + l], corner = numbers[3 * lanes + l];
            const auto lane = [&](std::size_t part, std::size_t i) { return reinterpret_cast<const double*>(y + part * p + i)[l]; };
            Arm& arm = arms[first + l];
            for (std::size_t i = 0; i < p; ++i) passed[i] = lane(3, i) * (i ? l1 : l0);
            arm.following = {value, to_sd * std::sqrt(own_part + quadratic(c, passed.data()))};
            const double explained = 1.0 + more * (v0 - corner) * (l0 * l0), g = apart * l0;
            const double factor = 0.5 * (more * g * g / explained / variance[copy] - ln(explained));
            const double odds = chance / (1.0 - chance) * exp(std::min(factor, set.largest_factor));
            arm.stray = odds / (1.0 + odds);
            if (!all) continue;
            const double extra = fewer / (1.0 - fewer * corner), u0 = lane(3, 0);
            for (std::size_t i = 0; i < p; ++i) passed[i] = (lane(3, i) + extra * u0 * lane(4, i)) * (i ? l1 : 1.0 / vs);
            arm.alone = {value + u0 * extra * apart, to_sd * std::sqrt(own_part + extra * u0 * u0 + quadratic(c, passed.data()))};
        }
    }

    // The same of any node, for Python: mean and sd, those of a stray, and the chance to be one, each `stride` apart.
    void describe(const Tree& tree, std::int32_t node, bool sharp, double* out, std::size_t stride) {
        const double wider = sharp ? 1.0 : std::sqrt(sharpness);
        Arm arm{};
        if (tree.content[node] >= 0) {
            arm = believed(tree, node);
        } else {
            const std::size_t c = cluster(tree, node);
            double value = 0.0;
            for (std::size_t i = 0; i < p; ++i) value += z[i] * mean[c * p + i];
            arm.following = arm.alone = {value, sigma / std::sqrt(sharpness) * std::sqrt(quadratic(c, z.data()))};
        }
        const double numbers[] = {arm.following.x, arm.following.y * wider, arm.alone.x, arm.alone.y * wider, arm.stray};
        for (std::size_t i = 0; i < 5; ++i) out[i * stride] = numbers[i];
    }

    std::size_t copies() const { return set.copies; }
    double weight(std::size_t which) const { return (cumulative[which] - (which ? cumulative[which - 1] : 0.0)) / cumulative.back(); }
    std::uint64_t version = 0;  // changes with the evidence, once it has been weighed
    Alike alike(const Tree& tree, std::int32_t leaf) const {
        return {place[static_cast<std::size_t>(leaf)] >= 0 ? leaf : tree.parent[leaf], 0.0, 0.0};
    }
    // What a copy draws arms from, in one context.
    void describe(const Tree& tree, const double* context, std::size_t which, const std::vector<std::int32_t>& leaves, Draws& to) {
        look_at_all(tree, context, which);
        const std::size_t n = leaves.size();
        to.resize(n);
        for (std::size_t i = 0; i < n; ++i) {
            const Arm& arm = believed(tree, leaves[i]);
            to.mean[i] = arm.following.x, to.sd[i] = arm.following.y, to.share[i] = 1.0 - arm.stray;
            to.mean[i + n] = arm.alone.x, to.sd[i + n] = arm.alone.y, to.share[i + n] = arm.stray;
        }
    }

    void weights(std::vector<double>& shares, std::vector<double>& noise) const {
        shares.resize(set.copies);
        for (std::size_t k = 0; k < set.copies; ++k) shares[k] = weight(k);
        noise = variance;
    }

    void bring_up_to_date(const Tree& tree) {
        fade();
        if (stale) rebuild(tree);
        if (!weighed) weigh();
    }
    double reward_centre() const { return origin; }
    std::size_t cluster(const Tree& tree, std::int32_t node) const { return static_cast<std::size_t>(~tree.content[node]); }

  private:
    struct Widths {
        double level_precision, slope_precision;
    };
    using Tags = std::vector<std::int16_t>;

    bool stale = true, weighed = false;
    std::int64_t learned = 0;
    double weight_of_evidence = 1.0, scale_then = 1.0;
    double origin = 0.0;                              // what rewards are measured from
    std::vector<double> centre, per_scale;            // (dim,) what features are measured from, and 1 over their scales
    std::vector<std::size_t> above, height_of;        // (clusters,) the cluster above, and the height
    std::vector<std::int32_t> place;                  // (nodes,) of an arm among those with evidence, -1 if it has none
    std::vector<double> of_arm;                       // A and b of arms with evidence, standardised, eight arms side by side
    std::vector<std::size_t> parent_of;               // (arms with evidence,) their clusters
    std::vector<std::int32_t> slot;                   // (clusters,) where the sums are, -1 for none
    std::vector<double> sums;                         // (slots, entries, copies) A and b of clusters
    std::vector<double> arm_log, arm_fit;             // (kinds,) sums over arms of ln|M| and of b'Pb
    std::vector<double> cluster_log, cluster_fit;     // (copies,) the same over clusters but the root
    std::vector<double> known_fit;                    // one number: what is known beforehand adds to the sum of squares
    std::vector<double> variance, cumulative;         // (copies,) of the noise; weights, added up
    std::vector<double> cluster_inverses;             // (clusters, slots, p, p)
    Tags cluster_tags;                                // which copies they are of, -1 for none; the last says which is next
    // Of the decision
    std::size_t copy = 0;
    double sigma = 1.0, chance = 0.0, sharpness = 1.0;
    std::vector<double> z, mean, along;               // (p,), (clusters, p), (clusters,)
    std::vector<Arm> arms, untouched;                 // (arms with evidence,), (clusters,) for arms without
    std::vector<double> vector, passed, step, own, old_own, before, change, work;  // scratch

    double* row(std::int32_t node) { return table + static_cast<std::size_t>(node) * columns; }
    double* block(std::size_t c) { return sums.data() + static_cast<std::size_t>(slot[c]) * entries * set.copies; }
    double sum(std::size_t c, std::size_t entry, std::size_t of) const {
        return sums[(static_cast<std::size_t>(slot[c]) * entries + entry) * set.copies + of];
    }
    static std::size_t packed(std::size_t i, std::size_t j) { return i * (i + 1) / 2 + j; }  // of a lower triangle, j <= i

    void observe(double* to, double total, double count, const double* x) {
        to[0] += 1.0 / *scale;
        to[1] += total * total / count;
        double* gram = to + 2;
        for (std::size_t i = 0; i < p; ++i)
            for (std::size_t j = 0; j <= i; ++j) *gram++ += count * (i ? x[i - 1] : 1.0) * (j ? x[j - 1] : 1.0);
        for (std::size_t i = 0; i < p; ++i) gram[i] += total * (i ? x[i - 1] : 1.0);
    }

    void fade() {
        if (*scale == scale_then) return;
        scale_then = *scale;
        const double now = exp(std::floor(ln(*scale) / ln(set.faded_step) + 1e-9) * ln(set.faded_step));
        stale = stale || now != weight_of_evidence;
        weight_of_evidence = now;
    }

    // Sets the scales of the features and the origin of the rewards by all evidence, in steps, so that they rarely change.
    // Returns whether they did.
    bool standardise(const double* root) {
        const double f = weight_of_evidence, n = root[2] * f;
        bool changed = false;
        const auto assign = [&changed](double& to, double value) {
            changed = changed || to != value;
            to = value;
        };
        const double *gram = root + 2, *moment = root + 2 + triangle;
        for (std::size_t j = 0; j < d; ++j) {
            const double total = gram[packed(j + 1, 0)] * f, square = gram[packed(j + 1, j + 1)] * f;
            const double within = n > 0.0 ? square - total * (total / n) : 0.0, fewer = std::max(n - 1.0, 0.5 * n);
            if (!(within > 1e-12 * square)) {
                assign(per_scale[j], 0.0), assign(centre[j], 0.0);
                continue;
            }
            const double size = power_near_root(within * (n + 3.0) / (fewer * fewer));
            assign(per_scale[j], 1.0 / size);
            assign(centre[j], 0.5 * size * std::rint(2.0 * (total / n) / size));
        }
        const double total = moment[0] * f, square = root[1] * f, within = n > 0.0 ? square - total * (total / n) : 0.0;
        if (!(n > 0.0))
            assign(origin, 0.0);
        else if (!(within > 1e-12 * square))
            assign(origin, static_cast<double>(static_cast<float>(std::fabs(total / n) < 1e30 ? total / n : 0.0)));
        else {
            const double size = set.centre_step * power_near_root(within / n);
            assign(origin, size * std::rint(total / n / size));
        }
        return changed;
    }

    // Reads the evidence of an arm, with what is known beforehand, standardised.
    void read(std::int32_t leaf, double* to) {
        const double f = weight_of_evidence, *gram = row(leaf) + 2, *moment = gram + triangle;
        const double n = gram[0] * f, total = moment[0] * f - origin * n;
        to[0] = n;
        to[triangle] = total;
        for (std::size_t i = 1; i < p; ++i) {
            const double x = gram[packed(i, 0)] * f, off = x - centre[i - 1] * n;
            to[packed(i, 0)] = off * per_scale[i - 1];
            for (std::size_t j = 1; j <= i; ++j) {
                const double other = gram[packed(j, 0)] * f;
                to[packed(i, j)] = ((gram[packed(i, j)] * f - centre[j - 1] * x) - centre[i - 1] * (other - centre[j - 1] * n)) *
                                   per_scale[i - 1] * per_scale[j - 1];
            }
            to[triangle + i] = ((moment[i] * f - origin * x) - centre[i - 1] * total) * per_scale[i - 1];
        }
        add_known(leaf, to);
    }

    // Adds what is known beforehand of a node. Returns by how much it adds to the sum of squares.
    double add_known(std::int32_t node, double* to, std::size_t stride = 1, std::size_t repeats = 1) {
        const double* plays = prior_plays + 2 * static_cast<std::size_t>(node);
        if (!(plays[0] > 0.0 || plays[1] > 0.0)) return 0.0;
        const double* theta = prior_theta + p * static_cast<std::size_t>(node);
        double level = theta[0] - origin, fit = 0.0;
        for (std::size_t j = 0; j < d; ++j) level += theta[j + 1] * centre[j];
        for (std::size_t i = 0; i < p; ++i) {
            const double count = plays[i ? 1 : 0], value = i == 0 ? level : per_scale[i - 1] > 0.0 ? theta[i] / per_scale[i - 1] : 0.0;
            for (std::size_t k = 0; k < repeats; ++k) {
                if (node > 0) to[packed(i, i) * stride + k] += count;
                to[(triangle + i) * stride + k] += count * value;
            }
            fit += count * value * value;
        }
        return fit;
    }

    bool is_known(std::int32_t node) const {
        const double* plays = prior_plays + 2 * static_cast<std::size_t>(node);
        return plays[0] > 0.0 || plays[1] > 0.0;
    }

    Widths widths(std::size_t c) const {
        if (c == 0) return {root_level_precision(), root_slope_precision(copy)};
        const std::size_t at = height_of[c] * set.copies + copy;
        return {1.0 / (set.level_width[at] * set.level_width[at]), 1.0 / (set.slope_width[at] * set.slope_width[at])};
    }
    double root_level_precision() const {
        return prior_plays[0] > 0.0 ? prior_plays[0] : 1.0 / (set.root_level_width * set.root_level_width);
    }
    double root_slope_precision(std::size_t of) const {
        if (prior_plays[1] > 0.0) return prior_plays[1];
        const std::size_t top = height_of[0] > 0 ? (height_of[0] - 1) * set.copies + of : of;
        const double width = std::max(set.root_slope_width, 2.0 * set.slope_width[top]);
        return 1.0 / (width * width);
    }

    std::size_t note(const Tree& tree, std::int32_t leaf) {
        std::int32_t& at = place[static_cast<std::size_t>(leaf)];
        if (at < 0) {
            at = static_cast<std::int32_t>(parent_of.size());
            parent_of.push_back(cluster(tree, tree.parent[leaf]));
            if (static_cast<std::size_t>(at) % lanes == 0) of_arm.resize(of_arm.size() + entries * lanes, 0.0);
        }
        return static_cast<std::size_t>(at);
    }
    double* of_place(std::size_t at) { return of_arm.data() + at / lanes * entries * lanes + at % lanes; }
    void put(std::size_t at, const double* from) {
        for (std::size_t e = 0; e < entries; ++e) of_place(at)[e * lanes] = from[e];
    }
    void take(std::size_t at, double* to) {
        for (std::size_t e = 0; e < entries; ++e) to[e] = of_place(at)[e * lanes];
    }
    double stray_variance() const {
        const double width = std::max(set.stray_width, set.stray_factor * set.level_width[copy]);
        return width * width;
    }

    void open(std::size_t c) {
        if (slot[c] >= 0) return;
        slot[c] = static_cast<std::int32_t>(sums.size() / (entries * set.copies));
        sums.resize(sums.size() + entries * set.copies, 0.0);
    }
    void forget_inverses(Tags& tags, std::size_t of) {
        std::fill_n(tags.begin() + static_cast<std::ptrdiff_t>(of * (n_slots + 1)), n_slots, std::int16_t{-1});
    }

    void prepare(const Tree& tree) {
        if (!above.empty()) return;
        for (std::int32_t node = 0; node < tree.n_nodes; ++node) {
            if (tree.content[node] >= 0) continue;
            above.push_back(node == 0 ? 0 : cluster(tree, tree.parent[node]));
            height_of.push_back(static_cast<std::size_t>(set.height[node]));
        }
        centre.assign(d, 0.0), per_scale.assign(d, 0.0);
        for (auto* part : {&z, &vector, &passed, &step}) part->assign(p, 0.0);
        work.resize((std::max(2 * triangle, triangle + 5 * p) + entries + 4) * lanes);
        variance.resize(set.copies), cumulative.resize(set.copies);
    }

    void rebuild(const Tree& tree) {
        prepare(tree);
        standardise(row(0));
        slot.assign(above.size(), -1);
        place.assign(static_cast<std::size_t>(tree.n_nodes), -1);
        sums.clear(), of_arm.clear(), parent_of.clear();
        cluster_tags.assign(above.size() * (n_slots + 1), -1);
        cluster_inverses.resize(above.size() * n_slots * p * p);
        arm_log.assign(set.kinds, 0.0), arm_fit.assign(set.kinds, 0.0);
        cluster_log.assign(set.copies, 0.0), cluster_fit.assign(set.copies, 0.0), known_fit.assign(1, 0.0);
        open(0);
        for (std::int32_t node = tree.n_nodes - 1; node >= 0; --node) {
            const bool leaf = tree.content[node] >= 0;
            if (leaf) {
                if (!(row(node)[2] > 0.0) && !is_known(node)) continue;
                own.resize(entries);
                read(node, own.data());
                put(note(tree, node), own.data());
                known_fit[0] += fit_of_known(node);
                const std::size_t parent = cluster(tree, tree.parent[node]);
                open(parent);
                send_arm(own.data(), parent, 1.0);
                continue;
            }
            const std::size_t c = cluster(tree, node);
            if (is_known(node)) {
                open(c);
                known_fit[0] += add_known(node, block(c), set.copies, set.copies);
            }
            if (node == 0 || slot[c] < 0) continue;
            const std::size_t parent = cluster(tree, tree.parent[node]);
            open(parent);
            send_cluster(block(c), height_of[c], 1.0, block(parent));
        }
        stale = weighed = false;
    }
    double fit_of_known(std::int32_t node) {
        if (!is_known(node)) return 0.0;
        old_own.assign(entries, 0.0);
        return add_known(node, old_own.data());
    }

    // Adds the message of an arm to the sums of its cluster, or with the sign -1 takes it away.
    void send_arm(const double* own, std::size_t c, double sign) {
        in_vectors([&]() BANDITREE_INLINE {
            Eight* given = scratch();
            for (std::size_t e = 0; e < entries; ++e)
                for (std::size_t l = 0; l < lanes; ++l) given[e].set(l, own[e]);
            for (std::size_t from = 0; from < set.kinds; from += lanes)
                message(given, 0, from, sign, arm_log.data(), arm_fit.data(), block(c) + from, set.copies / set.kinds);
        });
    }

    // Adds the message of a cluster with these sums to those in `to`, which are laid out in the same way.
    void send_cluster(const double* of, std::size_t height, double sign, double* to) {
        in_vectors([&]() BANDITREE_INLINE {
            for (std::size_t from = 0; from < set.copies; from += lanes)
                message(load(of + from), height, from, sign, cluster_log.data(), cluster_fit.data(), to + from, 1);
        });
    }

    // Three parts of the workspace: (entries,), (triangle,) and (triangle,), each for eight copies at once.
    Eight* scratch(std::size_t part = 0) {
        return reinterpret_cast<Eight*>(work.data()) + (part ? entries + (part - 1) * triangle : 0);
    }
    static BANDITREE_INLINE Eight& eight(double* at) { return *reinterpret_cast<Eight*>(at); }

    // Brings the evidence of eight copies, whose entries lie `copies` apart, together.
    BANDITREE_INLINE Eight* load(const double* evidence) {
        Eight* given = scratch();
        for (std::size_t e = 0; e < entries; ++e) given[e] = *reinterpret_cast<const Eight*>(evidence + e * set.copies);
        return given;
    }

    // The message of a node with evidence A and b for eight widths w at once. With P = (w^-2 + A)^-1 it is
    // Lambda = w^-2 - w^-2 P w^-2 and eta = w^-2 P b. It is added to `to`, for an arm to all copies of its kind.
    BANDITREE_INLINE void message(const Eight* given, std::size_t height, std::size_t from, double sign, double* logs, double* fits,
                                  double* to, std::size_t repeats) {
        Eight l0, l1, log_part, fit;
        for (std::size_t l = 0; l < lanes; ++l) {
            const std::size_t k = height * set.copies + from + l;
            l0.set(l, 1.0 / (set.level_width[k] * set.level_width[k])), l1.set(l, 1.0 / (set.slope_width[k] * set.slope_width[k]));
        }
        Eight *inverse = scratch(1), *product = scratch(2);  // L^-1; L, then P
        decompose(given, l0, l1, product, inverse, log_part, fit);
        for (std::size_t i = 0; i < p; ++i)  // P = L^-T L^-1
            for (std::size_t j = 0; j <= i; ++j) {
                Eight total = inverse[packed(i, i)] * inverse[packed(i, j)];
                for (std::size_t k = i + 1; k < p; ++k) total += inverse[packed(k, i)] * inverse[packed(k, j)];
                product[packed(i, j)] = total;
            }
        const auto add = [&](std::size_t entry, const Eight& more) BANDITREE_INLINE {
            for (std::size_t r = 0; r < repeats; ++r) eight(to + entry * set.copies + r * set.kinds) += sign * more;
        };
        for (std::size_t i = 0; i < p; ++i) {
            const Eight li = i ? l1 : l0;
            Eight total = product[packed(i, 0)] * given[triangle];
            for (std::size_t j = 1; j < p; ++j) total += product[j <= i ? packed(i, j) : packed(j, i)] * given[triangle + j];
            add(triangle + i, li * total);
            for (std::size_t j = 0; j < i; ++j) add(packed(i, j), -1.0 * (li * product[packed(i, j)] * (j ? l1 : l0)));
            add(packed(i, i), li - li * product[packed(i, i)] * li);
        }
        eight(logs + from) += sign * log_part;
        eight(fits + from) += sign * fit;
    }

    // w^-2 + A = L L', L^-1, ln|I + w A w|, and b' (w^-2 + A)^-1 b = |L^-1 b|^2. No pivot is below that of w^-2, up to rounding.
    BANDITREE_INLINE void decompose(const Eight* given, const Eight& l0, const Eight& l1, Eight* low_part, Eight* inverse, Eight& log_part,
                                    Eight& fit) const {
        log_part = fit = Eight{};
        for (std::size_t i = 0; i < p; ++i) {
            const Eight li = i ? l1 : l0;
            Eight* const row_i = low_part + packed(i, 0);
            for (std::size_t j = 0; j < i; ++j) {
                Eight total = given[packed(i, j)];
                const Eight* row_j = low_part + packed(j, 0);
                for (std::size_t k = 0; k < j; ++k) total -= row_i[k] * row_j[k];
                row_i[j] = total * inverse[packed(j, j)];
            }
            Eight pivot = given[packed(i, i)] + li;
            for (std::size_t k = 0; k < i; ++k) pivot -= row_i[k] * row_i[k];
            double pivots[lanes], least[lanes], logs[lanes], roots[lanes];
            std::memcpy(pivots, &pivot, sizeof pivots), std::memcpy(least, &li, sizeof least);
            for (std::size_t l = 0; l < lanes; ++l) {
                pivots[l] = pivots[l] > least[l] ? pivots[l] : least[l];
                logs[l] = ln_lane(pivots[l] / least[l]);
                roots[l] = 1.0 / std::sqrt(pivots[l]);
            }
            Eight log_of, last;
            std::memcpy(&pivot, pivots, sizeof pivots), std::memcpy(&log_of, logs, sizeof logs), std::memcpy(&last, roots, sizeof roots);
            log_part += log_of;
            inverse[packed(i, i)] = last;
            row_i[i] = pivot * last;
            for (std::size_t j = 0; j < i; ++j) {
                Eight total = row_i[j] * inverse[packed(j, j)];
                for (std::size_t k = j + 1; k < i; ++k) total += row_i[k] * inverse[packed(k, j)];
                inverse[packed(i, j)] = -1.0 * (total * last);
            }
            Eight total = last * given[triangle + i];
            for (std::size_t j = 0; j < i; ++j) total += inverse[packed(i, j)] * given[triangle + j];
            fit += total * total;
        }
    }

    // For eight arms with w^-2 + A = L L': L^-1 z, L^-1 e_0 and L^-1 f, and P z, P e_0, for `believe`. f is there but for b.
    BANDITREE_INLINE void solve(std::size_t block_of_arms, double l0, double l1, bool all, Eight* y, double* numbers) {
        const Eight* given = reinterpret_cast<const Eight*>(of_arm.data() + block_of_arms * entries * lanes);
        Eight* const low_part = scratch(1);
        Eight *const along_z = y, *const along_level = y + p, *const f = y + 2 * p;
        Eight value{}, level{}, own_part{}, corner{};
        for (std::size_t i = 0; i < p; ++i) {
            const double li = i ? l1 : l0;
            Eight* const row_i = low_part + packed(i, 0);
            Eight x = broadcast(z[i]), e = broadcast(i ? 0.0 : 1.0), b = f[i] + given[triangle + i], pivot = given[packed(i, i)] + broadcast(li);
            for (std::size_t j = 0; j < i; ++j) {
                Eight total = given[packed(i, j)];
                const Eight* row_j = low_part + packed(j, 0);
                for (std::size_t k = 0; k < j; ++k) total -= row_i[k] * row_j[k];
                total = total * row_j[j];  // the diagonal has 1 / L
                row_i[j] = total;
                pivot -= total * total;
                x -= total * along_z[j], e -= total * along_level[j], b -= total * f[j];
            }
            double pivots[lanes];
            std::memcpy(pivots, &pivot, sizeof pivots);
            for (std::size_t l = 0; l < lanes; ++l) pivots[l] = 1.0 / std::sqrt(pivots[l] > li ? pivots[l] : li);
            std::memcpy(&pivot, pivots, sizeof pivots);
            row_i[i] = pivot;
            along_z[i] = x = x * pivot, along_level[i] = e = e * pivot, f[i] = b = b * pivot;
            value += x * b, level += e * b, own_part += x * x, corner += e * e;
        }
        for (std::size_t part = 0; part < (all ? 2u : 1u); ++part)
            for (std::size_t i = p; i-- > 0;) {
                Eight total = y[part * p + i];
                for (std::size_t k = i + 1; k < p; ++k) total -= low_part[packed(k, i)] * y[(3 + part) * p + k];
                y[(3 + part) * p + i] = total * low_part[packed(i, i)];
            }
        const Eight results[] = {value, level, own_part, corner};
        std::memcpy(numbers, results, sizeof results);
    }
    static BANDITREE_INLINE Eight broadcast(double x) {
        Eight all;
        for (std::size_t l = 0; l < lanes; ++l) all.set(l, x);
        return all;
    }

    // Weighs the copies by how well they explain the evidence, and computes the noise of each.
    void weigh() {
        const double f = weight_of_evidence, *root = row(0);
        const double n = root[2] * f, rewards = root[0] * f, total = root[2 + triangle] * f, square = root[1] * f;
        const double within = n > 0.0 ? std::max(square - total * (total / n), 0.0) : 0.0;
        const bool varies = within > 1e-12 * square || known_fit[0] > 0.0;
        const double centred = std::max(square - 2.0 * origin * total + origin * origin * n, 0.0) + known_fit[0];
        const double noise = rewards > 0.0 ? set.noise_share * within / rewards : 0.0, shape = 1.0 + 0.5 * rewards;
        in_vectors([&]() BANDITREE_INLINE {
            for (std::size_t from = 0; from < set.copies; from += lanes) {
                Eight l0, l1, log_part, fit;
                for (std::size_t l = 0; l < lanes; ++l) l0.set(l, root_level_precision()), l1.set(l, root_slope_precision(from + l));
                decompose(load(block(0) + from), l0, l1, scratch(2), scratch(1), log_part, fit);
                for (std::size_t l = 0; l < lanes; ++l) {
                    const std::size_t k = from + l;
                    const double logs = log_part.get(l) + cluster_log[k] + arm_log[k % set.kinds];
                    const double rest = centred - fit.get(l) - cluster_fit[k] - arm_fit[k % set.kinds];
                    const double squares = varies ? noise + 0.5 * (rest > 1e-12 * centred ? rest : 1e-12 * centred) : shape;
                    variance[k] = squares / shape;
                    cumulative[k] = set.log_prior[k] - 0.5 * logs - (varies ? shape * ln_lane(squares) : 0.0);
                }
            }
        });
        const double top = *std::max_element(cumulative.begin(), cumulative.end());
        double total_weight = 0.0;
        for (double& weight : cumulative) weight = total_weight += exp(weight - top);
        weighed = true;
        ++version;
    }

    // The inverse (w^-2 + A)^-1 of a cluster in the copy looked at: (p, p). Few are kept of each.
    double* inverse_of_cluster(std::size_t c) {
        double* to;
        if (!find_inverse(cluster_tags, cluster_inverses, c, copy, to)) {
            const Widths w = widths(c);
            invert(block(c) + copy, set.copies, w.level_precision, w.slope_precision, to);
        }
        return to;
    }
    bool find_inverse(Tags& tags, std::vector<double>& inverses, std::size_t of, std::size_t which, double*& to) {
        std::int16_t* tag = tags.data() + of * (n_slots + 1);
        for (std::size_t i = 0; i < n_slots; ++i)
            if (tag[i] == static_cast<std::int16_t>(which)) {
                to = inverses.data() + (of * n_slots + i) * p * p;
                return true;
            }
        tag[n_slots] = static_cast<std::int16_t>((tag[n_slots] + 1) % static_cast<int>(n_slots));
        tag[tag[n_slots]] = static_cast<std::int16_t>(which);
        to = inverses.data() + (of * n_slots + static_cast<std::size_t>(tag[n_slots])) * p * p;
        return false;
    }
    void invert(const double* evidence, std::size_t stride, double l0, double l1, double* to) {
        double *low_part = work.data(), *inverse = work.data() + triangle;
        for (std::size_t i = 0; i < p; ++i) {
            const double li = i ? l1 : l0;
            for (std::size_t j = 0; j <= i; ++j) {
                double sum_here = evidence[packed(i, j) * stride] + (i == j ? li : 0.0);
                for (std::size_t k = 0; k < j; ++k) sum_here -= low_part[packed(i, k)] * low_part[packed(j, k)];
                if (i == j) {
                    low_part[packed(i, i)] = std::sqrt(std::max(sum_here, li));
                    inverse[packed(i, i)] = 1.0 / low_part[packed(i, i)];
                } else {
                    low_part[packed(i, j)] = sum_here * inverse[packed(j, j)];
                }
            }
            for (std::size_t j = 0; j < i; ++j) {
                double sum_here = 0.0;
                for (std::size_t k = j; k < i; ++k) sum_here -= low_part[packed(i, k)] * inverse[packed(k, j)];
                inverse[packed(i, j)] = sum_here * inverse[packed(i, i)];
            }
        }
        std::fill_n(to, p * p, 0.0);
        for (std::size_t k = 0; k < p; ++k)
            for (std::size_t i = 0; i <= k; ++i) {
                const double factor = inverse[packed(k, i)];
                for (std::size_t j = 0; j <= k; ++j) to[i * p + j] += factor * inverse[packed(k, j)];
            }
    }

    // out = matrix x, for a symmetric matrix.
    void multiply(const double* matrix, const double* x, double* out) const {
        in_vectors([&]() BANDITREE_INLINE {
            double* __restrict to = out;
            for (std::size_t i = 0; i < p; ++i) to[i] = matrix[i] * x[0];
            for (std::size_t j = 1; j < p; ++j) {
                const double* __restrict column = matrix + j * p;
                const double factor = x[j];
                for (std::size_t i = 0; i < p; ++i) to[i] += column[i] * factor;
            }
        });
    }

    // v' S v, with S the covariance of a cluster's coefficients in units of the noise.
    double quadratic(std::size_t c, const double* v) {
        double total = 0.0;
        std::copy_n(v, p, vector.data());
        for (;;) {
            if (slot[c] >= 0) {
                multiply(inverse_of_cluster(c), vector.data(), step.data());
                for (std::size_t i = 0; i < p; ++i) total += vector[i] * step[i];
                if (c == 0) return total;
                const Widths w = widths(c);
                for (std::size_t i = 0; i < p; ++i) vector[i] = step[i] * (i ? w.slope_precision : w.level_precision);
            } else {
                const Widths w = widths(c);
                for (std::size_t i = 0; i < p; ++i) total += vector[i] * vector[i] / (i ? w.slope_precision : w.level_precision);
                if (c == 0) return total;
            }
            c = above[c];
        }
    }
};

}  // namespace banditree
