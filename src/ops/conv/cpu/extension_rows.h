// The rows of an instruction set that its extensions have, too (cmake/isa.cmake).
#pragma once
#include "ops/conv/cpu/exact16.h"

namespace invar::ops {

extern const CpuKernel INVAR_ROW_OF(conv_exact16);
const CpuKernel INVAR_ROW_OF(conv_exact16) = {.op = "conv_exact16",
                                              .isa = INVAR_ISA,
                                              .phases = 2,
                                              .units = INVAR_ISA_NS::units_exact16,
                                              .run = INVAR_ISA_NS::run_exact16,
                                              .scratch_bytes = INVAR_ISA_NS::scratch_bytes_exact16,
                                              .shared_bytes = INVAR_ISA_NS::shared_bytes_exact16,
                                              .epilogue = true,
                                              .pack_bytes = INVAR_ISA_NS::pack_bytes_exact16,
                                              .pack = INVAR_ISA_NS::pack_exact16};

}  // namespace invar::ops
