// Chains of elementwise operations on floats (chains.cu).
#pragma once
#include "kernels/fusion/chain_kernels.h"

namespace invar::ops::INVAR_ISA_NS {

extern const ChainKernel chain_of_floats;

}  // namespace invar::ops::INVAR_ISA_NS
