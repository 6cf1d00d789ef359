// The kernel rows of this build, and which of them this CPU can run.
#include <array>

#include "base/isa.h"
#include "kernels/forced_route.h"
#include "kernels/kernel.h"
#include "kernels/vendor_kernel.h"
#include "rows.inc"
#include "vendor_rows.inc"

namespace invar::ops {
namespace {

struct Runnable {
  std::array<std::string_view, std::size(kBuilt)> isa;
  size_t count = 0;
  Runnable() {
    for (std::string_view i : kBuilt)
      if (runs_here(i)) isa[count++] = i;
  }
};

int g_variant = 0;

}  // namespace

void force_variant(int variant) {
  g_variant = variant;
}
int variant() {
  return g_variant;
}

std::span<const Kernel* const> kernels() {
  return kRows;
}

std::span<const std::string_view> isas() {
  static const Runnable r;
  return {r.isa.data(), r.count};
}

const Kernel* find(std::string_view op, std::string_view isa) {
  for (const Kernel* k : kRows)
    if (k->op == op && (isa.empty() || k->isa == isa)) {
      if (isa == kCuda) return k;
      for (std::string_view can : isas())
        if (can == k->isa) return k;
    }
  return nullptr;
}

std::span<const VendorRow* const> vendor_rows() {
  return kVendorRows;
}

const VendorRow* find_vendor(std::string_view op, std::span<const OperandInfo> operands, OperationSet set,
                             bool gpu) {
  if (set == OperationSet::reproducible) return nullptr;
  for (const VendorRow* r : kVendorRows)
    if (r->kernel->op == op && r->keeps >= set && (r->kernel->enqueue != nullptr) == gpu &&
        r->serves(operands) && !r->library->version().empty())
      return r;
  return nullptr;
}

}  // namespace invar::ops
