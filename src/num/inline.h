// How every function of num/ that kernels call is declared: inlined and of internal linkage, so that no weak symbol
// exists which the linker could merge with a copy compiled for another instruction set.
#pragma once

#ifdef __CUDACC__
#define INVAR_INLINE static inline __host__ __device__
#else
#define INVAR_INLINE [[gnu::always_inline]] static inline
#endif
