#include "plan/outline.h"

#include <algorithm>
#include <map>

namespace invar::plan {

Result<Digest> outline(const Plan& plan) {
  if (!plan.source) return bad_input("the plan does not say which program it was compiled from");
  Plan bare = plan;
  std::map<std::string, Digest> tensors;
  for (Weight& tensor : bare.source->tensors) {
    tensors[tensor.name] = tensor.sha256;
    tensor.sha256 = {};
  }
  for (Weight& w : bare.weights) {
    const auto tensor = tensors.find(w.name);
    if (tensor != tensors.end() && tensor->second == w.sha256) w.sha256 = {};
    w.file = "f", w.offset = 0;
  }
  return sha256(print(bare));
}

}  // namespace invar::plan
