// The rows of mul, rounded where they are made (rounded_products.cu).
#pragma once
#include "kernels/gpu_kernel.h"

namespace invar::ops::INVAR_ISA_NS {

bool can_round_products(std::span<const Call* const> calls);
void enqueue_rounded_products(std::span<const Call* const> calls, const RoundedRows& to, Stream stream);

}  // namespace invar::ops::INVAR_ISA_NS
