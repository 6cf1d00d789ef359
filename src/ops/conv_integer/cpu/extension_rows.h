// The rows of an instruction set that its extensions have, too (cmake/isa.cmake).
#pragma once
#include "ops/conv_integer/cpu/tiles.h"

namespace invar::ops {

extern const CpuKernel INVAR_ROW_OF(conv_integer);
const CpuKernel INVAR_ROW_OF(conv_integer) = {.op = "conv_integer",
                                              .isa = INVAR_ISA,
                                              .phases = 2,
                                              .units = INVAR_ISA_NS::units_of_bytes,
                                              .run = INVAR_ISA_NS::run_bytes,
                                              .scratch_bytes = INVAR_ISA_NS::scratch_of_bytes,
                                              .shared_bytes = INVAR_ISA_NS::shared_of_bytes,
                                              .epilogue = true,
                                              .row_steps = true,
                                              .pack_bytes = INVAR_ISA_NS::pack_bytes_of_weights,
                                              .pack = INVAR_ISA_NS::pack_weights};

}  // namespace invar::ops
