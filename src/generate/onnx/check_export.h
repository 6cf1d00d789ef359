// Whether a folder that a foreign exporter made computes what its model does, and keeps its past.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "generate/observer.h"

namespace invar::generate {

struct ExportCheck {
  double error = 0;    // largest difference of a logit by the largest logit
  bool keeps = false;  // its past: a token costs one step, not its whole prefix
};

// Compiles FOLDER/model.onnx and computes the logits of `tokens`, which `expected` has in binary32,
// row-major. not_covered: the error is above `bound`, or the logits are other bits where the tokens
// come in several calls.
Result<ExportCheck> check_export(const std::string& folder, const std::vector<int32_t>& tokens,
                                 std::span<const float> expected, double bound, Observer&);

}  // namespace invar::generate
