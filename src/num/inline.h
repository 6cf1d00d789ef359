// Declaration macros of num/ functions that kernels call: internal linkage, so that no weak symbol
// exists which the linker could merge with a copy compiled for another instruction set.
// INVAR_INTERNAL is for the few long ones. INVAR_TABLE is an array of constants at namespace scope,
// placed in device memory on a GPU.
#pragma once

#ifdef __CUDACC__
#define INVAR_INLINE static inline __host__ __device__
#define INVAR_INTERNAL [[maybe_unused]] static __host__ __device__
#define INVAR_TABLE static __device__ constexpr
#else
#define INVAR_INLINE [[gnu::always_inline]] static inline
#define INVAR_INTERNAL [[maybe_unused, gnu::noinline]] static
#define INVAR_TABLE constexpr
#endif

// Prefetches the 64 bytes at p into the L2 cache; nothing on a GPU, whose threads hide that latency
// themselves.
#ifdef __CUDACC__
#define INVAR_PREFETCH(p)
#else
#define INVAR_PREFETCH(p) __builtin_prefetch(p, 0, 2)
#endif

// A float operation must round to float (spec/formats.md formats.3). If a compiler keeps more
// precision (x87, GCC for s390x as some distributions configure it), the build stops here.
#ifdef __FLT_EVAL_METHOD__
static_assert(__FLT_EVAL_METHOD__ == 0, "this compiler evaluates float in a wider format");
#endif
