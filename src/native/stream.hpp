// The random stream of the native engine: xoshiro256++ (Blackman and Vigna, 2021) and exact samplers on top of it, the
// same bits on every machine. Exact means: in real arithmetic the law is the named one, with no approximation except
// the rounding to doubles. The caller checks parameters; NaN gives NaN and never an endless loop.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "numerics/math.hpp"

// Rare paths stay out of line, so that the common one is short enough to be inlined into the loop that draws.
#if defined(_MSC_VER)
#define BANDITREE_RARE __declspec(noinline)
#else
#define BANDITREE_RARE __attribute__((noinline))
#endif

namespace banditree {

// The ziggurat of Marsaglia and Tsang (2000): f(x) = exp(-x^2/2), x >= 0, is covered by 1024 layers of equal area v.
// Layer i >= 1 is the box [0, x_i] x [f(x_i), f(x_i+1)]; layer 0 is the strip under f(x_1) with the tail beyond x_1, as
// wide as if it were a box, x_0 = v / f(x_1). A point of layer i left of x_i+1 is certainly under the curve. `edge` is
// the one number that closes the pile at f = 1; v = edge f(edge) + the integral of f beyond it.
struct NormalTable {
    static constexpr std::size_t n = 1024;
    static constexpr double edge = 4.038849846109504522714423, area = 0.001226324646353088072885371;
    struct Layer {
        double scale;   // x_i / 2^63: from a signed 64-bit integer to a point of the layer
        double inside;  // x_i+1
    };
    std::array<Layer, n> layer;
    std::array<double, n + 1> height;  // f(x_i), where f(x_0) is never used

    NormalTable() {
        double x = area / exp(-0.5 * edge * edge), next = edge;
        height[0] = 0.0;
        for (std::size_t i = 0; i < n; ++i) {
            layer[i] = {x * 0x1p-63, next};
            height[i + 1] = next > 0.0 ? exp(-0.5 * next * next) : 1.0;
            x = next;
            next = i + 2 < n ? std::sqrt(-2.0 * ln(height[i + 1] + area / x)) : 0.0;
        }
    }
};
inline const NormalTable normal_table;

struct Stream {
    std::array<std::uint64_t, 4> state;  // (4,) not all zero

    // 64 random bits: the reference recurrence of xoshiro256++.
    std::uint64_t bits() {
        // A local copy, so that the state stays in registers when several words are drawn.
        std::uint64_t a = state[0], b = state[1], c = state[2], d = state[3];
        const std::uint64_t result = rotate(a + d, 23) + a, carry = b << 17;
        c ^= a;
        d ^= b;
        b ^= c;
        a ^= d;
        state = {a, b, c ^ carry, rotate(d, 45)};
        return result;
    }

    // Uniform on [0, 1): 53 bits.
    double random() { return unit(bits()); }

    // Uniform on (0, 1): the midpoints of 2^52 cells, for logarithms.
    double random_open() { return (static_cast<double>(static_cast<std::int64_t>(bits() >> 12)) + 0.5) * 0x1p-52; }

    // Uniform on {0, ..., k - 1}, k >= 1, unbiased (Lemire, 2019): the high word of bits * k, where a low word under
    // 2^64 mod k belongs to a result that has one value too many, and is drawn again.
    std::uint64_t integers(std::uint64_t k) {
        std::uint64_t low, high = multiply(bits(), k, low);
        if (low < k) {
            const std::uint64_t surplus = (0 - k) % k;
            while (low < surplus) high = multiply(bits(), k, low);
        }
        return high;
    }

    double standard_normal() { return normal(bits(), 1 << 10); }

    // -ln U: a second ziggurat would save a few nanoseconds of a draw that only priors below 1 need.
    double standard_exponential() { return -ln(random_open()); }

    double standard_gamma(double shape) {
        if (shape < 1.0) return exp(log_gamma_draw(shape));
        const double s = gamma_scale(shape), root = gamma_root(s), third = root * (1.0 / 3.0);
        return third * third * (root / s);
    }

    // The logarithm of a gamma draw. For shape < 1, G(a) = G(a + 1) U^(1/a) in law, and -ln U = E is exponential:
    // in logarithms nothing underflows, however small the shape.
    double log_gamma_draw(double shape) {
        if (shape < 1.0) return ln(standard_gamma(shape + 1.0)) - boost(shape);
        return ln(standard_gamma(shape));
    }

    double beta(double a, double b) {
        if (!plain(a, b)) return beta_small(a, b);
        if (a + b <= 2.0) return random();  // Beta(1, 1)
        return share(gamma_scale(a), gamma_scale(b));
    }

