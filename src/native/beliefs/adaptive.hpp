// Beliefs that learn how far to trust the tree. Twin of banditree/beliefs/adaptive.py, which explains them; here the
// sums of the clusters are kept up to date along the path of each reward.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "beliefs/adaptive_kinds.hpp"
#include "beliefs/draws.hpp"
#include "numerics/lanes.hpp"
#include "numerics/vectors.hpp"
#include "stream.hpp"
#include "tree/shape.hpp"

namespace banditree {

// The arrays of AdaptiveRows.settings().
struct AdaptiveSettings {
    const double* height;         // (nodes,)
    const double* concentration;  // (heights, copies)
    const double* steps;          // (copies,)
    std::size_t copies, n_steps;  // the concentrations of arms repeat after so many copies
    double fall;                  // of the log prior of the copies
    Coupling coupling;
};

// Arms of one cluster that something is known about, next to each other and in one place, because it is read at every
// decision. The arms of a cluster are in one block until these are too many; then all its blocks are halved.
struct Block {
    static constexpr std::size_t size = 32;  // at most
    std::uint64_t changed = 0;               // see AdaptiveRows::changes
    std::vector<std::int32_t> leaves;        // in the order of the tree
    std::vector<double> plays, totals;       // of each
    std::vector<double> as_stray, at_best;   // and their `Logs`
    Seen seen(std::size_t i) const { return {plays[i], totals[i]}; }
    std::array<std::vector<double>*, 4> columns() { return {&plays, &totals, &as_stray, &at_best}; }
    std::size_t place(std::int32_t leaf) const {
        return static_cast<std::size_t>(std::lower_bound(leaves.begin(), leaves.end(), leaf) - leaves.begin());
    }
    bool has(std::int32_t leaf) const { return std::binary_search(leaves.begin(), leaves.end(), leaf); }
    void insert(std::int32_t leaf) {
        const auto at = static_cast<std::ptrdiff_t>(place(leaf));
        leaves.insert(leaves.begin() + at, leaf);
        for (auto* column : columns()) column->insert(column->begin() + at, 0.0);
    }
    void clear() {
        leaves.clear();
        for (auto* column : columns()) column->clear();
    }
};

template <class Kind>
struct AdaptiveRows {
    static constexpr double low = Kind::low, high = Kind::high;
    static constexpr bool contextual = false;
    static constexpr double largest_factor = 50.0;     // LARGEST_FACTOR in copies.py
    static constexpr std::size_t largest_batch = 256;  // rewards that are learned one by one
    Kind kind;
    AdaptiveSettings set;
    std::vector<Block> blocks;              // of arms that something is known about, in the order of the tree
    std::int32_t n_known = 0;               // number of these arms
    std::uint64_t changes = 0;              // counts changes of what is known of arms, other than the leader
    std::uint64_t all_changed = 0;          // the last change of all arms
    std::vector<std::uint64_t> changed;     // (clusters,) the last change of an arm among the children
    std::vector<std::size_t> first_block;   // (clusters,) where its blocks begin
    std::vector<std::size_t> end_block;     // (clusters,) and where those in use end
    std::vector<std::int32_t> block_width;  // (clusters,) how many children, known or not, a block is for
    std::vector<std::int32_t> n_touched;    // (clusters,) number of them among the children
    std::vector<std::int32_t> n_leaves;     // (clusters,) number of arms among the children
    std::vector<std::int32_t> node_of;      // (clusters,)
    std::vector<double> mean, variance;     // (clusters,) what the copy drawn last believes
    Stray stray_prior{};                    // what it expects of arms that do not follow their cluster
    std::size_t copy = 0;                   // the one drawn last
    std::int32_t leader = -1;  // the leaf of the arm that was played most, the first of several; -1 for none

    AdaptiveRows(Kind kind_, AdaptiveSettings set_) : kind(kind_), set(set_) {}

    std::size_t dim() const { return 0; }
    void reset() { stale = true; }
    void rescale(std::int32_t node, double by) { kind.rescale(node, by); }
    const Coupling& coupling() const { return set.coupling; }
    std::size_t copies() const { return set.copies; }
    double weight(std::size_t copy) const {
        return (cumulative[copy] - (copy ? cumulative[copy - 1] : 0.0)) / cumulative.back();
    }
    std::uint64_t version = 0;  // changes with the evidence, once it has been weighed
    Seen seen(std::int32_t leaf) const { return kind.seen(leaf); }

