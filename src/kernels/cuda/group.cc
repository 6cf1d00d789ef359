#include "kernels/cuda/group.h"

#include <vector>

namespace invar::ops {
namespace {

std::vector<const GpuGroup*>& groups() {
  static auto* all = new std::vector<const GpuGroup*>;  // used before main()
  return *all;
}

}  // namespace

const GpuGroup* find_group(std::string_view first) {
  for (const GpuGroup* g : groups())
    if (g->ops[0] == first) return g;
  return nullptr;
}

RegisteredGroup::RegisteredGroup(const GpuGroup& group) {
  groups().push_back(&group);
}

}  // namespace invar::ops
