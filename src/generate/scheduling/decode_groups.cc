#include "generate/scheduling/decode_groups.h"

#include <utility>

namespace invar::generate {

Status DecodeGroups::start(std::span<GenerationLoop* const> ready) {
  size_t all = ready.size();
  for (const auto& group : groups_) all += group.size();
  const size_t most = session_.groups(all);
  size_t count = ready.empty() ? 0 : most;
  // At least half of an even group.
  if (!empty()) count = groups_.size() < most && 2 * most * ready.size() >= all ? 1 : 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t begin = i * ready.size() / count, end = (i + 1) * ready.size() / count;
    const auto group = ready.subspan(begin, end - begin);
    INVAR_CHECK_OK(GenerationLoop::start(session_, group));
    groups_.emplace_back(group.begin(), group.end());
  }
  return {};
}

Result<std::vector<GenerationLoop*>> DecodeGroups::take() {
  std::vector<GenerationLoop*> group = std::move(groups_.front());
  groups_.pop_front();
  const Status taken = GenerationLoop::finish(session_, group);
  if (!taken) {
    finish();
    return taken.error();
  }
  return group;
}

void DecodeGroups::finish() {
  for (; !empty(); groups_.pop_front())
    (void)static_cast<bool>(GenerationLoop::finish(session_, groups_.front()));
}

}  // namespace invar::generate
