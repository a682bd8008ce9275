// Thompson's choice among many children with Beta beliefs, touching only those that could win. Exact: the winner has
// the law of the argmax of one draw from every child. docs/exact-sampling.md has the derivations.
//
// Children with equal posterior (a, b) are exchangeable, so they are kept as one class of n. With m the highest draw so
// far, a child of the class beats it with probability P(theta > m). For a >= 1, b > 1 the logarithm of the density f is
// concave, so where its slope s at m is negative the tangent lies above it:
//     f(x) <= f(m) exp(s (x - m)) for x > m,  and  P(theta > m) <= p = f(m) (1 - exp(s (1 - m))) / (-s).
// Thinning: let each child be a candidate with probability p, a candidate propose x from the tangent's density, and x
// be accepted with probability f(x) / (f(m) exp(s (x - m))). Then a child shows a value in dx above m with probability
// f(x) dx, which is the law of its draw there, and else it is below m and does not matter. Candidates among n children
// come after geometric gaps, and nearly all classes have none.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "math.hpp"
#include "random.hpp"

namespace banditree {

class WideNode {
    // The highest draw so far, and what every class needs of it.
    struct Bar {
        double m, log, log_rest, inverse, inverse_rest;
        explicit Bar(double draw) { raise(draw); }
        void raise(double draw) {
            m = draw < 0x1p-1000 ? 0x1p-1000 : draw > 1.0 - 0x1p-53 ? 1.0 - 0x1p-53 : draw;
            log = ln(m);
            log_rest = ln(1.0 - m);
            inverse = 1.0 / m;
            inverse_rest = 1.0 / (1.0 - m);
        }
    };

    struct Class {
        double a_less, b_less;  // a - 1, b - 1
        double log_norm;        // ln B(a, b)
        double size;            // children in it
        std::int32_t slot;

        double log_density(const Bar& bar) const { return a_less * bar.log + b_less * bar.log_rest - log_norm; }
    };

  public:
    // Children are 0 .. k - 1, with posterior Beta(a, b), a, b >= 1.
    explicit WideNode(std::int32_t k) : slot_of(static_cast<std::size_t>(k)), place(slot_of), leaders(1, 0) {}

    // `before` is the class it comes from, if it does.
    void add(std::int32_t child, double a, double b, const Class* before = nullptr) {
        const std::int32_t slot = find_or_make(a, b, before);
        Slot& to = slots[static_cast<std::size_t>(slot)];
        slot_of[child] = slot;
        place[child] = static_cast<std::int32_t>(to.members.size());
        to.members.push_back(child);
        active[to.at].size += 1.0;
    }

    // The posterior of a child has changed.
    void move(std::int32_t child, double a, double b) {
        const std::int32_t left = slot_of[child];
        Slot& from = slots[static_cast<std::size_t>(left)];
        const Class old = active[from.at];
        const std::int32_t last = from.members.back();
        from.members[place[child]] = last;
        place[last] = place[child];
        from.members.pop_back();
        active[from.at].size -= 1.0;
        if (from.members.empty()) drop(left);
        add(child, a, b, &old);
    }

    // The child with the highest of one draw from each. The order does not matter to the law, but a high bar early saves
    // work: the last few winners are drawn first, one by one, and then the first class, which is that of the untouched
    // children as long as there are any, whose highest draw costs no more than one.
    std::int32_t pick(Stream& rng) {
        double highest = -1.0;
        std::int32_t best = 0;
        for (const std::int32_t child : leaders) {
            Class& here = class_of(slot_of[child]);
            here.size -= 1.0;  // drawn now, so not with its class
            const double draw = rng.beta(here.a_less + 1.0, here.b_less + 1.0);
            if (draw > highest) highest = draw, best = child;
        }
        Bar bar(highest);
        const std::size_t n = active.size();
        std::size_t winner = n;
        for (std::size_t at = 0; at < n; ++at)
            if (beats(active[at], bar, rng)) winner = at;
        for (const std::int32_t child : leaders) class_of(slot_of[child]).size += 1.0;
        if (winner < n) {
            const auto& members = slots[static_cast<std::size_t>(active[winner].slot)].members;
            do {  // members are alike, and any but a leader may have had the highest draw
                best = members[rng.integers(members.size())];
            } while (std::find(leaders.begin(), leaders.end(), best) != leaders.end());
            if (leaders.size() < most_leaders) leaders.push_back(best);
        }
        // The winner comes first; a new one pushes the oldest out.
        const auto at = std::find(leaders.begin(), leaders.end(), best);
        std::rotate(leaders.begin(), at == leaders.end() ? at - 1 : at, at == leaders.end() ? at : at + 1);
        leaders.front() = best;
        return best;
    }

  private:
    static constexpr std::size_t most_leaders = 4;

    struct Slot {
        std::size_t at = 0;  // place of its class among the active ones
        std::vector<std::int32_t> members;
    };

    // Whether the highest of a class's draws is above the bar, which it then raises.
    static bool beats(const Class& here, Bar& bar, Stream& rng) {
        const double slope = here.a_less * bar.inverse - here.b_less * bar.inverse_rest;
        if (slope < 0.0) {
            const double u = rng.random();  // no candidate if u >= n p, because P(some) <= n p
            if (u * -slope >= here.size * exp_above(here.log_density(bar))) return false;
            return tangent(here, slope, u, bar, rng);
        }
        return here.size > 0.0 && (here.b_less == 0.0 ? power(here, bar, rng) : plain(here, bar, rng));
    }

