// Beliefs about linear rewards that learn how far to trust the tree, for levels and for slopes. Twin of
// banditree/beliefs/adaptive_linear.py, which explains them. Here the sums of the clusters are kept up to date along
// the path of each reward, and matrices of several copies are inverted together.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "beliefs/adaptive_kinds.hpp"
#include "beliefs/draws.hpp"
#include "numerics/inverses.hpp"
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
    double root_level_width, root_slope_width, stray_factor, noise_share, origin_step;
    Coupling coupling;
};

struct AdaptiveLinearRows {
    static constexpr double low = -std::numeric_limits<double>::infinity(), high = -low;
    static constexpr bool contextual = true;
    static constexpr std::size_t lanes = 8;    // matrices inverted together
    static constexpr std::size_t n_slots = 4;  // inverses kept of each cluster, and of each eight arms
    static constexpr std::size_t largest_batch = 256;
    static constexpr double largest_factor = 50.0;  // LARGEST_FACTOR in copies.py
    static constexpr std::int64_t refresh =
        1 << 16;  // rewards after which all sums are made anew, so that rounding cannot add up

    double* table;              // (nodes, columns) rows, squares, gram (lower triangle, with a constant first), moment
    const double* prior_plays;  // (nodes, 2) what is known beforehand of levels and slopes, in plays
    const double* prior_theta;  // (nodes, p)
    AdaptiveLinearSettings set;
    std::size_t d, p, triangle, entries, columns;

    AdaptiveLinearRows(double* table_, const double* prior_plays_, const double* prior_theta_,
                       AdaptiveLinearSettings set_, std::size_t dim_)
        : table(table_),
          prior_plays(prior_plays_),
          prior_theta(prior_theta_),
          set(set_),
          d(dim_),
          p(dim_ + 1),
          triangle(p * (p + 1) / 2),
          entries(triangle + p),
          columns(2 + triangle + p) {}

    std::size_t dim() const { return d; }
    void reset() { stale = true; }
    void rescale(std::int32_t node, double by) {
        for (std::size_t i = 0; i < columns; ++i) row(node)[i] *= by;
    }

    // Gets ready for a decision in a context: draws a copy, and computes what it believes about the clusters.
    void begin(const Tree& tree, const double* context, Stream& rng) {
        bring_up_to_date(tree);
        const double u = rng.random() * cumulative.back();
        const auto at =
            static_cast<std::size_t>(std::upper_bound(cumulative.begin(), cumulative.end(), u) - cumulative.begin());
        look(tree, context, std::min(at, set.copies - 1));
        for (std::size_t i = 0; i * lanes < parent_of.size(); ++i) believe(i, false);
    }

    const Coupling& coupling() const { return set.coupling; }
    // What an arm draws from if it follows its cluster, and if it does not; and the odds that it does not.
    Drawn following(const Tree& tree, std::int32_t leaf) { return believed(tree, leaf).following; }
    Drawn alone(const Tree& tree, std::int32_t leaf) {
        const std::int32_t at = place[static_cast<std::size_t>(leaf)];
        if (at >= 0) believe(static_cast<std::size_t>(at) / lanes, true);
        return believed(tree, leaf).alone;
    }
    double odds(const Tree& tree, std::int32_t leaf) { return believed(tree, leaf).odds; }

    // Learns `count` rewards with sum `total`, in one context, of the arm at the end of a path.
    void learn(const Tree& tree, const std::vector<std::int32_t>& path, double total, double count, const double* x) {
        const std::int32_t leaf = path.back();
        for (const std::int32_t node : path) observe(row(node), total, count, x);
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
        for (std::size_t i = path.size() - 1; i-- > 0;) {
            const std::size_t c = cluster(tree, path[i]);
            open(c);
            if (i + 2 == path.size()) {
                send_arm(old_own.data(), c, -1.0);
                send_arm(own.data(), c, 1.0);
            } else {
                send_cluster(cluster(tree, path[i + 1]), c);
            }
            forget_inverses(cluster_tags, c);
        }
        weighed = false;
    }

    // Computes all that one copy believes in one context.
    void look_at_all(const Tree& tree, const double* context, std::size_t which) {
        look(tree, context, which);
        for (std::size_t i = 0; i * lanes < parent_of.size(); ++i) believe(i, true);
    }

