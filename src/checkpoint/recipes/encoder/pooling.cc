#include "checkpoint/recipes/encoder/pooling.h"

#include "onnx/tensor.h"

namespace invar::checkpoint {
namespace {

using Strings = std::vector<std::string>;

// Over the tokens.
std::string reduced(GraphBuilder& b, const char* op, const std::string& name, const std::string& x) {
  return b.node(op, name, {x, b.constant("axis_1", std::vector<int64_t>{1})}, {{"keepdims", int64_t{0}}});
}

std::string as_float(GraphBuilder& b, const std::string& name, const std::string& x) {
  return b.node("Cast", name, {x}, {{"to", int64_t{onnx::kFloat}}});
}

// Each token's vector times its place, counted from 1, over the sum of the places.
std::string weighted_mean(GraphBuilder& b, const std::string& x, const std::string& length) {
  const std::string one = b.scalar("one", 1);
  const std::string end = b.node("Add", "pooling.end", {length, one});
  const std::string places =
      as_float(b, "pooling.weights", b.node("Range", "pooling.places", {one, end, one}));
  const std::string column =
      b.node("Unsqueeze", "pooling.column", {places, b.constant("last_axis", std::vector<int64_t>{-1})});
  const std::string sum =
      reduced(b, "ReduceSum", "pooling.weighted_sum", b.node("Mul", "pooling.weighted", {x, column}));
  const std::string weights = b.node("ReduceSum", "pooling.weight_sum", {places}, {{"keepdims", int64_t{1}}});
  return b.node("Div", "pooling.weightedmean", {sum, weights});
}

}  // namespace

std::string pooled(GraphBuilder& b, const std::string& mode, const std::string& x,
                   const std::string& length) {
  const std::string name = "pooling." + mode;
  if (mode == "cls" || mode == "lasttoken")
    return b.node("Gather", name, {x, mode == "cls" ? b.scalar("zero", 0) : b.scalar("minus_one", -1)},
                  {{"axis", int64_t{1}}});
  if (mode == "max") return reduced(b, "ReduceMax", name, x);
  if (mode == "mean") return reduced(b, "ReduceMean", name, x);
  if (mode == "weightedmean") return weighted_mean(b, x, length);
  const std::string root = b.node("Sqrt", "pooling.root", {as_float(b, "pooling.length", length)});
  return b.node("Div", name, {reduced(b, "ReduceSum", "pooling.sum", x), root});
}

std::string sentence_vector(GraphBuilder& b, const SentenceConfig& config, const std::string& x,
                            const std::string& length) {
  Strings parts;
  for (const std::string& mode : config.pooling) parts.push_back(pooled(b, mode, x, length));
  std::string y = parts[0];
  if (parts.size() > 1) y = b.node("Concat", "pooling", parts, {{"axis", int64_t{-1}}});
  if (!config.normalize) return y;
  const std::string norm = b.node("ReduceL2", "norm", {y, b.constant("last_axis", std::vector<int64_t>{-1})},
                                  {{"keepdims", int64_t{1}}});
  const std::string divisor =
      b.node("Max", "norm.bounded", {norm, b.constant("smallest_norm", std::vector{1e-12f})});
  return b.node("Div", "normalized", {y, divisor});
}

}  // namespace invar::checkpoint
