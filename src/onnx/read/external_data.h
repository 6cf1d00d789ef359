// Checks that external data are inside of the model's folder (spec/onnx.md onnx.3).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "onnx/onnx.h"

namespace invar::onnx {

// Validates external tensors of models in one folder. Looks at every file once.
class ExternalFiles {
 public:
  explicit ExternalFiles(std::string folder) : folder_(std::move(folder)) {}
  // Normalizes tensor.file and checks that it is inside of the folder and long enough. A missing
  // file is an error of all_found(), which names all of them.
  Status check(TensorRef& tensor, const std::string& where);
  Status all_found() const;

 private:
  Result<uint64_t> size_of_file(const std::string& location, const std::string& where);
  std::string folder_;
  std::map<std::string, uint64_t> sizes_;
  std::vector<std::string> missing_;
  std::string first_missing_;  // where
};

}  // namespace invar::onnx
