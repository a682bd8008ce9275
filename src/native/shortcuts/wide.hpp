// Thompson's choice among many children with Beta beliefs, reading only those that could win. Exact: the winner has
// the law of the argmax of one draw from every child. docs/exact-sampling.md has the derivations.
//
// Children with equal posterior (a, b) are exchangeable, so they are kept as one class of n. With m the highest draw so
// far, a child of the class exceeds it with probability P(theta > m). For a >= 1, b > 1 the logarithm of the density f
// is concave, so where its slope s at m is negative the tangent lies above it:
//     f(x) <= f(m) exp(s (x - m)) for x > m,  and  P(theta > m) <= p = f(m) (1 - exp(s (1 - m))) / (-s).
// Thinning: let each child be a candidate with probability p, a candidate propose x from the tangent's density, and x
// be accepted with probability f(x) / (f(m) exp(s (x - m))). Then a child shows a value in dx above m with probability
// f(x) dx, which is the law of its draw there, and else it is below m and does not matter. Candidates among n children
// come after geometric gaps, and nearly all classes have none.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "numerics/math.hpp"
#include "shortcuts/classes.hpp"
#include "stream.hpp"

namespace banditree {

class WideThompson {
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

    // ln f(m) is a small difference of numbers near a + b: at this size its rounding error reaches 1e-6 (1e-8 at a
    // million).
    static constexpr double sharpest = 1e8;

    struct Kind {
        double a_less, b_less;  // a - 1, b - 1
        double log_norm;        // ln B(a, b)

        // After one success B(a + 1, b) = B(a, b) a / (a + b), and likewise for b: one logarithm instead of three.
        // Rounding errors accumulate, so the sum is recomputed every 4,096 rewards. From `sharpest` on, an infinite
        // density makes the bound useless, so that each child is drawn individually.
        Kind(double a, double b, const Kind* before) : a_less(a - 1.0), b_less(b - 1.0) {
            if (a + b > sharpest) {
                log_norm = -std::numeric_limits<double>::infinity();
                return;
            }
            const bool next = before && static_cast<std::int64_t>(a + b) % 4096 != 0;
            if (next && a_less == before->a_less + 1.0 && b_less == before->b_less)
                log_norm = before->log_norm + ln(a_less / (a_less + b));
            else if (next && b_less == before->b_less + 1.0 && a_less == before->a_less)
                log_norm = before->log_norm + ln(b_less / (b_less + a));
            else
                log_norm = ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b);
        }
        double log_density(const Bar& bar) const { return a_less * bar.log + b_less * bar.log_rest - log_norm; }
        double slope(const Bar& bar) const { return a_less * bar.inverse - b_less * bar.inverse_rest; }
        double draw(Stream& rng) const { return rng.beta(a_less + 1.0, b_less + 1.0); }
    };

    static constexpr std::size_t most_leaders = 4;
    Classes<Kind> children;
    std::vector<std::int32_t> leaders;  // the last few winners, the latest first

  public:
    // Children are 0 .. k - 1, with posterior Beta(a, b), a, b >= 1.
    explicit WideThompson(std::int32_t k) : children(k), leaders(1, 0) {}
    void add(std::int32_t child, double a, double b) { children.add(child, a, b); }
    void move(std::int32_t child, double a, double b) { children.move(child, a, b); }
    std::size_t n_classes() const { return children.active.size(); }

    // The child with the highest of one draw from each. The order does not change the distribution, but a high bar
    // early saves work: the last few winners are drawn first, one by one, and then the first class, which is that of
    // the untouched children as long as there are any: its highest draw costs no more than a single one. `gone` are the
    // children that may not win: they are left out of their classes for this pick. At least one remains.
    std::int32_t pick(Stream& rng, const Excluded& gone = {}) {
        double highest = -1.0;
        std::int32_t best = 0;
        gone.each([this](std::int32_t child) { children.of(child).size -= 1.0; });
        for (const std::int32_t child : leaders) {
            if (gone.has(child)) continue;
            children.of(child).size -= 1.0;  // drawn here, so not with its class
            const double draw = children.of(child).kind.draw(rng);
            if (draw > highest) highest = draw, best = child;
        }
        Bar bar(highest);
        const std::size_t n = children.active.size();
        std::size_t winner = n;
        for (std::size_t at = 0; at < n; ++at)
            if (beats(children.active[at].kind, children.active[at].size, bar, rng)) winner = at;
        for (const std::int32_t child : leaders)
            if (!gone.has(child)) children.of(child).size += 1.0;
        gone.each([this](std::int32_t child) { children.of(child).size += 1.0; });
        if (winner < n) {
            best = any_other(children.members(children.active[winner]), gone, rng);
            if (leaders.size() < most_leaders) leaders.push_back(best);
        }
        // The winner comes first; a new one pushes the oldest out.
        const auto at = std::find(leaders.begin(), leaders.end(), best);
        std::rotate(leaders.begin(), at == leaders.end() ? at - 1 : at, at == leaders.end() ? at : at + 1);
        leaders.front() = best;
        return best;
    }