    // What draws from a Beta need: the scales of its two gammas. Worth caching, because a root is expensive. Betas that
    // are not drawn as a quotient of gammas have a mark instead: Beta(1, 1), which is uniform, and the extreme ones.
    struct Scales {
        static constexpr double uniform = -1.0, extreme = -2.0;
        double a, b;
    };
    static Scales beta_scales(double a, double b) {
        if (!plain(a, b)) return {Scales::extreme, 0.0};
        if (a + b <= 2.0) return {Scales::uniform, 0.0};
        return {gamma_scale(a), gamma_scale(b)};
    }

    // ln(p / (1 - p)) of a Beta draw p: ln G(a) - ln G(b). It distinguishes draws even where p itself rounds to 0 or 1.
    BANDITREE_RARE double beta_log_odds(double a, double b) {
        const double sa = gamma_scale(a < 1.0 ? a + 1.0 : a), sb = gamma_scale(b < 1.0 ? b + 1.0 : b);
        const Roots r = gamma_roots(sa, sb);
        // G(a) / G(b) = (r.a / r.b)^3 (sb / sa); past the first bound the cubes would overflow.
        double odds =
            a + b < widest ? ln(r.a * r.a * (r.a * sb) / (r.b * r.b * (r.b * sa))) : 3.0 * ln(r.a / r.b) + ln(sb / sa);
        if (a < 1.0) odds -= boost(a);
        if (b < 1.0) odds += boost(b);
        return odds;
    }

    // Draws m times from one Beta: numbers and state are the same as with m single calls.
    void beta_fill(double a, double b, double* out, std::size_t m) {
        const Scales s = beta_scales(a, b);
        if (s.a == Scales::extreme)
            for (std::size_t i = 0; i < m; ++i) out[i] = beta_small(a, b);
        else
            beta_fill(s, out, m);
    }
    void beta_fill(Scales s, double* out, std::size_t m) {  // not for extreme parameters
        if (s.a == Scales::uniform)
            for (std::size_t i = 0; i < m; ++i) out[i] = random();
        else
            for (std::size_t i = 0; i < m; ++i) out[i] = share(s.a, s.b);
    }

  private:
    static constexpr double widest = 1e75;  // a Beta this narrow is one double; the cubes of `share` still fit

    struct Roots {
        double a, b;
    };

