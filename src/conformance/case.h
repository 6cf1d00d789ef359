// A conformance case: one call of an operation as one line of text. tests/conformance/README.md
// defines the grammar.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/attributes.h"
#include "base/dtype.h"
#include "base/status.h"

namespace invar::conformance {

struct Tensor {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  bool constant = false;       // a weight: packed if the kernel packs it
  std::string fill;            // the named fill of the values ...
  std::vector<uint64_t> bits;  // ... or the values
  int64_t elements() const {
    int64_t n = 1;
    for (int64_t d : shape) n *= d;
    return n;
  }
};

struct Case {
  std::string text;  // this case only, normalized
  std::vector<Tensor> in, out;
  Attributes attrs;
  uint64_t seed = 0;
  std::vector<int64_t> chunks;  // of axis 1, for stateful operations
  int64_t spare = 0;            // spare positions of the state beyond those filled
  std::string digest;           // of the outputs, if the line promises one
};

// Returns the prefix of a line that names the operations of the room it applies to, such as
// `exp,log: `; or nothing.
std::string_view prefix_of(std::string_view line);
bool is_for(std::string_view line, std::string_view op);

// All cases of a file for `op`: comments dropped, `for` lines expanded. An error names file and
// line.
Result<std::vector<Case>> parse(std::string_view text, const std::string& file, std::string_view op);

// The bytes of a tensor in the host's byte order. seed and index select the random stream.
Result<std::vector<std::byte>> materialise(const Tensor&, uint64_t seed, int index);

// SHA-256 over the outputs' bytes, little-endian, in order.
std::string digest_of(const Case&, const std::vector<std::vector<std::byte>>& outputs);

}  // namespace invar::conformance