    // Makes the sums again if all evidence was changed.
    void bring_up_to_date(const Tree& tree) {
        if (stale) rebuild(tree);
        if (weighed) return;
        if constexpr (Kind::learned) kind.estimate_noise();
        if (kind.note_level()) {
            for (Block& block : blocks)
                for (std::size_t i = 0; i < block.leaves.size(); ++i) remember(block, i);
            all_changed = ++changes;
        }
        weigh();
    }

    // Gets ready for a decision.
    void begin(const Tree& tree, const double*, Stream& rng) {
        bring_up_to_date(tree);
        draw_copy(tree, rng);
    }

    // What an arm draws from if it follows its cluster, and if it does not; and the odds that it does not.
    Drawn following(const Tree& tree, std::int32_t leaf) const {
        const std::size_t c = cluster(tree, tree.parent[leaf]);
        return kind.drawn(believed(k_arms, seen(leaf), mean[c], variance[c]));
    }
    Drawn alone(const Tree&, std::int32_t leaf) const { return kind.drawn(as_stray(seen(leaf))); }
    double odds(const Tree& tree, std::int32_t leaf) const { return set.coupling.odds * factor(tree, leaf); }

    // What is believed about a node with this concentration around its parent, which has the mean `around` with the
    // variance `spread`.
    static BANDITREE_INLINE Moments believed(double k, const Seen& known, double around, double spread) {
        const double per_play = 1.0 / (k + known.plays), share = k * per_play;
        return {share * around + known.total * per_play, 1.0 / (k + known.plays + Kind::one) + share * share * spread};
    }
    // And about an arm that does not follow it: its own rewards, and what strays are expected to be.
    BANDITREE_INLINE Moments as_stray(const Seen& known) const {
        const double n = stray_prior.plays + known.plays;
        return {(stray_prior.plays * stray_prior.mean + known.total) / n, 1.0 / (n + Kind::one)};
    }
    // How much likelier its rewards are then.
    double factor(const Tree& tree, std::int32_t leaf) const {
        return factor(kind.logs(leaf), seen(leaf), kind.around(mean[cluster(tree, tree.parent[leaf])], k_arms));
    }
    BANDITREE_INLINE double factor(const Logs& logs, const Seen& known, const Around& around) const {
        const double own = kind.log_factor(logs, known, k_arms, around, stray_prior),
                     log = known.plays > 0.0 ? own : 0.0;
        return exp_lane(log < largest_factor ? log : largest_factor);
    }

    Group group(const Tree& tree, std::int32_t leaf) const {
        const Seen known = seen(leaf);
        return {tree.parent[leaf], known.plays, known.total};
    }
    // What a copy draws arms from.
    void describe(const Tree& tree, const double*, std::size_t copy, const std::vector<std::int32_t>& leaves,
                  Draws& to) {
        take_copy(tree, copy);
        const std::size_t n = leaves.size();
        to.resize(n);
        for (auto& column : columns) column.resize(n);
        arounds.resize(above.size());
        for (std::size_t c = 0; c < above.size(); ++c) arounds[c] = kind.around(mean[c], k_arms);
        double *plays = columns[0].data(), *total = columns[1].data(), *means = columns[2].data(),
               *variances = columns[3].data();
        double *as_own = columns[4].data(), *at_best = columns[5].data(), *log_success = columns[6].data(),
               *log_failure = columns[7].data();
        double* near = columns[8].data();
        for (std::size_t i = 0; i < n; ++i) {
            const Seen known = seen(leaves[i]);
            const Logs logs = kind.logs(leaves[i]);
            const std::size_t parent = cluster(tree, tree.parent[leaves[i]]);
            plays[i] = known.plays, total[i] = known.total, means[i] = mean[parent], variances[i] = variance[parent];
            as_own[i] = logs.alone, at_best[i] = logs.best;
            log_success[i] = arounds[parent].log_success, log_failure[i] = arounds[parent].log_failure,
            near[i] = arounds[parent].mean;
        }
        in_vectors([&]() BANDITREE_INLINE {
            double* const __restrict x = to.mean.data(), * const __restrict y = to.sd.data();
            double* const __restrict odds_of = to.odds.data();
            double* const __restrict stray_x = to.stray_mean.data(), * const __restrict stray_y = to.stray_sd.data();
            BANDITREE_INDEPENDENT
            for (std::size_t i = 0; i < n; ++i) {
                const Seen known{plays[i], total[i]};
                const Drawn follows = kind.drawn(believed(k_arms, known, means[i], variances[i])),
                            strayed = kind.drawn(as_stray(known));
                x[i] = follows.x, y[i] = follows.y, stray_x[i] = strayed.x, stray_y[i] = strayed.y;
                odds_of[i] = set.coupling.odds * factor({as_own[i], at_best[i]}, known,
                                                        {near[i], 0.0, 0.0, log_success[i], log_failure[i]});
            }
        });
    }

