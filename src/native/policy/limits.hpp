// Finds the children that a walk may step to when some arms are excluded, or only some are allowed. Twin of
// banditree/policy/limits.py.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "stream.hpp"
#include "tree/shape.hpp"

namespace banditree {

// Only the paths of the arms named are visited, never the whole tree. A cluster cannot be chosen once all its children
// are excluded, or until one of them is allowed.
struct Limits {
    using Children = std::vector<std::int32_t>;
    bool only;                                          // the arms named are those allowed, not those excluded
    std::vector<std::int32_t> arms;                     // the arms named, in order, each once
    std::unordered_map<std::int32_t, Children> listed;  // node -> its children that are allowed, or excluded, in order
    std::int32_t n_allowed;                             // number of arms that may be chosen

    Limits(const Tree& tree, std::vector<std::int32_t> named, bool only_) : only(only_), arms(std::move(named)) {
        std::sort(arms.begin(), arms.end());
        arms.erase(std::unique(arms.begin(), arms.end()), arms.end());
        for (const std::int32_t arm : arms) only ? allow(tree, tree.node_of[arm]) : exclude(tree, tree.node_of[arm]);
        for (auto& [node, children] : listed) std::sort(children.begin(), children.end());
        const auto n = static_cast<std::int32_t>(arms.size());
        n_allowed = only ? n : tree.n_arms - n;
    }

    // The children listed for a node, null if there is no limit here.
    const Children* at(std::int32_t node) const {
        const auto found = listed.find(node);
        return found == listed.end() ? nullptr : &found->second;
    }

    // The children of a node that may be chosen, in order.
    void allowed(const Tree& tree, std::int32_t node, Children& out) const {
        const Children* here = at(node);
        if (only) {
            out = here ? *here : Children{};
            return;
        }
        out.clear();
        for (std::int32_t child = tree.first(node); child < tree.start[node + 1]; ++child)
            if (!here || !std::binary_search(here->begin(), here->end(), child)) out.push_back(child);
    }

    // The allowed arm of this rank, in the order of positions.
    std::int32_t arm(std::int32_t rank) const {
        if (only) return arms[static_cast<std::size_t>(rank)];
        for (const std::int32_t gone : arms) {
            if (gone > rank) break;
            ++rank;
        }
        return rank;
    }

    // Draws an allowed arm, all equally likely.
    std::int32_t uniform(Stream& rng) const {
        return arm(static_cast<std::int32_t>(rng.integers(static_cast<std::uint64_t>(n_allowed))));
    }

    // Whether an arm may be chosen.
    bool allows(std::int32_t arm) const { return std::binary_search(arms.begin(), arms.end(), arm) == only; }

  private:
    void allow(const Tree& tree, std::int32_t node) {
        for (; tree.parent[node] >= 0; node = tree.parent[node]) {
            Children& beside = listed[tree.parent[node]];
            beside.push_back(node);
            if (beside.size() > 1) return;  // the path above is already marked
        }
    }
    void exclude(const Tree& tree, std::int32_t node) {
        for (; tree.parent[node] >= 0; node = tree.parent[node]) {
            const std::int32_t parent = tree.parent[node];
            Children& beside = listed[parent];
            beside.push_back(node);
            if (static_cast<std::int32_t>(beside.size()) < tree.n_children(parent)) return;
        }
    }
};

}  // namespace banditree
