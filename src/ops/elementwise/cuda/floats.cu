// GPU kernels of operations with one f32 operand.
#define INVAR_KINDS INVAR_ELEMENTWISE_FLOATS
#include "ops/elementwise/cuda/kernels.cuh"
