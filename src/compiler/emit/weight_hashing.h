// SHA-256 of many file ranges at once.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash/sha256.h"
#include "base/hash/digest_cache.h"
#include "base/status.h"

namespace invar::compiler {

struct Range {
  std::string file;  // relative to the folder
  uint64_t offset = 0, length = 0;
  std::string_view bytes = {};  // these instead of a file's
  Digest sha256{};              // out
};
// Equal ranges are hashed once. threads: 0 = one per core. known: takes the digests of files' ranges, too; may be null.
Status hash_ranges(const std::string& folder, std::span<Range> ranges, int threads, Hashed* known);

}  // namespace invar::compiler
