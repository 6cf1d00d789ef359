// A cache of the digests of parts of files, so that a process computes each once. A file that
// changed afterwards is not found.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>

#include "base/file/file.h"
#include "base/hash/sha256.h"

namespace invar {

class DigestCache {
 public:
  // Adds the digest of `length` bytes at `offset`, computed after the file was opened. Does nothing
  // if the file was not at rest when it was opened: then a later change might have the same time
  // stamp.
  void add(const MappedFile&, uint64_t offset, uint64_t length, const Digest&);
  bool has(const MappedFile&, uint64_t offset, uint64_t length, const Digest&) const;

 private:
  std::map<std::tuple<MappedFile::Stamp, uint64_t, uint64_t>, Digest> known_;
};

}  // namespace invar
