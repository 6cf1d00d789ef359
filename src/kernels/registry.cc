// The contracts and kernels of this build, and which kernels this CPU can run.
#include <algorithm>
#include <array>
#include <vector>

#include "base/isa.h"
#include "kernels/forced_route.h"
#include "kernels/registry.h"
#include "kernels/vendor/vendor_kernel.h"
#include "rows.inc"
#include "vendor_rows.inc"

namespace invar::ops {
namespace {

template <size_t N>
struct Runnable {
  std::array<std::string_view, N> isa;
  size_t count = 0;
  explicit Runnable(const std::string_view (&built)[N]) {
    for (std::string_view i : built)
      if (!i.empty() && runs_here(i)) isa[count++] = i;
  }
  std::span<const std::string_view> all() const { return {isa.data(), count}; }
};

int g_variant = 0;

}  // namespace

void force_variant(int variant) {
  g_variant = variant;
}
int variant() {
  return g_variant;
}

const OpContract* contract_of(std::string_view op) {
  for (const OpContract* c : kContracts)
    if (c->op == op) return c;
  return nullptr;
}

std::span<const CpuKernel* const> cpu_kernels() {
  return kCpuKernels;
}
std::span<const GpuKernel* const> gpu_kernels() {
  return {kGpuKernels, std::size(kGpuKernels) - 1};  // nullptr ends the list, which may be empty
}

std::span<const std::string_view> isas() {
  static const Runnable r(kBuilt);
  return r.all();
}
std::span<const std::string_view> isas_and_extensions() {
  static const std::vector<std::string_view> all = [] {
    const Runnable extensions(kExtensions);
    std::vector<std::string_view> list(isas().begin(), isas().end());
    list.insert(list.end(), extensions.all().begin(), extensions.all().end());
    return list;
  }();
  return all;
}
static bool can_run(std::string_view isa) {
  return std::ranges::find(isas_and_extensions(), isa) != isas_and_extensions().end();
}

const CpuKernel* find_cpu_kernel(std::string_view op, std::string_view isa) {
  for (const CpuKernel* k : kCpuKernels)
    if (k->op == op && (isa.empty() || k->isa == isa) && can_run(k->isa)) return k;
  const size_t base = isa.find('_');
  if (base != isa.npos && can_run(isa)) return find_cpu_kernel(op, isa.substr(0, base));
  return nullptr;
}

const GpuKernel* find_gpu_kernel(std::string_view op) {
  for (const GpuKernel* k : gpu_kernels())
    if (k->op == op) return k;
  return nullptr;
}

namespace {
constinit const RegisteredGroup* groups = nullptr;  // the first of a list
}
RegisteredGroup::RegisteredGroup(const GpuGroup& one) : group(one), next(groups) {
  groups = this;
}
const GpuGroup* find_group(std::string_view first) {
  for (const RegisteredGroup* r = groups; r; r = r->next)
    if (r->group.ops[0] == first) return &r->group;
  return nullptr;
}

std::vector<KernelRef> runnable_kernels(std::string_view op, bool gpu) {
  std::vector<KernelRef> list;
  const GpuKernel* const on_gpu = gpu ? find_gpu_kernel(op) : nullptr;
  for (const CpuKernel* k : kCpuKernels) {
    if (k->op != op || !can_run(k->isa)) continue;
    if (on_gpu && k->isa == isas().back()) list.push_back(on_gpu);
    list.push_back(k);
  }
  return list;
}

size_t KernelRef::shared_bytes(const Call& call) const {
  const auto bytes = cpu ? cpu->shared_bytes : gpu->shared_bytes;
  return bytes ? bytes(call) : 0;
}
size_t KernelRef::state_bytes(const Call& call, int64_t capacity) const {
  const auto bytes = cpu ? cpu->state_bytes : gpu->state_bytes;
  return bytes ? bytes(call, capacity) : 0;
}
size_t KernelRef::pack_bytes(const View& constant, int i, const Attributes& attrs) const {
  const auto bytes = cpu ? cpu->pack_bytes : gpu->pack_bytes;
  return bytes ? bytes(constant, i, attrs) : 0;
}

std::span<const VendorRow* const> vendor_rows() {
  return kVendorRows;
}

const VendorRow* find_vendor(std::string_view op, std::span<const OperandInfo> operands, OperationSet set,
                             bool gpu) {
  if (set == OperationSet::reproducible) return nullptr;
  for (const VendorRow* r : kVendorRows)
    if (r->kernel.op() == op && r->keeps >= set && (r->kernel.gpu != nullptr) == gpu && r->serves(operands) &&
        !r->library->version().empty())
      return r;
  return nullptr;
}

}  // namespace invar::ops
