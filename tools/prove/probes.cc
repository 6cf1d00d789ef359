#include <vector>

#include "probe.h"

namespace invar::prove {

#define INVAR_PROBE_ROW(isa) extern const Probe probe_##isa;
INVAR_PROBE_ROWS
#undef INVAR_PROBE_ROW

#ifdef INVAR_CUDA
bool has_device();  // probe.cu
#endif

namespace {
bool runs_here(std::string_view isa) {
#if defined(__x86_64__)
  bool avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  if (isa == "avx512")
    return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (isa == "avx2") return avx2;
  if (isa == "scalar") return __builtin_cpu_supports("fma");
#endif
#ifdef INVAR_CUDA
  if (isa == "cuda") return has_device();
#endif
  (void)isa;
  return true;
}
}  // namespace

std::span<const Probe* const> probes() {
  static const std::vector<const Probe*> here = [] {
    std::vector<const Probe*> v;
#define INVAR_PROBE_ROW(isa) \
  if (runs_here(#isa)) v.push_back(&probe_##isa);
    INVAR_PROBE_ROWS
#undef INVAR_PROBE_ROW
    return v;
  }();
  return here;
}

const Probe* find_probe(std::string_view isa) {
  for (const Probe* p : probes())
    if (isa == p->isa) return p;
  return nullptr;
}

Map find_map(const Probe& probe, std::string_view function) {
  for (const Function& f : probe.functions)
    if (f.name == function) return f.map;
  return nullptr;
}

}  // namespace invar::prove
