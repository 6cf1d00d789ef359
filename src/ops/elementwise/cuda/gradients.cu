// GPU kernels of the gradients of activations.
#define INVAR_KINDS INVAR_ELEMENTWISE_GRADIENTS
#include "ops/elementwise/cuda/kernels.cuh"