  private:
    bool leads(std::int32_t child) const { return std::find(leaders.begin(), leaders.end(), child) != leaders.end(); }

    // Members of a class are equal: any may have won, except leaders, which were drawn separately, and those that are
    // gone.
    std::int32_t any_other(const std::vector<std::int32_t>& members, const Excluded& gone, Stream& rng) const {
        if (2 * gone.size() > members.size()) {  // rejection sampling may take long
            std::vector<std::int32_t> left;
            for (const std::int32_t child : members)
                if (!leads(child) && !gone.has(child)) left.push_back(child);
            return left[rng.integers(left.size())];
        }
        std::int32_t child;
        do child = members[rng.integers(members.size())];
        while (leads(child) || gone.has(child));
        return child;
    }

    // Whether the tangent falls enough between the bar and 1 to give a bound; if it is flatter, digits are lost.
    static bool falls(double slope, const Bar& bar) { return slope * (1.0 - bar.m) < -2e-6; }

    // Whether the highest draw of a class is above the bar; if so, raises the bar.
    static bool beats(const Kind& here, double n, Bar& bar, Stream& rng) {
        const double slope = here.slope(bar);
        if (falls(slope, bar)) {
            const double u = rng.random();  // no candidate if u >= n p, because P(some) <= n p
            if (u * -slope >= n * exp_above(here.log_density(bar))) return false;
            return thinned(here, n, slope, u, bar, rng);
        }
        return here.b_less == 0.0 ? power(here, n, bar, rng) : thinned(here, n, slope, 0.0, bar, rng);
    }

    // Goes through the n children: candidates under the tangent if it gives a bound, else one plain draw, which is
    // likely to raise the bar above the mode, where the tangent does. u decides the first gap.
    static bool thinned(const Kind& here, double n, double slope, double u, Bar& bar, Stream& rng) {
        bool won = false;
        for (double left = n; left > 0.0; u = rng.random()) {
            double x;
            const double reach = 1.0 - exp(std::min(slope * (1.0 - bar.m), 0.0));
            const double p = falls(slope, bar) ? exp(here.log_density(bar)) / -slope * reach : 1.0;
            if (p < 1.0) {
                left -= std::floor(ln_one_minus(u) / ln_one_minus(p)) + 1.0;  // skip the gap and the next candidate
                if (left < 0.0) break;
                x = bar.m + ln_one_minus(rng.random() * reach) / slope;
                if (!(x > bar.m && x < 1.0)) continue;
                const double below = here.a_less * (ln(x) - bar.log) + here.b_less * (ln(1.0 - x) - bar.log_rest);
                if (rng.random_open() >= exp(below - slope * (x - bar.m))) continue;
            } else {
                left -= 1.0;
                x = here.draw(rng);
                if (x <= bar.m) continue;
            }
            bar.raise(x);
            slope = here.slope(bar);
            won = true;
        }
        return won;
    }

    // b = 1: P(theta <= x) = x^a, so the highest of n is U^(1 / (a n)). It is above m with probability 1 - m^(a n),
    // which is at most -a n ln m.
    static bool power(const Kind& here, double n, Bar& bar, Stream& rng) {
        const double n_a = n * (here.a_less + 1.0), u = rng.random();
        if (u >= -n_a * bar.log) return false;  // also if n = 0
        const double highest = exp(ln_one_minus(u) / n_a);
        if (highest <= bar.m) return false;
        bar.raise(highest);
        return true;
    }
};

}  // namespace banditree
