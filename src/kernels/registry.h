// The contracts and kernels of this build (generated from spec/opset.toml), found by operation and
// instruction set.
#pragma once

#include <functional>
#include <vector>

#include "kernels/cpu_kernel.h"
#include "kernels/gpu_kernel.h"

namespace invar::ops {

// Null: there is no such operation.
const OpContract* contract_of(std::string_view op);

// Kernels of the host, best instruction set first within an operation, "reference" last.
std::span<const CpuKernel* const> cpu_kernels();
std::span<const GpuKernel* const> gpu_kernels();
inline constexpr std::string_view kCuda = "cuda";
// The best kernel for `op` that this CPU supports, or exactly that of `isa`. Null: none.
const CpuKernel* find_cpu_kernel(std::string_view op, std::string_view isa = "");
// Null: none in this build. Whether a GPU is present is Device::open's to say.
const GpuKernel* find_gpu_kernel(std::string_view op);
// Instruction sets of this build that this CPU can run, best first, "reference" last.
std::span<const std::string_view> isas();
// isas(), then their extensions that this CPU can run: find_cpu_kernel() takes these.
std::span<const std::string_view> isas_and_extensions();

// Different operations, none of which depends on another, with kernels of their own for all
// together, which read what they share once. The bits are those of the operations one by one.
struct GpuGroup {
  std::span<const std::string_view> ops;                 // these, or the first two or more of them
  bool (*fits)(std::span<const Call* const>);            // whether it can take these calls
  size_t (*shared_bytes)(std::span<const Call* const>);  // bytes of Call::shared of the first
  void (*enqueue)(std::span<const Call* const>, Stream);
};

// The group that starts with an operation. Null: none in this build.
const GpuGroup* find_group(std::string_view first);

// Makes a group known: a static beside its kernels.
class RegisteredGroup {
 public:
  explicit RegisteredGroup(const GpuGroup& group);
  const GpuGroup& group;
  const RegisteredGroup* const next;
};

// A kernel of either processor, for code that treats both alike. One pointer is null, or both are.
struct KernelRef {
  const CpuKernel* cpu = nullptr;
  const GpuKernel* gpu = nullptr;

  constexpr KernelRef() = default;
  constexpr KernelRef(const CpuKernel* k) : cpu(k) {}
  constexpr KernelRef(const GpuKernel* k) : gpu(k) {}
  explicit operator bool() const { return cpu || gpu; }
  bool operator==(const KernelRef&) const = default;
  // An order for maps.
  bool operator<(const KernelRef& o) const {
    const std::less<const void*> before;
    return cpu == o.cpu ? before(gpu, o.gpu) : before(cpu, o.cpu);
  }

  std::string_view op() const { return cpu ? cpu->op : gpu->op; }
  std::string_view isa() const { return cpu ? cpu->isa : gpu->isa; }
  // 0 if the kernel needs no such memory.
  size_t shared_bytes(const Call& call) const;
  size_t state_bytes(const Call& call, int64_t capacity) const;
  size_t pack_bytes(const View& constant, int i, const Attributes&) const;
};
// The kernels for `op` that can run here, in the order of cpu_kernels(). With `gpu` that of a GPU
// stands before the reference.
std::vector<KernelRef> runnable_kernels(std::string_view op, bool gpu);

}  // namespace invar::ops
