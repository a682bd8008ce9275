// Compiles loops twice: for any processor of its kind, and for one with 256-bit vectors, which is detected when the
// module is loaded. The results are the same bits: sums, products, quotients and roots are rounded equally in vectors
// of any width, and fused operations stay off.
#pragma once

#include <atomic>
#include <cstddef>

#if defined(__GNUC__)
#define BANDITREE_INLINE __attribute__((always_inline))
#else
#define BANDITREE_INLINE
#endif

#if defined(__GNUC__) && defined(__x86_64__) && !defined(_WIN32)  // Windows does not align the stack for them
#define BANDITREE_WIDER __attribute__((target("avx2")))
#define BANDITREE_HAS_WIDER (__builtin_cpu_init(), __builtin_cpu_supports("avx2") != 0)
#else
#define BANDITREE_WIDER
#define BANDITREE_HAS_WIDER false
#endif

// Unrolls small loops of constant length completely, including nested triangular ones, which compilers often do not.
#if defined(__clang__)
#define BANDITREE_UNROLL _Pragma("unroll 8")
#elif defined(__GNUC__)
#define BANDITREE_UNROLL _Pragma("GCC unroll 8")
#else
#define BANDITREE_UNROLL
#endif

// Says that no number which the next loop writes is read in another turn. Compilers find out for few arrays, and else
// give up.
#if defined(__clang__)
#define BANDITREE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define BANDITREE_INDEPENDENT _Pragma("GCC ivdep")
#else
#define BANDITREE_INDEPENDENT
#endif

namespace banditree {

// Four adjacent numbers, with any alignment.
#if defined(__GNUC__)
typedef double Four __attribute__((vector_size(32), aligned(8), may_alias));
BANDITREE_INLINE inline void raise_to_zero(Four& x) { x = x > 0.0 ? x : Four{}; }
#else
struct Four {
    double at[4];
    Four& operator+=(const Four& other) {
        for (int i = 0; i < 4; ++i) at[i] += other.at[i];
        return *this;
    }
    friend Four operator*(double factor, Four four) {
        for (double& x : four.at) x *= factor;
        return four;
    }
    friend Four operator+(Four a, const Four& b) { return a += b; }
    friend Four operator-(Four a, const Four& b) {
        for (int i = 0; i < 4; ++i) a.at[i] -= b.at[i];
        return a;
    }
    friend Four operator*(Four a, const Four& b) {
        for (int i = 0; i < 4; ++i) a.at[i] *= b.at[i];
        return a;
    }
    double& operator[](std::size_t i) { return at[i]; }
};
inline void raise_to_zero(Four& four) {
    for (double& x : four.at) x = x > 0.0 ? x : 0.0;
}
#endif
BANDITREE_INLINE inline void raise_to_zero(double& x) { x = x > 0.0 ? x : 0.0; }

// Eight adjacent numbers: so many that an addition need not wait for the one before.
struct Eight {
    Four low, high;
    static constexpr std::size_t size = 8;
    BANDITREE_INLINE double get(std::size_t i) { return i < 4 ? low[i] : high[i - 4]; }
    BANDITREE_INLINE void set(std::size_t i, double x) { (i < 4 ? low[i] : high[i - 4]) = x; }
    BANDITREE_INLINE void operator+=(const Eight& other) { low = low + other.low, high = high + other.high; }
    BANDITREE_INLINE void operator-=(const Eight& other) { low = low - other.low, high = high - other.high; }
};
BANDITREE_INLINE inline Eight operator+(const Eight& a, const Eight& b) { return {a.low + b.low, a.high + b.high}; }
BANDITREE_INLINE inline Eight operator-(const Eight& a, const Eight& b) { return {a.low - b.low, a.high - b.high}; }
BANDITREE_INLINE inline Eight operator*(const Eight& a, const Eight& b) { return {a.low * b.low, a.high * b.high}; }
BANDITREE_INLINE inline Eight operator*(double factor, const Eight& a) { return {factor * a.low, factor * a.high}; }

inline std::atomic<bool> wider_vectors{BANDITREE_HAS_WIDER};  // tests turn them off

template <class Loops>
BANDITREE_WIDER void in_wider_vectors(const Loops& loops) {
    loops();
}

// Runs `loops`, a function object marked BANDITREE_INLINE like everything it calls: only inlined code is compiled
// twice.
template <class Loops>
void in_vectors(const Loops& loops) {
    if (wider_vectors.load(std::memory_order_relaxed))
        in_wider_vectors(loops);
    else
        loops();
}

}  // namespace banditree