    // Learns `count` rewards with sum `total` of the arm at the end of a path.
    void learn(const Tree& tree, const std::vector<std::int32_t>& path, double total, double count,
               const double* = nullptr) {
        const std::int32_t leaf = path.back();
        const Seen then = seen(leaf);
        if constexpr (Kind::learned) kind.weigh_noise(leaf, -1.0);
        for (const std::int32_t node : path) kind.observe(node, total, count);
        weighed = false;
        if (stale) return;  // all is made anew before it is used
        if constexpr (Kind::learned) kind.weigh_noise(leaf, 1.0);
        const Seen now = seen(leaf);
        if (!(now.plays > 0.0)) return;
        kind.add_level(now, 1.0), kind.add_level(then, -1.0);
        note(tree, leaf, now);
        std::size_t parent = cluster(tree, path[path.size() - 2]);
        bool sent = senders[parent] > 0;
        totals(parent, old_n, old_t);
        send_arm(parent, then, now);
        for (std::size_t i = path.size() - 2; i > 0; --i) {
            totals(parent, new_n, new_t);
            parent = cluster(tree, path[i - 1]);
            const bool parent_sent = senders[parent] > 0;
            totals(parent, before_n, before_t);
            send(parent, path[i], sent, true);
            sent = parent_sent;
            old_n.swap(before_n), old_t.swap(before_t);
        }
    }

    // Draws a copy by weight, and computes what it believes about the clusters.
    void draw_copy(const Tree& tree, Stream& rng) {
        const double u = rng.random() * cumulative.back();
        const auto found =
            static_cast<std::size_t>(std::upper_bound(cumulative.begin(), cumulative.end(), u) - cumulative.begin());
        take_copy(tree, std::min(found, copies() - 1));
    }

    // Computes what a copy believes about the clusters, and expects of strays.
    void take_copy(const Tree&, std::size_t taken) {
        copy = taken;
        k_arms = set.concentration[copy];
        const Seen root = kind.before(0);
        const double n_root = root.plays + sum(0, 0, copy);
        mean[0] = (root.total + sum(0, 1, copy)) / n_root;
        variance[0] = 1.0 / (n_root + Kind::one);
        for (std::size_t c = 1; c < above.size(); ++c) {
            const double k = set.concentration[height_of[c] * copies() + copy];
            const Moments of = believed(k, {sum(c, 0, copy), sum(c, 1, copy)}, mean[above[c]], variance[above[c]]);
            mean[c] = of.mean, variance[c] = of.variance;
        }
        double spread = 0.0;  // of arms around the root
        for (std::size_t h = 0; h < std::max<std::size_t>(height_of[0], 1); ++h)
            spread += 1.0 / set.concentration[h * copies() + copy];
        stray_prior = kind.stray(mean[0], spread);
    }

    double concentration() const { return k_arms; }  // of arms, in the copy drawn last
    std::size_t cluster(const Tree& tree, std::int32_t node) const {
        return static_cast<std::size_t>(~tree.content[node]);
    }

