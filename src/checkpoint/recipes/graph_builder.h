// Appends nodes and weights of a checkpoint to an ONNX graph. Keeps the first error, so that a
// recipe reads like the model.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/folder.h"
#include "onnx/onnx.h"

namespace invar::checkpoint {

using Attributes = std::map<std::string, onnx::AttrValue>;

class GraphBuilder {
 public:
  explicit GraphBuilder(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  // A node of the default domain whose one result has its name -> that name.
  std::string node(const std::string& op, const std::string& name, std::vector<std::string> inputs,
                   Attributes attributes = {});
  void input(const std::string& name, int32_t type, std::vector<onnx::Dimension> shape);
  void output(const std::string& name, std::vector<onnx::Dimension> shape);  // f32
  // An initializer that lies in the model itself; one of a name.
  std::string constant(const std::string& name, const std::vector<float>& values);
  std::string constant(const std::string& name, const std::vector<int64_t>& values);
  std::string scalar(const std::string& name, int64_t value);  // of rank 0

  // From here on a recipe's name of a tensor is that of `spelling` in the checkpoint.
  void spell(std::function<std::string(const std::string&)> spelling) { spelling_ = std::move(spelling); }
  std::string spelled(const std::string& tensor) const { return spelling_ ? spelling_(tensor) : tensor; }
  bool has(const std::string& tensor) const { return checkpoint_.tensors.contains(spelled(tensor)); }
  // Null: the model is without one.
  Adapter* adapter() const { return checkpoint_.adapter.get(); }
  // Null: there is none of this name.
  const CheckpointTensor* stored(const std::string& tensor) const {
    const auto it = checkpoint_.tensors.find(tensor);
    return it == checkpoint_.tensors.end() ? nullptr : &it->second;
  }
  void fail(Error error) {
    if (status_) status_ = std::move(error);
  }
  // The f32 value of a stored tensor. Widening is exact, so every runtime computes with the same
  // numbers. A tensor that is missing, or of another shape or type, is the builder's error.
  std::string weight(const std::string& name, const std::vector<int64_t>& shape);
  // An unused tensor means that the model is not the one that config.json describes. Names with one
  // of these ends are of tables that follow from the config, those with one of these beginnings of
  // parts that the logits do not need.
  Status check_unused(const std::vector<std::string>& ignored_ends,
                      const std::vector<std::string>& ignored_begins = {}) const;
  // The same where `ignored` knows the names that may be left over.
  Status check_unused(const std::function<bool(const std::string&)>& ignored) const;

  onnx::Graph& graph() { return graph_; }
  const Status& status() const { return status_; }

 private:
  std::string add_constant(const std::string& name, int32_t type, size_t count, std::string bytes);

  const Checkpoint& checkpoint_;
  std::function<std::string(const std::string&)> spelling_;
  onnx::Graph graph_;
  std::map<std::string, std::string> widened_;  // tensor -> its f32 value
  Status status_;
};

}  // namespace invar::checkpoint
