#include <vector>

#include "base/isa.h"
#include "probe.h"

namespace invar::prove {

#define INVAR_PROBE_ROW(isa) extern const Probe probe_##isa;
INVAR_PROBE_ROWS
#undef INVAR_PROBE_ROW

#ifdef INVAR_CUDA
bool has_device();  // probe.cu
#endif

namespace {
bool can_run(std::string_view isa) {
#ifdef INVAR_CUDA
  if (isa == "cuda") return has_device();
#endif
  return runs_here(isa);
}
}  // namespace

std::span<const Probe* const> probes() {
  static const std::vector<const Probe*> here = [] {
    std::vector<const Probe*> v;
#define INVAR_PROBE_ROW(isa) \
  if (can_run(#isa)) v.push_back(&probe_##isa);
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
