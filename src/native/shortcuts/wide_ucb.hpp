// UCB's choice among many children with counts: children with the same plays and the same sum have the same index,
// which is computed once per class.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "shortcuts/classes.hpp"
#include "stream.hpp"

namespace banditree {

class WideUCB {
    struct Nothing {  // the index of a class needs only its two numbers and the clock
        Nothing(double, double, const Nothing*) {}
    };
    Classes<Nothing> children;
    std::vector<std::size_t> best;  // scratch: the classes that tie for the highest index

  public:
    explicit WideUCB(std::int32_t k) : children(k) {}
    void add(std::int32_t child, double count, double total) { children.add(child, count, total); }
    void move(std::int32_t child, double count, double total) { children.move(child, count, total); }
    std::size_t n_classes() const { return children.active.size(); }

    // The child with the highest total / count + width / sqrt(count), with untried children first; ties at random.
    // `gone` are the children that may not win. At least one remains.
    std::int32_t pick(double width, Stream& rng, const Excluded& gone = {}) {
        gone.each([this](std::int32_t child) { children.of(child).size -= 1.0; });
        const bool some_gone = gone.size() > 0;
        double highest = -std::numeric_limits<double>::infinity(), n_ties = 0.0;
        best.clear();
        for (std::size_t at = 0; at < children.active.size(); ++at) {
            const auto& here = children.active[at];
            const double spread = 1.0 / std::sqrt(here.x),
                         index = here.x > 0.0 ? here.y / here.x + width * spread : spread;
            if (index < highest || (some_gone && here.size == 0.0)) continue;  // or all its members are gone
            if (index > highest) best.clear(), n_ties = 0.0, highest = index;
            best.push_back(at);
            n_ties += here.size;
        }
        gone.each([this](std::int32_t child) { children.of(child).size += 1.0; });
        std::uint64_t skip = n_ties > 1.0 ? rng.integers(static_cast<std::uint64_t>(n_ties)) : 0;
        for (const std::size_t at : best) {
            const auto& members = children.members(children.active[at]);
            if (!some_gone) {
                if (skip < members.size()) return members[skip];
                skip -= members.size();
                continue;
            }
            for (const std::int32_t child : members)
                if (!gone.has(child) && skip-- == 0) return child;
        }
        return 0;  // not reached: the best classes have as many members as there are ties
    }
};

}  // namespace banditree
