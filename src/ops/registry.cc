// Which kernels this build has, and which of them this CPU can run.
#include <array>

#include "ops/kernel.h"
#include "rows.inc"

namespace invar::ops {
namespace {

bool runnable([[maybe_unused]] std::string_view isa) {
#if defined(__x86_64__)
  if (isa == "avx512")
    return runnable("avx2") && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (isa == "avx2")
    return runnable("scalar") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
  if (isa == "scalar") return __builtin_cpu_supports("fma");
#endif
  return true;  // reference; elsewhere what is built is the architecture's base
}

struct Runnable {
  std::array<std::string_view, std::size(kBuilt)> isa;
  size_t count = 0;
  Runnable() {
    for (std::string_view i : kBuilt)
      if (runnable(i)) isa[count++] = i;
  }
};

}  // namespace

std::span<const Kernel* const> kernels() {
  return kRows;
}

std::span<const std::string_view> isas() {
  static const Runnable r;
  return {r.isa.data(), r.count};
}

const Kernel* find(std::string_view op, std::string_view isa) {
  for (const Kernel* k : kRows)
    if (k->op == op && (isa.empty() || k->isa == isa))
      for (std::string_view can : isas())
        if (can == k->isa) return k;
  return nullptr;
}

}  // namespace invar::ops
