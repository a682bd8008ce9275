// Groups the children of one node by their evidence: those with the same pair of numbers are equal for any rule, so
// they form one class. The work at a wide node then grows with the number of classes, not of children.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "numerics/math.hpp"

namespace banditree {

// Children of one node that may not be chosen now: those listed by their nodes, in order; the first child is node
// `first`.
struct Excluded {
    const std::vector<std::int32_t>* nodes = nullptr;
    std::int32_t first = 0;

    std::size_t size() const { return nodes ? nodes->size() : 0; }
    bool has(std::int32_t child) const {
        return nodes && std::binary_search(nodes->begin(), nodes->end(), first + child);
    }
    template <class Do>
    void each(Do&& act) const {
        for (std::size_t i = 0; i < size(); ++i) act((*nodes)[i] - first);
    }
    // The child of this rank among those that may be chosen.
    std::int32_t left(std::int32_t rank) const {
        each([&rank](std::int32_t gone) { rank += gone <= rank; });
        return rank;
    }
};

// `Kind` is what a rule needs to know about a class, made as Kind(x, y, the kind that its first member had before, or
// null).
template <class Kind>
class Classes {
  public:
    struct Class {
        double x, y;  // the evidence that its members share
        Kind kind;
        double size;  // number of members
        std::int32_t slot;
    };
    std::vector<Class> active;  // the classes that have members

    explicit Classes(std::int32_t k) : slot_of(static_cast<std::size_t>(k)), place(slot_of) {}

    void add(std::int32_t child, double x, double y, const Kind* before = nullptr) {
        const std::int32_t slot = find_or_make(x, y, before);
        Slot& to = slots[static_cast<std::size_t>(slot)];
        slot_of[child] = slot;
        place[child] = static_cast<std::int32_t>(to.members.size());
        to.members.push_back(child);
        active[to.at].size += 1.0;
    }

    // The evidence of a child has changed.
    void move(std::int32_t child, double x, double y) {
        const std::int32_t left = slot_of[child];
        Slot& from = slots[static_cast<std::size_t>(left)];
        const Kind before = active[from.at].kind;
        const std::int32_t last = from.members.back();
        from.members[place[child]] = last;
        place[last] = place[child];
        from.members.pop_back();
        active[from.at].size -= 1.0;
        if (from.members.empty()) drop(left);
        add(child, x, y, &before);
    }

    Class& of(std::int32_t child) { return in(slot_of[child]); }
    const std::vector<std::int32_t>& members(const Class& each) const {
        return slots[static_cast<std::size_t>(each.slot)].members;
    }

  private:
    struct Slot {
        std::size_t at = 0;  // position of its class among the active ones
        std::vector<std::int32_t> members;
    };
    std::vector<Slot> slots;                   // members; slot numbers stay while a class exists, and are then reused
    std::vector<std::int32_t> spare;           // free slots
    std::vector<std::int32_t> slot_of, place;  // (k,) the slot of each child, and its position among the members
    std::vector<std::int32_t> table;           // slots by (x, y), -1 for empty; the length is a power of two

    Class& in(std::int32_t slot) { return active[slots[static_cast<std::size_t>(slot)].at]; }

    static std::size_t hash(double x, double y) {
        const std::uint64_t mixed = to_bits(x) * 0x9e3779b97f4a7c15 ^ to_bits(y);
        return static_cast<std::size_t>((mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9 >> 20);
    }

    // The position of (x, y) in the table, or the empty one where it belongs: linear probing.
    std::size_t probe(double x, double y) {
        std::size_t at = hash(x, y) & (table.size() - 1);
        while (table[at] >= 0 && !(in(table[at]).x == x && in(table[at]).y == y)) at = (at + 1) & (table.size() - 1);
        return at;
    }

    std::int32_t find_or_make(double x, double y, const Kind* before) {
        if (2 * (active.size() + 1) > table.size()) grow();
        const std::size_t at = probe(x, y);
        if (table[at] >= 0) return table[at];
        if (spare.empty()) {
            spare.push_back(static_cast<std::int32_t>(slots.size()));
            slots.emplace_back();
        }
        const std::int32_t slot = table[at] = spare.back();
        spare.pop_back();
        slots[static_cast<std::size_t>(slot)].at = active.size();
        active.push_back({x, y, Kind(x, y, before), 0.0, slot});
        return slot;
    }

    void grow() {
        table.assign(table.empty() ? 64 : 2 * table.size(), -1);
        for (const Class& each : active) table[probe(each.x, each.y)] = each.slot;
    }

    void drop(std::int32_t slot) {
        // Close the gap in the table: entries behind it move up if it lies between their home position and their
        // present one.
        const std::size_t mask = table.size() - 1;
        std::size_t gap = probe(in(slot).x, in(slot).y);
        for (std::size_t at = (gap + 1) & mask; table[at] >= 0; at = (at + 1) & mask) {
            if (((at - hash(in(table[at]).x, in(table[at]).y)) & mask) < ((at - gap) & mask)) continue;
            table[gap] = table[at];
            gap = at;
        }
        table[gap] = -1;
        const std::size_t gone = slots[static_cast<std::size_t>(slot)].at;
        active[gone] = active.back();
        slots[static_cast<std::size_t>(active[gone].slot)].at = gone;
        active.pop_back();
        spare.push_back(slot);
    }
};

}  // namespace banditree
