// Digests of parts of files that this process has computed, so that it computes them once. A file that was changed afterwards is not
// known any more.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>

#include "base/file/file.h"
#include "base/hash/sha256.h"

namespace invar {

class Hashed {
 public:
  // Of `length` bytes at `offset`, computed after the file was opened. Kept only where the file had been at rest when it was
  // opened: a later change has another time then, however coarse the clock of the file system.
  void add(const MappedFile&, uint64_t offset, uint64_t length, const Digest&);
  bool has(const MappedFile&, uint64_t offset, uint64_t length, const Digest&) const;

 private:
  std::map<std::tuple<MappedFile::Stamp, uint64_t, uint64_t>, Digest> known_;
};

}  // namespace invar
