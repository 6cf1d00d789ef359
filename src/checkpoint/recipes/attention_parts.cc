#include "checkpoint/recipes/attention_parts.h"

#include <bit>

#include "num/pow/pow.h"
#include "onnx/tensor.h"

namespace invar::checkpoint {

using onnx::kFloat, onnx::kInt64;

// The numbers of a power of two of heads are a geometric sequence. Other numbers of heads take
// every second one of that for the next power of two, and then the others.
std::vector<float> linear_bias_slopes(int64_t heads, float bias_max, float scale) {
  const auto all = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(heads)));
  std::vector<float> slopes;
  for (int64_t h = 0; h < heads; ++h) {
    int64_t i = h + 1;
    if (all != heads) i = 2 * i <= all ? 2 * i : 2 * i - all - 1;
    const float exponent = static_cast<float>(i) * bias_max / static_cast<float>(all);
    slopes.push_back(num::pow_cr(2, -exponent) * scale);
  }
  return slopes;
}

// The distances come from shapes alone, so the compiler sees that each is the position of a key
// less that of a query (attention.19).
std::string linear_biases(GraphBuilder& b, const Decoder& d) {
  const auto number = [&](const std::string& name, const std::string& list) {
    return b.node("Squeeze", name, {list});
  };
  const auto size_of = [&](const std::string& name, const std::string& of, int64_t axis) {
    return b.node("Shape", name, {of}, {{"start", axis}, {"end", axis + 1}});
  };
  const std::string cached = size_of("alibi.past.list", "past_key_values.0.key", 2);
  const std::string all = b.node("Add", "alibi.total.list", {cached, size_of("alibi.seq", "input_ids", 1)});
  const std::string past = number("alibi.past", cached), total = number("alibi.total", all);
  const std::string zero = number("alibi.zero", b.constant("zero", std::vector<int64_t>{0}));
  const std::string step = number("alibi.step", b.constant("step", std::vector<int64_t>{1}));
  const std::string keys = b.node("Range", "alibi.keys", {zero, total, step});
  const std::string queries = b.node("Unsqueeze", "alibi.queries.column",
                                     {b.node("Range", "alibi.queries", {past, total, step}),
                                      b.constant("last_axis", std::vector<int64_t>{-1})});
  const std::string distances =
      b.node("Cast", "alibi.distances.fp32", {b.node("Sub", "alibi.distances", {keys, queries})},
             {{"to", int64_t{kFloat}}});
  const std::string slopes =
      b.node("Reshape", "alibi.slopes.column",
             {b.constant("alibi.slopes", linear_bias_slopes(d.heads, d.alibi_bias_max, d.alibi_scale)),
              b.constant("alibi.slopes.shape", std::vector<int64_t>{d.heads, 1, 1})});
  return b.node("Mul", "alibi.biases", {distances, slopes});
}

std::string norm_of_heads(GraphBuilder& b, const Decoder& d, const std::string& name, const std::string& x,
                          int64_t heads) {
  const std::string plain =
      b.node(d.norm == Norm::rms ? "RMSNormalization" : "LayerNormalization", name,
             {x, b.constant("ones_of_a_head", std::vector<float>(static_cast<size_t>(d.head_dim), 1.0f))},
             {{"axis", int64_t{-1}}, {"epsilon", d.norm_epsilon}, {"stash_type", int64_t{kFloat}}});
  std::string weight = name + ".weight";
  if (d.names.norm_of_each_head) {
    std::vector<std::string> each;
    for (int64_t h = 0; h < heads; ++h)
      each.push_back(b.weight(name + ".norms." + std::to_string(h) + ".weight", {d.head_dim}));
    weight = b.node("Reshape", name + ".weights",
                    {b.node("Concat", name + ".weights.list", each, {{"axis", int64_t{0}}}),
                     b.constant("heads_" + std::to_string(heads), std::vector<int64_t>{heads, d.head_dim})});
  } else {
    weight = b.weight(weight, {heads, d.head_dim});
  }
  return b.node("Mul", name + ".weighted", {plain, weight});
}

std::string clipped(GraphBuilder& b, const std::string& name, const std::string& x, float limit) {
  const auto bound = [&](const char* side, float value) {
    return b.node("Squeeze", name + side, {b.constant(std::string("clip") + side, std::vector{value})});
  };
  return b.node("Clip", name, {x, bound(".low", -limit), bound(".high", limit)});
}

float attention_scale(const Decoder& d, size_t layer) {
  return d.attention_scale_by_layer ? d.attention_scale / static_cast<float>(layer + 1) : d.attention_scale;
}

}  // namespace invar::checkpoint