  private:
    bool stale = true, weighed = false;
    double k_arms = 0.0;
    std::vector<std::size_t> above, height_of;  // (clusters,) the cluster above, and the height
    std::vector<std::int32_t> slot, senders;    // (clusters,) where the sums are, -1 for none; children with a message
    std::vector<std::int32_t> inner_senders;    // (clusters,) those of them that are clusters, or known beforehand
    // By slot: what child clusters say, six sums per copy. w is what a message counts, x its mean, and z the same as
    // `off_centre` gives it; the last two are the log likelihood, of normal rewards without what is to be divided by
    // their variance, and that. And what arms say, six sums per step, see `Kind::add_arm`.
    std::vector<double> sums;      // (slots, [w, w x, w z^2, ln w, likelihood, apart], copies)
    std::vector<double> arm_sums;  // (slots, 6, steps)
    std::vector<double> log_likelihood, apart, weights, cumulative;
    std::array<std::vector<double>, 9> columns;                          // scratch: (arms,)
    std::vector<Around> arounds;                                         // scratch: (clusters,)
    std::vector<std::size_t> moved;                                      // scratch: steps whose fit starts anew
    std::vector<double> log_odds, moved_k, fits;                         // scratch: (steps,), (moved,), (5, moved)
    std::vector<double> old_n, old_t, new_n, new_t, before_n, before_t;  // scratch: (copies,)

    double* block(std::size_t c) { return sums.data() + static_cast<std::size_t>(slot[c]) * 6 * copies(); }
    double* arm_block(std::size_t c) { return arm_sums.data() + static_cast<std::size_t>(slot[c]) * 6 * set.n_steps; }
    // What all children of a cluster say: the sum of w, or of w x.
    double sum(std::size_t c, std::size_t which, std::size_t copy) const {
        if (slot[c] < 0) return 0.0;
        const std::size_t row = static_cast<std::size_t>(slot[c]) * 6 + which;
        return sums[row * copies() + copy] + arm_sums[row * set.n_steps + copy % set.n_steps];
    }
    void totals(std::size_t c, std::vector<double>& n, std::vector<double>& t) const {
        if (slot[c] < 0) return;
        const double* of = sums.data() + static_cast<std::size_t>(slot[c]) * 6 * copies();
        const double* arms = arm_sums.data() + static_cast<std::size_t>(slot[c]) * 6 * set.n_steps;
        for (std::size_t first = 0; first < copies(); first += set.n_steps)
            for (std::size_t j = 0; j < set.n_steps; ++j) {
                n[first + j] = of[first + j] + arms[j];
                t[first + j] = of[first + j + copies()] + arms[j + set.n_steps];
            }
    }
    static BANDITREE_INLINE double square(double x) { return x * x; }

    Block& block_of(const Tree& tree, std::int32_t leaf) {
        const std::int32_t parent = tree.parent[leaf];
        const std::size_t c = cluster(tree, parent);
        return blocks[first_block[c] + static_cast<std::size_t>((leaf - tree.first(parent)) / block_width[c])];
    }
    // Makes each block of a cluster cover this many children.
    void use_blocks(const Tree& tree, std::size_t c, std::int32_t width) {
        block_width[c] = width;
        end_block[c] = first_block[c] + static_cast<std::size_t>((tree.n_children(node_of[c]) + width - 1) / width);
    }
    void halve_blocks(const Tree& tree, std::size_t c) {
        const auto at = blocks.begin() + static_cast<std::ptrdiff_t>(first_block[c]);
        std::vector<Block> then(at, at + static_cast<std::ptrdiff_t>(end_block[c] - first_block[c]));
        use_blocks(tree, c, block_width[c] / 2);
        ++changes;
        for (std::size_t b = first_block[c]; b < end_block[c]; ++b) blocks[b].clear(), blocks[b].changed = changes;
        for (Block& old : then)
            for (std::size_t i = 0; i < old.leaves.size(); ++i) {
                Block& to = block_of(tree, old.leaves[i]);
                to.leaves.push_back(old.leaves[i]);
                for (std::size_t j = 0; j < 4; ++j) to.columns()[j]->push_back((*old.columns()[j])[i]);
            }
    }
    void remember(Block& block, std::size_t i) {
        kind.remember(block.leaves[i], block.seen(i));
        const Logs logs = kind.logs(block.leaves[i]);
        block.as_stray[i] = logs.alone, block.at_best[i] = logs.best;
    }
    void note(const Tree& tree, std::int32_t leaf, const Seen& now) {
        const std::size_t c = cluster(tree, tree.parent[leaf]);
        if (!block_of(tree, leaf).has(leaf)) {
            while (block_of(tree, leaf).leaves.size() == Block::size) halve_blocks(tree, c);
            block_of(tree, leaf).insert(leaf);
            ++n_touched[c];
            ++n_known;
        }
        Block& block = block_of(tree, leaf);
        const std::size_t i = block.place(leaf);
        block.plays[i] = now.plays, block.totals[i] = now.total;
        remember(block, i);
        const double most = leader < 0 ? 0.0 : seen(leader).plays;
        const std::int32_t led = leader;
        if (now.plays > most || (now.plays == most && leaf < leader)) leader = leaf;
        if (leaf != led) mark(tree, leaf);
        if (leader != led && led >= 0) mark(tree, led);
    }
    void mark(const Tree& tree, std::int32_t leaf) {
        block_of(tree, leaf).changed = changed[cluster(tree, tree.parent[leaf])] = ++changes;
    }

