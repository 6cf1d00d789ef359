// Checks that external data are inside of the model's folder (spec/onnx.md onnx.3).
#pragma once

#include <map>
#include <string>

#include "onnx/onnx.h"

namespace invar::onnx {

// Validates external tensors of models in one folder. Looks at every file once.
class ExternalFiles {
 public:
  explicit ExternalFiles(std::string folder) : folder_(std::move(folder)) {}
  // Normalizes tensor.file and checks that it is inside of the folder and long enough.
  Status check(TensorRef& tensor, const std::string& where);

 private:
  Result<uint64_t> size_of_file(const std::string& location, const std::string& where);
  std::string folder_;
  std::map<std::string, uint64_t> sizes_;
};

}  // namespace invar::onnx
