// SHA-256 of many byte ranges in parallel.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/byte_progress.h"
#include "base/hash/digest_cache.h"
#include "base/hash/sha256.h"
#include "base/status.h"

namespace invar::compiler {

struct HashRequest {
  std::string file;  // relative to the folder
  uint64_t offset = 0, length = 0;
  std::string_view bytes = {};  // if not null, these instead of the file's
  Digest sha256{};              // out; in, if it is presumed
  bool presumed = false;        // its bytes are not read
};
// Fills in the digests. Equal ranges are hashed once. threads: 0 = one per core; -1 = files are not
// read, and their digests stay 0. The cache, which
// may be null, receives the digests of file ranges.
Status hash_ranges(const std::string& folder, std::span<HashRequest> ranges, int threads, DigestCache* cache,
                   const ByteProgress& progress = {});

}  // namespace invar::compiler