    void open(std::size_t c) {
        if (slot[c] >= 0) return;
        slot[c] = static_cast<std::int32_t>(sums.size() / (6 * copies()));
        sums.resize(sums.size() + 6 * copies(), 0.0);
        arm_sums.resize(arm_sums.size() + 6 * set.n_steps, 0.0);
        if (Kind::by_fit)
            std::fill_n(arm_block(c) + 3 * set.n_steps, set.n_steps, std::numeric_limits<double>::quiet_NaN());
    }

    void prepare(const Tree& tree) {
        if (!above.empty()) return;
        for (std::int32_t node = 0; node < tree.n_nodes; ++node) {
            if (tree.content[node] >= 0) continue;
            above.push_back(node == 0 ? 0 : cluster(tree, tree.parent[node]));
            height_of.push_back(static_cast<std::size_t>(set.height[node]));
            node_of.push_back(node);
            n_leaves.push_back(0);
            first_block.push_back(blocks.size());
            blocks.resize(blocks.size() +
                          (static_cast<std::size_t>(tree.n_children(node)) + Block::size - 1) / Block::size);
        }
        for (std::int32_t arm = 0; arm < tree.n_arms; ++arm) ++n_leaves[cluster(tree, tree.parent[tree.node_of[arm]])];
        end_block.resize(above.size()), block_width.resize(above.size());
        changed.assign(above.size(), 0);
        mean.resize(above.size()), variance.resize(above.size());
        for (auto* scratch : {&old_n, &old_t, &new_n, &new_t, &before_n, &before_t}) scratch->resize(copies());
    }

    void rebuild(const Tree& tree) {
        prepare(tree);
        slot.assign(above.size(), -1), senders.assign(above.size(), 0), inner_senders.assign(above.size(), 0),
            n_touched.assign(above.size(), 0);
        sums.clear(), arm_sums.clear();
        for (Block& block : blocks) block.clear();
        for (std::size_t c = 0; c < above.size(); ++c) {
            std::int32_t width = Block::size;
            while (width < tree.n_children(node_of[c])) width *= 2;
            use_blocks(tree, c, width);
        }
        n_known = 0;
        all_changed = ++changes;
        log_likelihood.assign(copies(), 0.0), apart.assign(copies(), 0.0);
        leader = -1;
        kind.forget_level();
        for (std::int32_t node = 0; node < tree.n_nodes; ++node)
            kind.add_level(tree.content[node] >= 0 ? seen(node) : kind.before(node), 1.0);
        kind.note_level();
        if constexpr (Kind::learned) {
            kind.forget_noise();
            for (std::int32_t arm = 0; arm < tree.n_arms; ++arm) kind.weigh_noise(tree.node_of[arm], 1.0);
        }
        for (std::int32_t node = 1; node < tree.n_nodes; ++node) {  // what is known of clusters beforehand is a message
            const Seen known = tree.content[node] < 0 ? kind.before(node) : Seen{0.0, 0.0};
            if (!(known.plays > 0.0)) continue;
            const std::size_t c = cluster(tree, node);
            open(c);
            const double x = kind.off_centre(known.total / known.plays);
            const double parts[] = {known.plays, known.total, known.plays * (x * x), ln(known.plays)};
            for (std::size_t i = 0; i < 4; ++i) std::fill_n(block(c) + i * copies(), copies(), parts[i]);
            senders[c] = inner_senders[c] = 1;
        }
        for (std::int32_t node = tree.n_nodes - 1; node > 0; --node) {
            const std::size_t parent = cluster(tree, tree.parent[node]);
            if (tree.content[node] >= 0) {
                const Seen known = seen(node);
                if (!(known.plays > 0.0)) continue;
                note(tree, node, known);
                open(parent);
                ++senders[parent];
                in_vectors([&]() BANDITREE_INLINE {
                    kind.add_arm(known, 1.0, set.concentration, set.n_steps, arm_block(parent));
                });
            } else {
                const std::size_t c = cluster(tree, node);
                if (senders[c] == 0) continue;
                totals(c, new_n, new_t);
                send(parent, node, false, false);
            }
        }
        for (std::size_t c = 0; c < above.size(); ++c) {
            if (slot[c] < 0) continue;
            fit_arms(c);
            in_vectors([&]() BANDITREE_INLINE { explain(c); });
        }
        stale = weighed = false;
    }

