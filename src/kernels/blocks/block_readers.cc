// Which kernels read blocks of formats, see block_readers.h.
#include "kernels/blocks/block_readers.h"

namespace invar::ops {

static const RegisteredBlockReader* last_reader = nullptr;

RegisteredBlockReader::RegisteredBlockReader(std::string_view op_of, ReadsBlocks function, On where)
    : op(op_of), reads(function), on(where), next(last_reader) {
  last_reader = this;
}

static bool reads_blocks(std::string_view op, RegisteredBlockReader::On on, const View& constant, int i,
                         const Attributes& attrs) {
  for (const RegisteredBlockReader* r = last_reader; r; r = r->next)
    if (r->op == op && r->on == on) return r->reads(constant, i, attrs);
  return false;
}

bool reads_blocks(const CpuKernel& kernel, const View& constant, int i, const Attributes& attrs) {
  if (kernel.isa == "reference" || find_cpu_kernel(kernel.op, kernel.isa) != &kernel) return false;
  return reads_blocks(kernel.op, RegisteredBlockReader::On::cpu, constant, i, attrs);
}
bool reads_blocks(const GpuKernel& kernel, const View& constant, int i, const Attributes& attrs) {
  if (kernel.isa != kCuda) return false;  // of a library
  return reads_blocks(kernel.op, RegisteredBlockReader::On::gpu, constant, i, attrs);
}

}  // namespace invar::ops
