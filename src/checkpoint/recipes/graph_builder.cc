#include "checkpoint/recipes/graph_builder.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "onnx/error_text.h"
#include "onnx/tensor.h"

namespace invar::checkpoint {
namespace {

template <class T>
std::string little_endian(const std::vector<T>& values) {
  std::string bytes;
  for (T value : values) {
    std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t> word;
    std::memcpy(&word, &value, sizeof word);
    for (size_t i = 0; i < sizeof word; ++i) bytes += static_cast<char>(word >> (8 * i) & 0xff);
  }
  return bytes;
}

}  // namespace

std::string GraphBuilder::node(const std::string& op, const std::string& name,
                               std::vector<std::string> inputs, Attributes attributes) {
  graph_.nodes.push_back({name, op, "", std::move(inputs), {name}, std::move(attributes), {}, {}});
  return name;
}

void GraphBuilder::input(const std::string& name, int32_t type, std::vector<onnx::Dimension> shape) {
  graph_.inputs.push_back({name, type, true, std::move(shape)});
}

void GraphBuilder::output(const std::string& name, std::vector<onnx::Dimension> shape) {
  graph_.outputs.push_back({name, onnx::kFloat, true, std::move(shape)});
}

std::string GraphBuilder::add_constant(const std::string& name, int32_t type, size_t count,
                                       std::string bytes) {
  if (std::ranges::find(graph_.initializers, name, &onnx::TensorRef::name) != graph_.initializers.end())
    return name;
  onnx::TensorRef ref;
  ref.name = name;
  ref.data_type = type;
  ref.shape = {static_cast<int64_t>(count)};
  ref.inline_data = std::move(bytes);
  graph_.initializers.push_back(std::move(ref));
  return name;
}

std::string GraphBuilder::constant(const std::string& name, const std::vector<float>& values) {
  return add_constant(name, onnx::kFloat, values.size(), little_endian(values));
}

std::string GraphBuilder::constant(const std::string& name, const std::vector<int64_t>& values) {
  return add_constant(name, onnx::kInt64, values.size(), little_endian(values));
}

std::string GraphBuilder::scalar(const std::string& name, int64_t value) {
  constant(name, std::vector{value});
  std::ranges::find(graph_.initializers, name, &onnx::TensorRef::name)->shape.clear();
  return name;
}

std::string GraphBuilder::weight(const std::string& name, const std::vector<int64_t>& shape) {
  const std::string tensor = spelled(name);
  if (auto it = widened_.find(tensor); it != widened_.end()) return it->second;
  auto fail = [&](Error error) {
    if (status_) status_ = std::move(error);
    return tensor;
  };
  auto it = checkpoint_.tensors.find(tensor);
  if (it == checkpoint_.tensors.end())
    return fail(bad_input(checkpoint_.folder + ": tensor " + onnx::quote(tensor) +
                          ", which config.json asks for, is missing"));
  const CheckpointTensor& t = it->second;
  const std::string where =
      (t.folder.empty() ? checkpoint_.folder : t.folder) + "/" + t.file + ": tensor " + onnx::quote(tensor);
  if (t.shape != shape)
    return fail(bad_input(where + " has shape " + onnx::shape_text(t.shape) + ", but config.json asks for " +
                          onnx::shape_text(shape)));
  const int32_t type = t.dtype == "F32"    ? onnx::kFloat
                       : t.dtype == "BF16" ? onnx::kBFloat16
                       : t.dtype == "F16"  ? onnx::kFloat16
                                           : 0;
  if (type == 0)
    return fail(
        not_covered(where + " is stored as " + t.dtype + ", which is not covered; F32, BF16 and F16 are"));
  onnx::TensorRef ref;
  ref.name = tensor;
  ref.data_type = type;
  ref.shape = t.shape;
  ref.file = t.file;
  ref.offset = t.offset;
  ref.length = t.length;
  graph_.initializers.push_back(std::move(ref));
  const std::string value = type == onnx::kFloat
                                ? tensor
                                : node("Cast", tensor + ".fp32", {tensor}, {{"to", int64_t{onnx::kFloat}}});
  return widened_[tensor] = value;
}

Status GraphBuilder::check_unused(const std::vector<std::string>& ignored_ends,
                                  const std::vector<std::string>& ignored_begins) const {
  return check_unused([&](const std::string& name) {
    const auto ends = [&](const std::string& end) { return name.ends_with(end); };
    const auto begins = [&](const std::string& begin) { return name.starts_with(begin); };
    return std::ranges::any_of(ignored_ends, ends) || std::ranges::any_of(ignored_begins, begins);
  });
}

Status GraphBuilder::check_unused(const std::function<bool(const std::string&)>& ignored) const {
  std::set<std::string> used;
  for (const onnx::TensorRef& t : graph_.initializers) used.insert(t.name);
  for (const auto& [name, tensor] : checkpoint_.tensors) {
    if (!used.contains(name) && !ignored(name))
      return not_covered(checkpoint_.folder + "/" + tensor.file + ": tensor " + onnx::quote(name) +
                         " has no place in the model that config.json describes");
  }
  return {};
}

}  // namespace invar::checkpoint
