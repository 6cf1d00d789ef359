// Linear layers, norms and small nodes of a decoder (spec/decoder.md decoder.5).
#include "checkpoint/adapter/adapter.h"
#include "checkpoint/recipes/blocks/decoder_graph_builder.h"
#include "onnx/error_text.h"
#include "onnx/recipe.h"
#include "onnx/tensor.h"

namespace invar::checkpoint {

// The name in the checkpoint: layers 2 i and 2 i + 1 are the halves 0 and 1 of its layer i.
std::string DecoderGraph::stored_name(const std::string& name) const {
  const std::string begin = prefix_ + d_.names.layers;
  size_t at = begin.size(), layer = 0;
  if (!name.starts_with(begin)) return name;
  while (at < name.size() && name[at] >= '0' && name[at] <= '9')
    layer = 10 * layer + static_cast<size_t>(name[at++] - '0');
  const std::string rest = name.substr(std::min(at + 1, name.size()));
  for (int64_t skipped : d_.names.skipped) layer += static_cast<size_t>(skipped) <= layer;
  if (d_.names.of_halves.empty()) return begin + std::to_string(layer) + "." + rest;
  const std::string whole = begin + std::to_string(layer / 2) + ".";
  for (const std::string& part : d_.names.of_halves)
    if (rest.starts_with(part))
      return whole + part + std::to_string(layer % 2) + rest.substr(part.size() - 1);
  return whole + rest;
}

// torch.nn.Linear keeps its weight [out, in] as stored; Conv1D of GPT-2 keeps it [in, out].
std::string DecoderGraph::linear(const std::string& name, const std::string& x, int64_t in, int64_t out,
                                 bool bias) {
  const bool turned = d_.transposed_weights;
  std::string w = b_.weight(name + ".weight", turned ? std::vector{in, out} : std::vector{out, in});
  if (!turned)
    w = b_.node("Transpose", name + ".weight.transposed", {w}, {{"perm", std::vector<int64_t>{1, 0}}});
  const std::string y =
      d_.ternary == Ternary::none ? b_.node("MatMul", name, {x, w}) : ternary_linear(name, x, w);
  return adapted(name, x, bias ? b_.node("Add", name + ".biased", {y, b_.weight(name + ".bias", {out})}) : y,
                 in, out);
}

std::string DecoderGraph::adapted(const std::string& name, const std::string& x, const std::string& y,
                                  int64_t in, int64_t out) {
  if (!b_.adapter()) return y;
  const bool inner = name != head_ && name.starts_with(prefix_);
  const auto found = b_.adapter()->find(b_.spelled(name), inner ? prefix_ : "", inner ? d_.names.prefix : "");
  if (!found) b_.fail(found.error());
  if (!found || !*found) return y;
  const LowRank& low = **found;
  const std::vector<int64_t> shapes[] = {{low.rank, in}, {out, low.rank}};
  std::string part = x;
  for (const auto& [tensor, shape] : {std::pair{&low.a, &shapes[0]}, {&low.b, &shapes[1]}}) {
    const CheckpointTensor* stored = b_.stored(*tensor);
    if (stored && stored->shape != *shape)
      b_.fail(bad_input(b_.adapter()->tensor_file() + ": tensor " + onnx::quote(*tensor) + " has shape " +
                        onnx::shape_text(stored->shape) + ", but the model and " + kAdapterConfig +
                        " ask for " + onnx::shape_text(*shape) +
                        ": it is an adapter of another model, or of another rank"));
    if (!b_.status()) return y;
    const std::string turned = b_.node("Transpose", *tensor + ".transposed", {b_.weight(*tensor, *shape)},
                                       {{"perm", std::vector<int64_t>{1, 0}}});
    part = b_.node("MatMul", *tensor + ".product", {part, turned});
  }
  if (low.scale != 1)
    part = b_.node("Mul", name + ".lora",
                   {part, b_.constant("lora_scale." + onnx::parameter(low.scale), std::vector{low.scale})});
  return b_.node("Add", name + ".adapted", {y, part});
}

// Rows of x, rounded to 8 bits, times a ternary matrix and its factor (decoder.69).
std::string DecoderGraph::ternary_linear(const std::string& name, const std::string& x,
                                         const std::string& matrix) {
  const auto number = [&](const char* constant, float value) {
    return b_.constant(constant, std::vector{value});
  };
  const std::string largest =
      b_.node("ReduceMax", name + ".largest",
              {b_.node("Abs", name + ".size", {x}), b_.constant("last_axis", std::vector<int64_t>{-1})});
  const std::string steps = b_.node(
      "Div", name + ".steps",
      {number("steps_127", 127), b_.node("Max", name + ".unit", {largest, number("least_unit", 1e-5f)})});
  std::string q = b_.node("Round", name + ".round", {b_.node("Mul", name + ".stepped", {x, steps})});
  q = b_.node("Max", name + ".above", {q, number("steps_minus_128", -128)});
  q = b_.node("Min", name + ".below", {q, "steps_127"});
  const std::string factor = b_.weight(name + ".weight_scale", {1});
  if (d_.ternary == Ternary::multiplied)
    return b_.node(
        "Mul", name,
        {b_.node("MatMul", name + ".product", {b_.node("Div", name + ".rounded", {q, steps}), matrix}),
         factor});
  return b_.node("Div", name,
                 {b_.node("MatMul", name + ".product", {q, matrix}),
                  b_.node("Mul", name + ".unit_scale", {factor, steps})});
}

std::string DecoderGraph::norm(const std::string& name, const std::string& x, int64_t size, bool bias,
                               bool weighted) {
  const std::string ones = size == d_.hidden_size ? "ones" : "ones_" + std::to_string(size);
  std::string w = d_.norm_weight && weighted
                      ? b_.weight(name + ".weight", {size})
                      : b_.constant(ones, std::vector<float>(static_cast<size_t>(size), 1.0f));
  if (d_.norm_offset)
    w = b_.node("Add", name + ".weight.plus_one", {w, b_.constant("one", std::vector{1.0f})});
  Strings operands = {x, w};
  if (bias) operands.push_back(b_.weight(name + ".bias", {size}));
  return b_.node(d_.norm == Norm::rms ? "RMSNormalization" : "LayerNormalization", name, operands,
                 {{"axis", int64_t{-1}}, {"epsilon", d_.norm_epsilon}, {"stash_type", int64_t{kFloat}}});
}

std::string DecoderGraph::block_norm(const std::string& name, const std::string& x) {
  return norm(name, x, d_.hidden_size, d_.norm_bias);
}

std::string DecoderGraph::scaled(const char* op, const std::string& name, const std::string& x, float factor,
                                 float neutral) {
  if (factor == neutral) return x;
  const std::string constant = name.substr(name.rfind('.') + 1);
  return b_.node(op, name, {x, b_.constant(constant, std::vector{factor})});
}

std::string DecoderGraph::reshaped(const std::string& name, const std::string& x,
                                   std::vector<int64_t> shape) {
  std::string text = "shape";
  for (int64_t n : shape) text += "_" + std::to_string(n);
  return b_.node("Reshape", name, {x, b_.constant(text, shape)});
}

Strings DecoderGraph::parts(const std::string& name, const std::string& x, int64_t axis,
                            std::vector<int64_t> sizes) {
  std::string text = "sizes";
  Strings out;
  for (int64_t n : sizes) {
    text += "_" + std::to_string(n);
    out.push_back(name + "." + std::to_string(out.size()));
  }
  b_.node("Split", name, {x, b_.constant(text, sizes)}, {{"axis", axis}});
  b_.graph().nodes.back().outputs = out;
  return out;
}

}  // namespace invar::checkpoint
