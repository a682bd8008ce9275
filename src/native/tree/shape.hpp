// The structure of a tree as flat arrays, shared with Python. Twin of banditree/tree/shape.py.
#pragma once

#include <cstddef>
#include <cstdint>

namespace banditree {

struct Tree {
    const std::int32_t* start;    // (nodes + 1,) the children of node i are start[i] .. start[i + 1]
    const std::int32_t* parent;   // (nodes,) -1 for the root
    const std::int32_t* content;  // (nodes,) the arm of a leaf, negative for a cluster
    const std::int32_t* node_of;  // (arms,) the leaf of each arm
    std::int32_t n_arms, n_nodes;

    std::int32_t first(std::int32_t node) const { return start[node]; }
    std::int32_t n_children(std::int32_t node) const { return start[node + 1] - start[node]; }
};

// Whether a belief needs the rows of a batch one by one, and not their sums per arm alone.
template <class Rows>
inline constexpr bool learns_by_row = Rows::contextual;
// Whether a reward also moves the means of nodes that are not above its arm.
template <class Rows>
inline constexpr bool shares_means = false;

// m decisions made together at one node, and their contexts as prepared by the belief.
struct Decisions {
    std::size_t m;
    const double* prepared;  // (m, stride), or null
    std::size_t stride;

    const double* context(std::size_t j) const { return prepared + j * stride; }
};

}  // namespace banditree
