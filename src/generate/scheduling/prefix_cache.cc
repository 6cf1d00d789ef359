#include "generate/scheduling/prefix_cache.h"

namespace invar::generate {

const Digest& PageNames::of(std::span<const int32_t> tokens, int64_t index) {
  while (static_cast<int64_t>(names_.size()) <= index) {
    const size_t n = names_.size(), size = static_cast<size_t>(page_);
    const Digest& before = n == 0 ? root_ : names_.back();
    Sha256 hash;
    hash.update(before.data(), before.size());
    hash.update(tokens.data() + n * size, size * sizeof(int32_t));
    names_.push_back(hash.finish());
  }
  return names_[static_cast<size_t>(index)];
}

std::vector<int64_t> PrefixCache::find(PageNames& names, std::span<const int32_t> tokens, int64_t first,
                                       int64_t end) {
  std::vector<int64_t> found;
  for (int64_t i = first; i < end; ++i) {
    const auto at = pages_.find(names.of(tokens, i));
    if (at == pages_.end()) break;
    found.push_back(at->second.page);
  }
  for (auto i = first + static_cast<int64_t>(found.size()); i > first; --i) use(names.of(tokens, i - 1));
  return found;
}

void PrefixCache::add(const Digest& name, int64_t page) {
  oldest_first_[++uses_] = name;
  pages_[name] = {page, uses_};
}

void PrefixCache::use(const Digest& name) {
  const auto at = pages_.find(name);
  if (at == pages_.end()) return;
  oldest_first_.erase(at->second.used);
  oldest_first_[at->second.used = ++uses_] = name;
}

}  // namespace invar::generate
