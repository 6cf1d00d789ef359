// Where a model may keep weights (spec/onnx.md onnx.3).
#pragma once

#include <map>
#include <string>

#include "onnx/onnx.h"

namespace invar::onnx {

// Checks the places of external tensors of models in one folder; every file is looked at once.
class ExternalFiles {
 public:
  explicit ExternalFiles(std::string folder) : folder_(std::move(folder)) {}
  // Normalises tensor.file and checks that it stays inside the folder and is long enough.
  Status check(TensorRef& tensor, const std::string& where);

 private:
  Result<uint64_t> size_of_file(const std::string& location, const std::string& where);
  std::string folder_;
  std::map<std::string, uint64_t> sizes_;
};

}  // namespace invar::onnx