    static std::uint64_t rotate(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

    static double unit(std::uint64_t word) {
        return static_cast<double>(static_cast<std::int64_t>(word >> 11)) * 0x1p-53;
    }

    static std::uint64_t multiply(std::uint64_t x, std::uint64_t y, std::uint64_t& low) {
#if defined(__SIZEOF_INT128__)
        __extension__ using wide = unsigned __int128;
        const wide product = static_cast<wide>(x) * y;
        low = static_cast<std::uint64_t>(product);
        return static_cast<std::uint64_t>(product >> 64);
#else  // the schoolbook product of 32-bit halves
        constexpr std::uint64_t half = 0xffffffff;
        const std::uint64_t x0 = x & half, x1 = x >> 32, y0 = y & half, y1 = y >> 32;
        const std::uint64_t middle = x1 * y0 + (x0 * y0 >> 32), cross = x0 * y1 + (middle & half);
        low = x * y;
        return x1 * y1 + (middle >> 32) + (cross >> 32);
#endif
    }

    // Whether a Beta is drawn as the plain quotient of two gammas. False for NaN.
    static bool plain(double a, double b) { return a >= 1.0 && b >= 1.0 && a + b < widest; }

    // The logistic function of the log odds, without overflow on either side.
    BANDITREE_RARE double beta_small(double a, double b) {
        const double odds = beta_log_odds(a, b), small = exp(odds < 0.0 ? odds : -odds);
        return (odds < 0.0 ? small : 1.0) / (1.0 + small);
    }

    // E / a, with a floor on a that keeps every log odds finite.
    double boost(double shape) { return standard_exponential() / (shape > 1e-306 ? shape : 1e-306); }

    // A word gives the normal its layer, bits 0 to 9, and its point: the bits above `mark`, a lone bit, as a signed
    // integer with the mark set and nothing below it. So the two signs mirror each other, and no bit serves twice: a
    // plain normal has its mark at bit 10, 53 bits for the point; the normal of a gamma leaves eleven more bits to
    // others.
    static std::size_t layer(std::uint64_t word) { return word & (NormalTable::n - 1); }
    static double point(std::uint64_t word, std::uint64_t mark, double scale) {
        return static_cast<double>(static_cast<std::int64_t>((word & (0 - 2 * mark)) | mark)) * scale;
    }

    double normal(std::uint64_t word, std::uint64_t mark) {
        const auto [scale, inside] = normal_table.layer[layer(word)];
        const double x = point(word, mark, scale);
        return std::fabs(x) < inside ? x : normal_outside(word, mark);
    }

    // The few draws (one in 234) outside the part of their layer that is certainly under the curve.
    BANDITREE_RARE double normal_outside(std::uint64_t word, std::uint64_t mark) {
        for (;; word = bits()) {
            const std::size_t i = layer(word);
            const double x = point(word, mark, normal_table.layer[i].scale);
            if (std::fabs(x) < normal_table.layer[i].inside) return x;
            if (i == 0) {  // the tail beyond the edge: Marsaglia (1964)
                double far, level;
                do {
                    far = -ln(random_open()) * (1.0 / NormalTable::edge);
                    level = -ln(random_open());
                } while (level + level < far * far);
                return x < 0.0 ? -(NormalTable::edge + far) : NormalTable::edge + far;
            }
            const double below = normal_table.height[i], above = normal_table.height[i + 1];
            if (below + (above - below) * random() < exp(-0.5 * x * x)) return x;
        }
    }

    // Gamma by Marsaglia and Tsang (2000), shape >= 1: with d = shape - 1/3 and x normal, d v with v = (1 +
    // x/sqrt(9d))^3 is a gamma draw if accepted with probability e^g, g = x^2/2 + d (1 - v + ln v). We keep s =
    // sqrt(9d) and the root s + x: then d v = (s + x)^3 / (9 s), and the quotient of two gammas needs no division but
    // its own.
    static double gamma_scale(double shape) { return 3.0 * std::sqrt(shape - 1.0 / 3.0); }

    // One word makes a trial: x from its layer bits and the 42 bits above bit 21, and in bits 10 to 20 the first eleven
    // binary digits of a uniform u; the rest of u is drawn in the few trials that these digits do not decide.
    static constexpr std::uint64_t gamma_mark = 1 << 21;
    static double first_digits(std::uint64_t word) { return static_cast<double>(static_cast<int>(word >> 10 & 0x7ff)); }

    // A sufficient condition for accepting a trial. With z = x/s the terms of g up to z^3 cancel, and
    //   -g = 3 d z^4 (1/4 - z/5 + z^2/6 - ...) <= (3/4) d z^4 / (1 + min(z, 0)) = x^4 / (12 s min(s, s + x)),
    // for z >= 0 because the terms alternate and fall, for -1 < z < 0 because all are positive and each 1/k <= 1/4.
    // As 1 + g <= e^g, a trial may be accepted whenever u > x^4 / (...), which holds for any u with those digits if it
    // holds for the least. One draw in 36 d fails this, and of those nearly all are rejected; the usual test,
    // 1 - 0.0331 x^4, fails one in ten. Negated, so that NaN passes. `digits` is u times 2^11.
    static bool surely(double s, double x, double digits) {
        const double square = x * x, root = s + x;
        return !(square * square >= (12.0 / 2048.0 * s) * (root < s ? root : s) * digits);
    }

    struct Trial {
        double root;
        bool settled;
    };

    static Trial gamma_trial(double s, std::uint64_t word) {
        const auto [scale, inside] = normal_table.layer[layer(word)];
        const double x = point(word, gamma_mark, scale);
        return {s + x, bool((std::fabs(x) < inside) & surely(s, x, first_digits(word)))};
    }

    double gamma_root(double s) {
        const std::uint64_t word = bits();
        const Trial trial = gamma_trial(s, word);
        return trial.settled ? trial.root : gamma_root_from(s, word);
    }

    // The complete algorithm, starting from its first word.
    BANDITREE_RARE double gamma_root_from(double s, std::uint64_t word) {
        for (;; word = bits()) {
            const double x = normal(word, gamma_mark), root = s + x, digits = first_digits(word) + random();
            if (surely(s, x, digits)) return root;
            if (root <= 0.0) continue;
            const double ratio = root / s, v = ratio * ratio * ratio, third = s * (1.0 / 3.0);
            if (ln(1.0 - digits * 0x1p-11) < 0.5 * x * x + third * third * (1.0 - v + ln(v))) return root;
        }
    }

    // Two roots at once, with one branch for all rare cases.
    Roots gamma_roots(double sa, double sb) {
        const std::uint64_t first = bits(), second = bits();
        const Trial a = gamma_trial(sa, first), b = gamma_trial(sb, second);
        if (a.settled & b.settled) return {a.root, b.root};
        return gamma_roots_from(sa, sb, first, second);
    }

    BANDITREE_RARE Roots gamma_roots_from(double sa, double sb, std::uint64_t first, std::uint64_t second) {
        const double a = gamma_root_from(sa, first);
        return {a, gamma_root_from(sb, second)};
    }

    // G(a) / (G(a) + G(b)), both over their common factor.
    double share(double sa, double sb) {
        const Roots r = gamma_roots(sa, sb);
        const double ours = r.a * r.a * (r.a * sb), theirs = r.b * r.b * (r.b * sa);
        return ours / (ours + theirs);
    }
};

}  // namespace banditree
