// The rows of an instruction set that its extensions have, too (cmake/isa.cmake):
// attention_exact16.
#pragma once
#include "ops/attention/cpu/exact16.h"

namespace invar::ops {

extern const CpuKernel INVAR_ROW_OF(attention_exact16);
const CpuKernel INVAR_ROW_OF(attention_exact16) = {
    .op = "attention_exact16",
    .isa = INVAR_ISA,
    .phases = 3,
    .units = attention::units,
    .run = INVAR_ISA_NS::run_attention<INVAR_ISA_NS::ExactArithmetic>,
    .scratch_bytes = INVAR_ISA_NS::scratch_bytes_exact16,
    .shared_bytes = attention::shared_bytes,
    .state_bytes = INVAR_ISA_NS::state_bytes_exact16};

}  // namespace invar::ops