    // Replaces the message of an arm, if it had any evidence.
    void send_arm(std::size_t parent, const Seen& then, const Seen& now) {
        const bool sent = then.plays > 0.0;
        open(parent);
        senders[parent] += sent ? 0 : 1;
        double* to = arm_block(parent);
        const double* k = set.concentration;
        in_vectors([&]() BANDITREE_INLINE {
            kind.add_arm(now, 1.0, k, set.n_steps, to);
            if (sent) kind.add_arm(then, -1.0, k, set.n_steps, to);
            if constexpr (Kind::by_fit) kind.replace_fit(then, now, k, set.n_steps, to);
        });
        fit_arms(parent);
        in_vectors([&]() BANDITREE_INLINE { explain(parent); });
    }

    // Weighs the arms of a cluster around the log odds nearest to its mean. Where these have changed, a fit starts
    // anew: for few of the concentrations at a time, so that only those are computed.
    void fit_arms(std::size_t c) {
        if constexpr (Kind::by_fit) {
            if (senders[c] == inner_senders[c]) return;
            const std::size_t n = set.n_steps;
            double* to = arm_block(c);
            log_odds.resize(n);
            in_vectors([&]() BANDITREE_INLINE { kind.find_odds(to, n, log_odds.data()); });
            moved.clear();
            for (std::size_t j = 0; j < n; ++j)
                if (kind.moves_on(to, log_odds[j], j, n)) moved.push_back(j);
            if (!moved.empty()) fit_again(c);
            in_vectors([&]() BANDITREE_INLINE { kind.make_good(log_odds.data(), n, to); });
        }
    }
    void fit_again(std::size_t c) {
        const std::size_t n = set.n_steps, m = moved.size();
        moved_k.resize(m), fits.resize(5 * m);
        for (std::size_t i = 0; i < m; ++i) {
            moved_k[i] = set.concentration[moved[i]];
            kind.clear_fit(moved_k[i], log_odds[moved[i]], i, m, fits.data());
        }
        in_vectors([&]() BANDITREE_INLINE {
            for (std::size_t b = first_block[c]; b < end_block[c]; ++b)
                for (std::size_t i = 0; i < blocks[b].leaves.size(); ++i)
                    kind.add_fit(blocks[b].seen(i), 1.0, moved_k.data(), m, fits.data());
        });
        for (std::size_t i = 0; i < m; ++i)
            for (std::size_t row = 2; row < 5; ++row) arm_block(c)[moved[i] + row * n] = fits[i + row * m];
    }

    // Replaces the message of a cluster, if it has `sent` one, by the one from new_n and new_t.
    void send(std::size_t parent, std::int32_t node, bool sent, bool explained) {
        open(parent);
        senders[parent] += sent ? 0 : 1;
        inner_senders[parent] += sent ? 0 : 1;
        const double* k = set.concentration + static_cast<std::size_t>(set.height[node]) * copies();
        double* to = block(parent);
        in_vectors([&]() BANDITREE_INLINE {
            add_message(new_n.data(), new_t.data(), k, 1.0, to);
            if (sent) add_message(old_n.data(), old_t.data(), k, -1.0, to);
            if (explained) explain(parent);
        });
    }

