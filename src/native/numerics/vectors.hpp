// Compiles loops twice: for any processor of its kind, and for one with 256-bit vectors, which is detected when the module is
// loaded. The results are the same bits: sums, products, quotients and roots are rounded equally in vectors of any width, and
// fused operations stay off.
#pragma once

#include <atomic>

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
};
inline void raise_to_zero(Four& four) {
    for (double& x : four.at) x = x > 0.0 ? x : 0.0;
}
#endif
BANDITREE_INLINE inline void raise_to_zero(double& x) { x = x > 0.0 ? x : 0.0; }

inline std::atomic<bool> wider_vectors{BANDITREE_HAS_WIDER};  // tests turn them off

template <class Loops>
BANDITREE_WIDER void in_wider_vectors(const Loops& loops) {
    loops();
}

// Runs `loops`, a function object marked BANDITREE_INLINE like everything it calls: only inlined code is compiled twice.
template <class Loops>
void in_vectors(const Loops& loops) {
    if (wider_vectors.load(std::memory_order_relaxed))
        in_wider_vectors(loops);
    else
        loops();
}

}  // namespace banditree
