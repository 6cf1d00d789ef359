// The selection of the kernel that runs an operation, see kernel_selection.h.
#include "run/prepare/kernel_selection.h"

#include <algorithm>

namespace invar::run {

Status check_isa(const std::string& isa) {
  const std::span<const std::string_view> here = ops::isas_and_extensions();
  if (isa.empty() || std::find(here.begin(), here.end(), isa) != here.end()) return {};
  std::string have;
  for (std::string_view i : here) have += (have.empty() ? "" : ", ") + std::string(i);
  return bad_input("instruction set '" + isa + "' is not available here; this CPU and build have: " + have);
}

Result<ops::KernelRef> select_kernel(const std::string& op, const std::string& isa, bool gpu) {
  if (gpu) {
    if (const ops::GpuKernel* k = ops::find_gpu_kernel(op)) return ops::KernelRef(k);
    return not_covered("operation " + op +
                       " has no kernel for CUDA in this build: use the device cpu (the bits are the same)");
  }
  if (const ops::CpuKernel* k = ops::find_cpu_kernel(op, isa)) return ops::KernelRef(k);
  // An operation with a reference row alone (nothing to vectorise) runs it under every instruction
  // set.
  bool only_reference = true;
  for (const ops::CpuKernel* k : ops::cpu_kernels()) only_reference &= k->op != op || k->isa == "reference";
  if (const ops::CpuKernel* k = ops::find_cpu_kernel(op, "reference"); k && only_reference)
    return ops::KernelRef(k);
  return not_covered("operation " + op + " has no kernel" +
                     (isa.empty() ? "" : " for instruction set " + isa) + " in this build");
}

}  // namespace invar::run