    // Adds the message of a child with evidence n and t, or with the sign -1 takes it away.
    BANDITREE_INLINE void add_message(const double* __restrict n, const double* __restrict t,
                                      const double* __restrict k, double sign, double* __restrict to) const {
        const std::size_t n_copies = copies();
        for (std::size_t c = 0; c < n_copies; ++c) {
            const double w = n[c] * (k[c] + Kind::one) / (n[c] + k[c] + Kind::one), x = t[c] / n[c];
            to[c] += sign * w;
            to[c + n_copies] += sign * (w * x);
            to[c + 2 * n_copies] += sign * (w * square(kind.off_centre(x)));
            to[c + 3 * n_copies] += sign * ln_lane(w);
        }
    }

    // Recomputes the likelihood of a cluster's messages, and with it the weights of the copies. Without child clusters
    // it repeats with the concentrations of the arms.
    BANDITREE_INLINE void explain(std::size_t cluster) {
        if (senders[cluster] < 2) return;
        const std::size_t n_copies = copies(), n_steps = set.n_steps,
                          n_different = inner_senders[cluster] > 0 ? n_copies : n_steps;
        const double others = (Kind::by_fit ? inner_senders[cluster] : senders[cluster]) - 1;
        double* __restrict sums_of = block(cluster);
        const double* __restrict arms = arm_block(cluster);
        double* __restrict likelihood = log_likelihood.data();
        double* __restrict distance = apart.data();
        for (std::size_t first = 0; first < n_different; first += n_steps)
            for (std::size_t j = 0; j < n_steps; ++j) {
                const std::size_t c = first + j;
                const double w = sums_of[c] + arms[j], x = sums_of[c + n_copies] + arms[j + n_steps];
                const double of_arms =
                    Kind::by_fit ? square(arms[j + n_steps]) / (arms[j] > 0.0 ? arms[j] : 1.0) : arms[j + 2 * n_steps];
                const double gap = sums_of[c + 2 * n_copies] + of_arms - w * square(kind.off_centre(x / w));
                double logs = sums_of[c + 3 * n_copies] - ln_lane(w), away = gap > 0.0 ? gap : 0.0;
                if constexpr (Kind::by_fit) {
                    const double v = kind.reward_variance((x + 0.5) / (w + 1.0));
                    logs += 2.0 * arms[j + 5 * n_steps] - others * ln_lane(v) - away / v;
                    away = 0.0;
                } else {
                    logs += arms[j + 3 * n_steps];
                }
                likelihood[c] += 0.5 * logs - sums_of[c + 4 * n_copies];
                sums_of[c + 4 * n_copies] = 0.5 * logs;
                distance[c] += 0.5 * away - sums_of[c + 5 * n_copies];
                sums_of[c + 5 * n_copies] = 0.5 * away;
            }
        for (std::size_t c = n_different; c < n_copies; ++c) {
            likelihood[c] += sums_of[c - n_steps + 4 * n_copies] - sums_of[c + 4 * n_copies];
            sums_of[c + 4 * n_copies] = sums_of[c - n_steps + 4 * n_copies];
            distance[c] += sums_of[c - n_steps + 5 * n_copies] - sums_of[c + 5 * n_copies];
            sums_of[c + 5 * n_copies] = sums_of[c - n_steps + 5 * n_copies];
        }
    }

    void weigh() {
        weights.resize(copies()), cumulative.resize(copies());
        const double shift = kind.shift(), per_variance = 1.0 / kind.noise();
        for (std::size_t c = 0; c < copies(); ++c) {
            weights[c] = -set.fall * std::max(set.steps[c] + shift, 0.0) + log_likelihood[c] - apart[c] * per_variance;
        }
        const double top = *std::max_element(weights.begin(), weights.end());
        in_vectors([&]() BANDITREE_INLINE {
            double* const __restrict of = weights.data();
            for (std::size_t c = 0, n = copies(); c < n; ++c) of[c] = exp_lane(of[c] - top);
        });
        std::partial_sum(weights.begin(), weights.end(), cumulative.begin());
        weighed = true;
        ++version;
    }
};

}  // namespace banditree
