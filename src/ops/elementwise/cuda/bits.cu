// The rows of operations on bits, comparisons and choices.
#define INVAR_KINDS INVAR_ELEMENTWISE_BITS
#include "ops/elementwise/cuda/kernels.cuh"