    // Above the mode: thinning under the tangent. u is uniform, of which is known only that candidates may follow from it.
    static bool tangent(const Class& here, double slope, double u, Bar& bar, Stream& rng) {
        bool won = false;
        for (double left = here.size; left > 0.0;) {
            const double reach = 1.0 - exp(slope * (1.0 - bar.m)), p = exp(here.log_density(bar)) / -slope * reach;
            if (p >= 1.0) {  // no use as a bound
                Class rest = here;
                rest.size = left;
                return plain(rest, bar, rng) || won;
            }
            left -= std::floor(ln_one_minus(u) / ln_one_minus(p)) + 1.0;  // the gap before the next candidate, and it
            if (left < 0.0) break;
            const double x = bar.m + ln_one_minus(rng.random() * reach) / slope;
            if (x > bar.m && x < 1.0) {
                const double below = here.a_less * (ln(x) - bar.log) + here.b_less * (ln(1.0 - x) - bar.log_rest);
                if (rng.random_open() < exp(below - slope * (x - bar.m))) {
                    bar.raise(x);
                    slope = here.a_less * bar.inverse - here.b_less * bar.inverse_rest;
                    won = true;
                }
            }
            u = rng.random();
        }
        return won;
    }

    // b = 1: P(theta <= x) = x^a, so the highest of n is U^(1 / (a n)). It is above m with probability 1 - m^(a n), which
    // is at most -a n ln m.
    static bool power(const Class& here, Bar& bar, Stream& rng) {
        const double n_a = here.size * (here.a_less + 1.0), u = rng.random();
        if (u >= -n_a * bar.log) return false;
        const double highest = exp(ln_one_minus(u) / n_a);
        if (highest <= bar.m) return false;
        bar.raise(highest);
        return true;
    }

    // Below the mode: one draw each.
    static bool plain(const Class& here, Bar& bar, Stream& rng) {
        double highest = 0.0;
        for (double i = 0.0; i < here.size; i += 1.0) {
            const double draw = rng.beta(here.a_less + 1.0, here.b_less + 1.0);
            if (draw > highest) highest = draw;
        }
        if (highest <= bar.m) return false;
        bar.raise(highest);
        return true;
    }

    static std::size_t hash(double a, double b) {
        const std::uint64_t mixed = to_bits(a) * 0x9e3779b97f4a7c15 ^ to_bits(b);
        return static_cast<std::size_t>((mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9 >> 20);
    }

    Class& class_of(std::int32_t slot) { return active[slots[static_cast<std::size_t>(slot)].at]; }
    const Class& class_of(std::int32_t slot) const { return active[slots[static_cast<std::size_t>(slot)].at]; }

    // Where (a, b) is in the table, or the empty place where it belongs: linear probing.
    std::size_t probe(double a_less, double b_less) const {
        std::size_t at = hash(a_less, b_less) & (table.size() - 1);
        while (table[at] >= 0 && !(class_of(table[at]).a_less == a_less && class_of(table[at]).b_less == b_less))
            at = (at + 1) & (table.size() - 1);
        return at;
    }

    std::int32_t find_or_make(double a, double b, const Class* before) {
        if (2 * (active.size() + 1) > table.size()) grow();
        const std::size_t at = probe(a - 1.0, b - 1.0);
        if (table[at] >= 0) return table[at];
        if (spare.empty()) {
            spare.push_back(static_cast<std::int32_t>(slots.size()));
            slots.emplace_back();
        }
        const std::int32_t slot = table[at] = spare.back();
        spare.pop_back();
        slots[static_cast<std::size_t>(slot)].at = active.size();
        active.push_back({a - 1.0, b - 1.0, log_beta(a, b, before), 0.0, slot});
        return slot;
    }

    // ln B(a, b). After one success B(a + 1, b) = B(a, b) a / (a + b), and so for b: one logarithm instead of three.
    static double log_beta(double a, double b, const Class* before) {
        if (before && a == before->a_less + 2.0 && b == before->b_less + 1.0)
            return before->log_norm + ln((a - 1.0) / (a - 1.0 + b));
        if (before && b == before->b_less + 2.0 && a == before->a_less + 1.0)
            return before->log_norm + ln((b - 1.0) / (b - 1.0 + a));
        return ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b);
    }

    void grow() {
        table.assign(table.empty() ? 64 : 2 * table.size(), -1);
        for (const Class& each : active) table[probe(each.a_less, each.b_less)] = each.slot;
    }

    void drop(std::int32_t slot) {
        // Close the gap in the table: entries behind it move up if it lies between their own place and where they are.
        const std::size_t mask = table.size() - 1;
        std::size_t gap = probe(class_of(slot).a_less, class_of(slot).b_less);
        for (std::size_t at = (gap + 1) & mask; table[at] >= 0; at = (at + 1) & mask) {
            const Class& each = class_of(table[at]);
            if (((at - hash(each.a_less, each.b_less)) & mask) < ((at - gap) & mask)) continue;
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

    std::vector<Class> active;                 // the classes that have children
    std::vector<Slot> slots;                   // their members; numbers stay while a class lives
    std::vector<std::int32_t> spare;           // free slots
    std::vector<std::int32_t> slot_of, place;  // (k,) the slot of each child, and its place among the members
    std::vector<std::int32_t> table;           // slots by (a, b), -1 where empty; its length is a power of two
    std::vector<std::int32_t> leaders;         // the last few winners, the latest first
};

}  // namespace banditree
