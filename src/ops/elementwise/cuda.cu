// GPU kernels of operations with several operands or element types.
#define INVAR_KINDS INVAR_ELEMENTWISE_NUMBERS
#include "ops/elementwise/cuda/kernels.cuh"
