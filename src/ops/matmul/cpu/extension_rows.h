// The rows of an instruction set that its extensions have, too (cmake/isa.cmake): int8 products,
// and exact16 products of f32, bf16, f16 and quantized weights.
#pragma once
#include "ops/matmul/cpu/exact16.h"
#include "ops/matmul/cpu/exact16_grouped.h"
#include "ops/matmul/cpu/exact16_nbits.h"
#include "ops/matmul/cpu/integer.h"

namespace invar::ops {

extern const CpuKernel INVAR_ROW_OF(matmul_exact16), INVAR_ROW_OF(grouped_matmul_exact16),
    INVAR_ROW_OF(matmul_nbits_exact16), INVAR_ROW_OF(matmul_integer);
const CpuKernel INVAR_ROW_OF(matmul_exact16) = {.op = "matmul_exact16",
                                                .isa = INVAR_ISA,
                                                .phases = 2,
                                                .units = INVAR_ISA_NS::units_exact16,
                                                .run = INVAR_ISA_NS::run_exact16,
                                                .scratch_bytes = INVAR_ISA_NS::scratch_bytes_exact16,
                                                .shared_bytes = INVAR_ISA_NS::shared_bytes_exact16,
                                                .epilogue = true,
                                                .pack_bytes = INVAR_ISA_NS::pack_bytes_exact16,
                                                .pack = INVAR_ISA_NS::pack_exact16};
const CpuKernel INVAR_ROW_OF(grouped_matmul_exact16) = {
    .op = "grouped_matmul_exact16",
    .isa = INVAR_ISA,
    .phases = 2,
    .units = INVAR_ISA_NS::units_grouped_exact16,
    .run = INVAR_ISA_NS::run_grouped_exact16,
    .scratch_bytes = INVAR_ISA_NS::scratch_bytes_grouped_exact16,
    .shared_bytes = INVAR_ISA_NS::shared_bytes_grouped_exact16,
    .pack_bytes = INVAR_ISA_NS::pack_bytes_grouped_exact16,
    .pack = INVAR_ISA_NS::pack_exact16};
const CpuKernel INVAR_ROW_OF(matmul_nbits_exact16) = {
    .op = "matmul_nbits_exact16",
    .isa = INVAR_ISA,
    .phases = 2,
    .units = INVAR_ISA_NS::units_nbits_exact16,
    .run = INVAR_ISA_NS::run_nbits_exact16,
    .scratch_bytes = INVAR_ISA_NS::scratch_bytes_nbits_exact16,
    .shared_bytes = INVAR_ISA_NS::shared_bytes_nbits_exact16,
    .pack_bytes = INVAR_ISA_NS::pack_bytes_nbits_exact16,
    .pack = INVAR_ISA_NS::pack_nbits_exact16};
const CpuKernel INVAR_ROW_OF(matmul_integer) = {.op = "matmul_integer",
                                                .isa = INVAR_ISA,
                                                .phases = 2,
                                                .units = INVAR_ISA_NS::units_integer,
                                                .run = INVAR_ISA_NS::run_integer,
                                                .scratch_bytes = INVAR_ISA_NS::scratch_bytes_integer,
                                                .shared_bytes = INVAR_ISA_NS::shared_bytes_integer,
                                                .pack_bytes = INVAR_ISA_NS::pack_bytes_integer,
                                                .pack = INVAR_ISA_NS::pack_integer};

}  // namespace invar::ops
