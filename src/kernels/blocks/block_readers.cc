// Which kernels read blocks of formats, see block_readers.h.
#include "kernels/blocks/block_readers.h"

namespace invar::ops {

static const RegisteredBlockReader* last_reader = nullptr;

RegisteredBlockReader::RegisteredBlockReader(std::string_view op_of, ReadsBlocks function)
    : op(op_of), reads(function), next(last_reader) {
  last_reader = this;
}

bool reads_blocks(const CpuKernel& kernel, const View& constant, int i, const Attributes& attrs) {
  if (kernel.isa == "reference" || find_cpu_kernel(kernel.op, kernel.isa) != &kernel) return false;
  for (const RegisteredBlockReader* r = last_reader; r; r = r->next)
    if (r->op == kernel.op) return r->reads(constant, i, attrs);
  return false;
}

}  // namespace invar::ops
