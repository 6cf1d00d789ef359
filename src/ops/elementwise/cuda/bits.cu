// GPU kernels of bitwise operations, comparisons and selections.
#define INVAR_KINDS INVAR_ELEMENTWISE_BITS
#include "ops/elementwise/cuda/kernels.cuh"
