// The cache of digests, see digest_cache.h.
#include "base/hash/digest_cache.h"

namespace invar {

void DigestCache::add(const MappedFile& file, uint64_t offset, uint64_t length, const Digest& digest) {
  if (file.at_rest()) known_[{file.stamp(), offset, length}] = digest;
}

bool DigestCache::has(const MappedFile& file, uint64_t offset, uint64_t length, const Digest& digest) const {
  const auto it = known_.find({file.stamp(), offset, length});
  return it != known_.end() && it->second == digest;
}

}  // namespace invar
