// Headers of safetensors files: an 8-byte length, JSON, then the tensors' bytes without gaps. Only
// the header is read (spec/checkpoint.md onnx.5).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"

namespace invar::checkpoint {

struct StoredTensor {
  std::string dtype;  // "BF16", "F32", ...
  std::vector<int64_t> shape;
  uint64_t offset = 0, length = 0;  // in the file
};

// Reads the header and checks that it is consistent and matches the size of the file.
Result<std::map<std::string, StoredTensor>> read_safetensors_header(const std::string& path);

}  // namespace invar::checkpoint