    // Computes what one copy believes about the clusters, in one context.
    void look(const Tree&, const double* context, std::size_t which) {
        copy = which;
        arm_widths[0] = set.level_width[copy], arm_widths[1] = set.slope_width[copy];
        z[0] = 1.0;
        for (std::size_t j = 0; j < d; ++j) z[j + 1] = (context[j] - centre[j]) * per_scale[j];
        to_sd = std::sqrt(variance[copy]);
        mean.resize(above.size() * p);
        along.resize(above.size());
        untouched.resize(above.size());
        arms.resize(parent_of.size());
        spread.resize(sums.size() / (entries * set.copies) * p * p);
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
            multiply(p, inverse_of_cluster(c), vector.data(), m);
            if (is_large(c)) in_vectors([&]() BANDITREE_INLINE { spread_out(c); });
        }
    }

    struct Arm {
        Drawn following, alone;
        double odds;  // that it is the stray
    };

    // What the copy looked at believes about an arm; `believe` has computed it if there is evidence.
    const Arm& believed(const Tree& tree, std::int32_t leaf) {
        const std::int32_t at = place[static_cast<std::size_t>(leaf)];
        if (at >= 0) return arms[static_cast<std::size_t>(at)];
        const std::size_t c = cluster(tree, tree.parent[leaf]);
        if (along[c] < 0.0) {  // the same for all arms of the cluster that nothing is known about
            const double* m = mean.data() + c * p;
            const double v0 = arm_widths[0] * arm_widths[0], v1 = arm_widths[1] * arm_widths[1];
            double value = 0.0, own_part = v0;
            for (std::size_t i = 0; i < p; ++i) value += z[i] * m[i];
            for (std::size_t i = 1; i < p; ++i) own_part += v1 * (z[i] * z[i]);
            along[c] = quadratic(c, z.data()) + own_part;
            const double more = stray_variance() - v0;
            untouched[c] = {
                {value, to_sd * std::sqrt(along[c])}, {value, to_sd * std::sqrt(along[c] + more)}, set.coupling.odds};
        }
        return untouched[c];
    }

    // Computes what the copy looked at believes about eight arms with evidence; `all` also what they are as strays.
    void believe(std::size_t block_of_arms, bool all) {
        in_vectors([&]() BANDITREE_INLINE { believe_eight(block_of_arms, all); });
    }

    // The same of any node, for Python: mean and sd, those of a stray, and the odds to be one, each `stride` apart.
    void describe(const Tree& tree, std::int32_t node, double* out, std::size_t stride) {
        Arm arm{};
        if (tree.content[node] >= 0) {
            arm = believed(tree, node);
        } else {
            const std::size_t c = cluster(tree, node);
            double value = 0.0;
            for (std::size_t i = 0; i < p; ++i) value += z[i] * mean[c * p + i];
            arm.following = arm.alone = {value, to_sd * std::sqrt(quadratic(c, z.data()))};
        }
        const double numbers[] = {arm.following.x, arm.following.y, arm.alone.x, arm.alone.y, arm.odds};
        for (std::size_t i = 0; i < 5; ++i) out[i * stride] = numbers[i];
    }

    std::size_t copies() const { return set.copies; }
    double weight(std::size_t which) const {
        return (cumulative[which] - (which ? cumulative[which - 1] : 0.0)) / cumulative.back();
    }
    std::uint64_t version = 0;  // changes with the evidence, once it has been weighed
    Group group(const Tree& tree, std::int32_t leaf) const {
        return {place[static_cast<std::size_t>(leaf)] >= 0 ? leaf : tree.parent[leaf], 0.0, 0.0};
    }
    // What a copy draws arms from, in one context.
    void describe(const Tree& tree, const double* context, std::size_t which, const std::vector<std::int32_t>& leaves,
                  Draws& to) {
        look_at_all(tree, context, which);
        const std::size_t n = leaves.size();
        to.resize(n);
        for (std::size_t i = 0; i < n; ++i) {
            const Arm& arm = believed(tree, leaves[i]);
            to.set(i, arm.following, arm.alone, arm.odds);
        }
    }

    void weights(std::vector<double>& shares, std::vector<double>& noise) const {
        shares.resize(set.copies);
        for (std::size_t k = 0; k < set.copies; ++k) shares[k] = weight(k);
        noise = variance;
    }

    void bring_up_to_date(const Tree& tree) {
        if (stale) rebuild(tree);
        if (!weighed) weigh();
    }
    std::size_t cluster(const Tree& tree, std::int32_t node) const {
        return static_cast<std::size_t>(~tree.content[node]);
    }

  private:
    struct Widths {
        double level_precision, slope_precision;
    };
    using Tags = std::vector<std::int16_t>;

    bool stale = true, weighed = false;
    std::int64_t learned = 0;
    double origin = 0.0;                        // what rewards are measured from
    std::vector<double> centre, per_scale;      // (dim,) what features are measured from, and 1 over their scales
    std::vector<std::size_t> above, height_of;  // (clusters,) the cluster above, and the height
    std::vector<std::int32_t> place;            // (nodes,) of an arm among those with evidence, -1 if it has none
    std::vector<double> of_arm;                 // A and b of arms with evidence, standardised, eight arms of one
                                                // cluster side by side, or of small ones
    std::vector<std::size_t> parent_of;         // (places,) their clusters
    std::vector<std::int32_t> next_place;       // (clusters + 1,) of the next arm, the last for those of small clusters
    std::vector<std::size_t> members;           // (clusters,) arms with evidence anywhere below; not of the root
    std::vector<std::int32_t> slot;             // (clusters,) where the sums are, -1 for none
    std::vector<double> sums;                   // (slots, entries, copies) A and b of clusters
    std::vector<double> sent;                   // (slots, entries + 2, copies) the message of each, ln|M| and b'Pb
    std::vector<double> arm_log, arm_fit;       // (kinds,) sums over arms of ln|M| and of b'Pb
    std::vector<double> cluster_log, cluster_fit;  // (copies,) the same over clusters but the root
    std::vector<double> known_fit;                 // one number: what is known beforehand adds to the sum of squares
    std::vector<double> variance, cumulative;      // (copies,) of the noise; weights, added up
    std::vector<double> cluster_inverses;          // (clusters, slots, p, p)
    std::vector<double> arm_inverses;              // (blocks of arms, slots, triangle, lanes)
    Tags cluster_tags, arm_tags;  // which copies they are of, for arms up to what differs between arms, -1 for none;
                                  // the last says which is next
    // Of the decision
    std::size_t copy = 0;
    double to_sd = 1.0;                          // the noise
    double arm_widths[2] = {};                   // of levels, of slopes
    std::vector<double> z, mean, along, spread;  // (p,), (clusters, p), (clusters,), (slots, p, p) covariances
    std::vector<Arm> arms, untouched;            // (arms with evidence,), (clusters,) for arms without
    std::vector<double> vector, product, own, old_own, message_now, work;  // scratch

    double* row(std::int32_t node) { return table + static_cast<std::size_t>(node) * columns; }
    double* block(std::size_t c) { return sums.data() + static_cast<std::size_t>(slot[c]) * entries * set.copies; }
    double sum(std::size_t c, std::size_t entry, std::size_t of) const {
        return sums[(static_cast<std::size_t>(slot[c]) * entries + entry) * set.copies + of];
    }
    void observe(double* to, double total, double count, const double* x) {
        to[0] += 1.0;
        to[1] += total * total / count;
        double* gram = to + 2;
        for (std::size_t i = 0; i < p; ++i)
            for (std::size_t j = 0; j <= i; ++j) *gram++ += count * (i ? x[i - 1] : 1.0) * (j ? x[j - 1] : 1.0);
        for (std::size_t i = 0; i < p; ++i) gram[i] += total * (i ? x[i - 1] : 1.0);
    }

    // Sets the scales of the features and the origin of the rewards by all evidence, in steps, so that they rarely
    // change. Returns whether they did.
    bool standardise(const double* root) {
        const double n = root[2];
        bool changed = false;
        const auto assign = [&changed](double& to, double value) {
            changed = changed || to != value;
            to = value;
        };
        const double *gram = root + 2, *moment = root + 2 + triangle;
        for (std::size_t j = 0; j < d; ++j) {
            const double total = gram[packed(j + 1, 0)], square = gram[packed(j + 1, j + 1)];
            const double within = n > 0.0 ? square - total * (total / n) : 0.0, fewer = std::max(n - 1.0, 0.5 * n);
            if (!(within > 1e-12 * square)) {
                assign(per_scale[j], 0.0), assign(centre[j], 0.0);
                continue;
            }
            const double size = power_near_root(within * (n + 3.0) / (fewer * fewer));
            assign(per_scale[j], 1.0 / size);
            assign(centre[j], 0.5 * size * std::rint(2.0 * (total / n) / size));
        }
        const double total = moment[0], square = root[1], within = n > 0.0 ? square - total * (total / n) : 0.0;
        if (!(n > 0.0))
            assign(origin, 0.0);
        else if (!(within > 1e-12 * square))
            assign(origin, static_cast<double>(static_cast<float>(std::fabs(total / n) < 1e30 ? total / n : 0.0)));
        else {
            const double size = set.origin_step * power_near_root(within / n);
            assign(origin, size * std::rint(total / n / size));
        }
        return changed;
    }

    // Reads the evidence of an arm, with what is known beforehand, standardised.
    void read(std::int32_t leaf, double* to) {
        const double *gram = row(leaf) + 2, *moment = gram + triangle;
        const double n = gram[0], total = moment[0] - origin * n;
        to[0] = n;
        to[triangle] = total;
        for (std::size_t i = 1; i < p; ++i) {
            const double x = gram[packed(i, 0)], off = x - centre[i - 1] * n;
            to[packed(i, 0)] = off * per_scale[i - 1];
            for (std::size_t j = 1; j <= i; ++j) {
                const double other = gram[packed(j, 0)];
                to[packed(i, j)] =
                    ((gram[packed(i, j)] - centre[j - 1] * x) - centre[i - 1] * (other - centre[j - 1] * n)) *
                    per_scale[i - 1] * per_scale[j - 1];
            }
            to[triangle + i] = ((moment[i] - origin * x) - centre[i - 1] * total) * per_scale[i - 1];
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
            const double count = plays[i ? 1 : 0], value = i == 0                   ? level
                                                           : per_scale[i - 1] > 0.0 ? theta[i] / per_scale[i - 1]
                                                                                    : 0.0;
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
        const double level = set.level_width[at], slope = set.slope_width[at];
        return {1.0 / (level * level), 1.0 / (slope * slope)};
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
            const std::int32_t parent = tree.parent[leaf];
            const std::size_t c = cluster(tree, parent);
            const bool shares = static_cast<std::size_t>(tree.n_children(parent)) < 2 * lanes;
            std::int32_t& next = next_place[shares ? above.size() : c];
            if (static_cast<std::size_t>(next) % lanes == 0) {
                next = static_cast<std::int32_t>(parent_of.size());
                parent_of.resize(parent_of.size() + lanes, c);
                of_arm.resize(of_arm.size() + entries * lanes, 0.0);
                arm_inverses.resize(arm_inverses.size() + n_slots * triangle * lanes);
                arm_tags.resize(arm_tags.size() + n_slots + 1, -1);
            }
            at = next++;
            parent_of[static_cast<std::size_t>(at)] = c;
            for (std::size_t higher = c; higher > 0; higher = above[higher]) ++members[higher];
        }
        return static_cast<std::size_t>(at);
    }
    double* of_place(std::size_t at) { return of_arm.data() + at / lanes * entries * lanes + at % lanes; }
    void put(std::size_t at, const double* from) {
        for (std::size_t e = 0; e < entries; ++e) of_place(at)[e * lanes] = from[e];
        forget_inverses(arm_tags, at / lanes);
    }
    void take(std::size_t at, double* to) {
        for (std::size_t e = 0; e < entries; ++e) to[e] = of_place(at)[e * lanes];
    }
    double stray_variance() const {
        const double width = set.stray_factor * set.level_width[copy];
        return width * width;
    }

    void open(std::size_t c) {
        if (slot[c] >= 0) return;
        slot[c] = static_cast<std::int32_t>(sums.size() / (entries * set.copies));
        sums.resize(sums.size() + entries * set.copies, 0.0);
        sent.resize(sent.size() + (entries + 2) * set.copies, 0.0);
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
        for (auto* part : {&z, &vector}) part->assign(p, 0.0);
        product.assign(p * p, 0.0);
        work.resize((2 * triangle + entries + 3 * p) * lanes);
        variance.resize(set.copies), cumulative.resize(set.copies);
    }

    void rebuild(const Tree& tree) {
        prepare(tree);
        standardise(row(0));
        slot.assign(above.size(), -1), members.assign(above.size(), 0);
        place.assign(static_cast<std::size_t>(tree.n_nodes), -1);
        next_place.assign(above.size() + 1, 0);
        sums.clear(), sent.clear(), of_arm.clear(), parent_of.clear(), arm_inverses.clear(), arm_tags.clear();
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
            send_cluster(c, parent);
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

    // Replaces the message of a cluster in the sums of the one above it.
    void send_cluster(std::size_t c, std::size_t parent) {
        const std::size_t k = set.copies, size = entries * k;
        message_now.assign(size + 2 * k, 0.0);
        double *now = message_now.data(), *then = sent.data() + static_cast<std::size_t>(slot[c]) * (size + 2 * k);
        in_vectors([&]() BANDITREE_INLINE {
            for (std::size_t from = 0; from < k; from += lanes)
                message(load(block(c) + from), height_of[c], from, 1.0, now + size, now + size + k, now + from, 1);
            replace(then, now, block(parent), size);
            replace(then + size, now + size, cluster_log.data(), k);
            replace(then + size + k, now + size + k, cluster_fit.data(), k);
        });
    }
    static BANDITREE_INLINE void replace(double* __restrict then, const double* __restrict now, double* __restrict in,
                                         std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) in[i] += now[i] - then[i], then[i] = now[i];
    }

    // The parts of the workspace: (entries,), (triangle,), (triangle,) and (3 p,), each for eight copies or arms at
    // once.
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
    BANDITREE_INLINE void message(const Eight* given, std::size_t height, std::size_t from, double sign, double* logs,
                                  double* fits, double* to, std::size_t repeats) {
        Eight l0, l1, log_part, fit;
        for (std::size_t l = 0; l < lanes; ++l) {
            const std::size_t k = height * set.copies + from + l;
            l0.set(l, 1.0 / (set.level_width[k] * set.level_width[k])),
                l1.set(l, 1.0 / (set.slope_width[k] * set.slope_width[k]));
        }
        Eight* product = scratch(2);  // P
        invert_eight(p, given, l0, l1, product, scratch(1), log_part, fit);
        const auto add = [&](std::size_t entry, const Eight& more) BANDITREE_INLINE {
            for (std::size_t r = 0; r < repeats; ++r) eight(to + entry * set.copies + r * set.kinds) += sign * more;
        };
        for (std::size_t i = 0; i < p; ++i) {
            const Eight li = i ? l1 : l0;
            Eight total = product[packed(i, 0)] * given[triangle];
            for (std::size_t j = 1; j < p; ++j)
                total += product[j <= i ? packed(i, j) : packed(j, i)] * given[triangle + j];
            add(triangle + i, li * total);
            for (std::size_t j = 0; j < i; ++j) add(packed(i, j), -1.0 * (li * product[packed(i, j)] * (j ? l1 : l0)));
            add(packed(i, i), li - li * product[packed(i, i)] * li);
        }
        eight(logs + from) += sign * log_part;
        eight(fits + from) += sign * fit;
    }

    BANDITREE_INLINE void believe_eight(std::size_t at, bool all) {
        const std::size_t first = at * lanes;
        const double v0 = arm_widths[0] * arm_widths[0], l0 = 1.0 / v0, l1 = 1.0 / (arm_widths[1] * arm_widths[1]);
        const double vs = stray_variance(), more = vs - v0, fewer = l0 - 1.0 / vs;
        const Eight* given = reinterpret_cast<const Eight*>(of_arm.data() + at * entries * lanes);
        double* kept;
        const bool known = find_inverse(arm_tags, arm_inverses, triangle * lanes, at, copy % set.kinds, kept);
        Eight* const inverse = reinterpret_cast<Eight*>(kept);  // P
        if (!known) {
            Eight log_part, fit;
            invert_eight(p, given, broadcast(l0), broadcast(l1), inverse, scratch(1), log_part, fit);
        }
        Eight* const f = scratch(3);
        Eight *const share = f + p, *const passed = share + p;  // P z, and w^-2 P z of arms that follow or do not
        const std::size_t* const of = parent_of.data() + first;
        for (std::size_t i = 0; i < p; ++i) {
            for (std::size_t l = 0; l < lanes; ++l) f[i].set(l, mean[of[l] * p + i]);
            f[i] = (i ? l1 : l0) * f[i] + given[triangle + i];
        }
        for (std::size_t i = 0; i < p; ++i) {
            Eight total = z[0] * inverse[packed(i, 0)];
            for (std::size_t j = 1; j <= i; ++j) total += z[j] * inverse[packed(i, j)];
            for (std::size_t j = i + 1; j < p; ++j) total += z[j] * inverse[packed(j, i)];
            share[i] = total;
        }
        Eight value{}, level{}, own_part{};
        for (std::size_t i = 0; i < p; ++i) {
            value += share[i] * f[i], level += inverse[packed(i, 0)] * f[i], own_part += z[i] * share[i];
            passed[i] = (i ? l1 : l0) * share[i];
        }
        double values[lanes], levels[lanes], own_parts[lanes], corners[lanes], shares[lanes], quadratics[lanes],
            odds[lanes], sds[lanes];
        std::memcpy(values, &value, sizeof values), std::memcpy(levels, &level, sizeof levels);
        std::memcpy(own_parts, &own_part, sizeof own_parts), std::memcpy(corners, inverse, sizeof corners);
        std::memcpy(shares, share, sizeof shares);
        quadratics_of(of, passed, quadratics);
        const double noise = variance[copy];
        for (std::size_t l = 0; l < lanes; ++l) {
            levels[l] -= mean[of[l] * p];  // how far the arm is apart from its cluster
            const double explained = 1.0 + more * (v0 - corners[l]) * (l0 * l0), g = levels[l] * l0;
            const double factor = 0.5 * (more * g * g / explained / noise - ln_lane(explained));
            odds[l] = set.coupling.odds * exp_lane(factor < largest_factor ? factor : largest_factor);
            sds[l] = to_sd * std::sqrt(own_parts[l] + quadratics[l]);
        }
        for (std::size_t l = 0; l < lanes; ++l)
            arms[first + l].following = {values[l], sds[l]}, arms[first + l].odds = odds[l];
        if (!all) return;
        double extra[lanes];
        for (std::size_t l = 0; l < lanes; ++l) extra[l] = fewer / (1.0 - fewer * corners[l]);
        for (std::size_t i = 0; i < p; ++i)
            for (std::size_t l = 0; l < lanes; ++l)
                passed[i].set(
                    l, (i ? l1 : 1.0 / vs) * (share[i].get(l) + extra[l] * shares[l] * inverse[packed(i, 0)].get(l)));
        quadratics_of(of, passed, quadratics);
        for (std::size_t l = 0; l < lanes; ++l)
            arms[first + l].alone = {
                values[l] + shares[l] * extra[l] * levels[l],
                to_sd * std::sqrt(own_parts[l] + extra[l] * shares[l] * shares[l] + quadratics[l])};
    }

    // v' S v for eight vectors v and the covariances S of their clusters. The vectors are overwritten.
    BANDITREE_INLINE void quadratics_of(const std::size_t* of, Eight* v, double* out) {
        if (std::all_of(of, of + lanes, [&](std::size_t c) { return c == of[0]; })) {
            const Eight total = form(of[0], v, scratch(1));
            std::memcpy(out, &total, sizeof total);
            return;
        }
        for (std::size_t l = 0; l < lanes; ++l) {
            for (std::size_t i = 0; i < p; ++i) vector[i] = v[i].get(l);
            out[l] = form(of[l], vector.data(), product.data());
        }
    }
    // The same for one cluster, and one vector or eight: up to a cluster whose covariance is known, v' S v = v' P v +
    // v' G S G' v.
    template <class Number>
    BANDITREE_INLINE Number form(std::size_t c, Number* __restrict v, Number* __restrict out) {
        Number total{};
        for (;; c = above[c]) {
            const Widths w = widths(c);
            if (slot[c] < 0) {
                for (std::size_t i = 0; i < p; ++i)
                    total += 1.0 / (i ? w.slope_precision : w.level_precision) * (v[i] * v[i]);
                continue;
            }
            const bool last = is_large(c);
            const double* __restrict matrix = last ? spread_of(c) : inverse_of_cluster(c);
            for (std::size_t i = 0; i < p; ++i) out[i] = matrix[i] * v[0];
            for (std::size_t j = 1; j < p; ++j)
                for (std::size_t i = 0; i < p; ++i) out[i] += matrix[j * p + i] * v[j];
            for (std::size_t i = 0; i < p; ++i) total += out[i] * v[i];
            if (last) return total;
            for (std::size_t i = 0; i < p; ++i) v[i] = (i ? w.slope_precision : w.level_precision) * out[i];
        }
    }
    // Whether a cluster has so many arms with evidence that its covariance is computed once for all of them.
    bool is_large(std::size_t c) const { return c == 0 || members[c] > 2 * p; }
    double* spread_of(std::size_t c) { return spread.data() + static_cast<std::size_t>(slot[c]) * p * p; }
    // Weighs the copies by how well they explain the evidence, and computes the noise of each.
    void weigh() {
        const double* root = row(0);
        const double n = root[2], rewards = root[0], total = root[2 + triangle], square = root[1];
        const double within = n > 0.0 ? std::max(square - total * (total / n), 0.0) : 0.0;
        const bool varies = within > 1e-12 * square || known_fit[0] > 0.0;
        const double centred = std::max(square - 2.0 * origin * total + origin * origin * n, 0.0) + known_fit[0];
        const double noise = rewards > 0.0 ? set.noise_share * within / rewards : 0.0, shape = 1.0 + 0.5 * rewards;
        in_vectors([&]() BANDITREE_INLINE {
            for (std::size_t from = 0; from < set.copies; from += lanes) {
                Eight l0, l1, log_part, fit;
                for (std::size_t l = 0; l < lanes; ++l)
                    l0.set(l, root_level_precision()), l1.set(l, root_slope_precision(from + l));
                decompose(p, load(block(0) + from), l0, l1, scratch(2), scratch(1), log_part, fit);
                for (std::size_t l = 0; l < lanes; ++l) {
                    const std::size_t k = from + l;
                    const double logs = log_part.get(l) + cluster_log[k] + arm_log[k % set.kinds];
                    const double rest = centred - fit.get(l) - cluster_fit[k] - arm_fit[k % set.kinds];
                    const double squares =
                        varies ? noise + 0.5 * (rest > 1e-12 * centred ? rest : 1e-12 * centred) : shape;
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
        if (!find_inverse(cluster_tags, cluster_inverses, p * p, c, copy, to)) {
            const Widths w = widths(c);
            invert(p, block(c) + copy, set.copies, w.level_precision, w.slope_precision, work.data(), to);
        }
        return to;
    }
    BANDITREE_INLINE bool find_inverse(Tags& tags, std::vector<double>& inverses, std::size_t size, std::size_t of,
                                       std::size_t view, double*& to) {
        std::int16_t* tag = tags.data() + of * (n_slots + 1);
        for (std::size_t i = 0; i < n_slots; ++i)
            if (tag[i] == static_cast<std::int16_t>(view)) {
                to = inverses.data() + (of * n_slots + i) * size;
                return true;
            }
        tag[n_slots] = static_cast<std::int16_t>((tag[n_slots] + 1) % static_cast<int>(n_slots));
        tag[tag[n_slots]] = static_cast<std::int16_t>(view);
        to = inverses.data() + (of * n_slots + static_cast<std::size_t>(tag[n_slots])) * size;
        return false;
    }
    // v' S v, with S the covariance of a cluster's coefficients in units of the noise.
    double quadratic(std::size_t c, const double* v) {
        double total = 0.0;
        std::copy_n(v, p, vector.data());
        in_vectors([&]() BANDITREE_INLINE { total = form(c, vector.data(), product.data()); });
        return total;
    }

    // Computes S of a cluster: P, and below the root P + G S G' with the S of the cluster above and G = P w^-2.
    BANDITREE_INLINE void spread_out(std::size_t c) {
        const double* const inverse = inverse_of_cluster(c);
        double* __restrict to = spread_of(c);
        std::copy_n(inverse, p * p, to);
        if (c == 0) return;
        const Widths w = widths(c);
        const auto precision = [&](std::size_t i)
                                   BANDITREE_INLINE { return i ? w.slope_precision : w.level_precision; };
        const double* const higher = spread_of(above[c]);
        double* __restrict half = product.data();  // w^-2 S G'
        std::fill_n(half, p * p, 0.0);
        for (std::size_t i = 0; i < p; ++i)
            for (std::size_t k = 0; k < p; ++k) {
                const double factor = precision(i) * higher[i * p + k] * precision(k);
                for (std::size_t j = 0; j < p; ++j) half[i * p + j] += factor * inverse[k * p + j];
            }
        for (std::size_t i = 0; i < p; ++i)
            for (std::size_t k = 0; k < p; ++k) {
                const double factor = inverse[i * p + k];
                for (std::size_t j = 0; j < p; ++j) to[i * p + j] += factor * half[k * p + j];
            }
    }
};

}  // namespace banditree
