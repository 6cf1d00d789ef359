// Hugging Face checkpoint folder -> ONNX model, its weights by reference.
#pragma once

#include <string>

#include "base/status.h"

namespace invar::checkpoint {

struct ExportOptions {
  bool colocate_tensors = false;  // copy the weight files beside the .onnx instead of linking them
};
// Hugging Face checkpoint folder -> OUT/model.onnx with its weight files linked or copied beside it (onnx.4
// to onnx.9). Returns the path of the model written. What is not covered is refused by name (not_covered).
Result<std::string> export_checkpoint(const std::string& folder, const std::string& out,
                                      const ExportOptions& = {});

}  // namespace invar::checkpoint
