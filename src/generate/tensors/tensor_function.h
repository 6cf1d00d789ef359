// A program of tensors that is loaded, and what a receipt says of it and its tensors.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/hash/digest_cache.h"
#include "device/device.h"
#include "generate/options.h"
#include "plan/plan.h"
#include "receipt/receipt.h"
#include "run/function.h"

namespace invar::generate {

struct LoadedFunction {
  std::shared_ptr<Device> device;  // null on the host
  run::Function function;
};
Result<LoadedFunction> open_function(const plan::Plan&, const std::string& folder, const ExecutionOptions&,
                                     const DigestCache* hashed = nullptr);

// receipt.40: of the bytes, little-endian.
std::vector<receipt::TensorDigest> digests_of(const run::Function::NamedTensors&);
// The fields of model and program.
Result<receipt::Receipt> describe_program(const plan::Plan&, const std::string& model_name);

}  // namespace invar::generate
