// Checks arrays from Python before pointers into them are used, so that nothing outside them is read or written.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <string>

#include "tree/shape.hpp"

namespace banditree {

using Ints = nanobind::ndarray<const std::int32_t, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
using Positions = nanobind::ndarray<const std::int64_t, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
using Doubles = nanobind::ndarray<const double, nanobind::c_contig, nanobind::device::cpu>;

template <class T>
bool aligned(const T* data) {
    return reinterpret_cast<std::uintptr_t>(data) % alignof(T) == 0;
}

inline void require(bool met, const char* what) {
    if (!met) throw nanobind::value_error(what);
}

// Returns the numbers of an array that has exactly n of them and is ready to use. Never a converted copy, which would
// be freed at once.
template <class T>
T* numbers(nanobind::handle array, std::size_t n, const char* what) {
    nanobind::ndarray<T, nanobind::c_contig, nanobind::device::cpu> cast;
    if (!nanobind::try_cast(array, cast, false)) throw nanobind::type_error(what);
    require(cast.size() == n && aligned(cast.data()), what);
    return cast.data();
}

// Returns an attribute of a Python object, which must be of this type.
template <class T>
T attribute(nanobind::handle owner, const char* name) {
    T value;
    if (!nanobind::try_cast(owner.attr(name), value))
        throw nanobind::type_error((std::string(name) + " is of a wrong type").c_str());
    return value;
}

// The same for a number from `low` to `high`.
inline double number(nanobind::handle owner, const char* name, double low, double high) {
    const double value = attribute<double>(owner, name);
    if (!(value >= low && value <= high)) throw nanobind::value_error((std::string(name) + " is out of range").c_str());
    return value;
}

// The same for an array of 32-bit ints.
inline Ints ints(nanobind::handle owner, const char* name) {
    Ints array;
    if (!nanobind::try_cast(owner.attr(name), array, false))
        throw nanobind::type_error("a tree needs arrays of 32-bit ints");
    require(aligned(array.data()), "a tree needs arrays that are aligned");
    return array;
}

// Requires that these arrays are a tree: children come after their node, parents and children agree, every leaf is an
// arm and every arm a leaf.
inline void require_tree(const Tree& tree) {
    const std::int32_t n_nodes = tree.n_nodes;
    const char* what = "start, parent, content and node_of are not those of a tree";
    require(tree.start[0] == 1 && tree.start[n_nodes] == n_nodes && tree.parent[0] == -1, what);
    std::int32_t n_leaves = 0, n_clusters = 0;
    for (std::int32_t node = 0; node < n_nodes; ++node) {
        const std::int32_t first = tree.start[node], end = tree.start[node + 1];
        require(first > node && first <= end && end <= n_nodes, what);
        for (std::int32_t child = first; child < end; ++child) require(tree.parent[child] == node, what);
        const std::int32_t arm = tree.content[node];
        if (first == end) {
            require(arm >= 0 && arm < tree.n_arms && tree.node_of[arm] == node, what);
            ++n_leaves;
        } else {
            require(arm == ~n_clusters++, what);
        }
    }
    require(n_leaves == tree.n_arms, what);
}

}  // namespace banditree
