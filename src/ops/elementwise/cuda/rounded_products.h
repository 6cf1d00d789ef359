// The rows of mul, rounded where they are made (rounded_products.cu).
#pragma once
#include "kernels/fusion/join_kernels.h"

namespace invar::ops::INVAR_ISA_NS {

bool can_round_products(std::span<const Call* const> calls);
void enqueue_rounded_products(std::span<const Call* const> calls, const RoundedRows& to, Stream stream);

// Joins of ranks that are rounded (rounded_joins.cu): of a part as it is, of a product, of an
// activation and the product with it.
extern const RoundedJoin join_of_part, join_of_product, join_of_silu, join_of_gelu, join_of_gelu_tanh,
    join_of_relu, join_of_sigmoid;

}  // namespace invar::ops::INVAR_ISA_NS
