// The ONNX graph of an encoder-decoder, side by side and layer by layer (spec/seq2seq.md).
#include "checkpoint/recipes/seq2seq/seq2seq_graph.h"

#include <algorithm>
#include <cmath>

#include "checkpoint/recipes/activation.h"
#include "checkpoint/recipes/graph_builder.h"
#include "checkpoint/recipes/seq2seq/sinusoids.h"
#include "onnx/tensor.h"

namespace invar::checkpoint {
namespace {

using onnx::kFloat, onnx::kInt64;
using Strings = std::vector<std::string>;

constexpr char kSourceIds[] = "source_ids", kSourceLengths[] = "source_lengths",
               kSourceFeatures[] = "source_features";  // plan.22

// The bucket of each distance of a key from the query, from -farthest on.
std::vector<int64_t> buckets_of(int64_t buckets, int64_t farthest, bool both_sides) {
  const int64_t side = both_sides ? buckets / 2 : buckets, exact = side / 2;
  std::vector<int64_t> table;
  for (int64_t distance = -farthest; distance <= farthest; ++distance) {
    const int64_t n = both_sides ? std::abs(distance) : std::max<int64_t>(-distance, 0);
    int64_t bucket = n;
    if (n >= exact) {
      // The quotient is a whole number or far from one, so no library's logarithm decides.
      const double grown = std::log(static_cast<double>(n) / static_cast<double>(exact)) /
                           std::log(static_cast<double>(farthest) / static_cast<double>(exact)) *
                           static_cast<double>(side - exact);
      bucket = std::min(exact + static_cast<int64_t>(std::floor(grown + 1e-9)), side - 1);
    }
    table.push_back(bucket + (both_sides && distance > 0 ? side : 0));
  }
  return table;
}

class Seq2SeqGraph {
 public:
  Seq2SeqGraph(const Seq2Seq& model, const Checkpoint& checkpoint) : m_(model), b_(checkpoint) {}
  Result<onnx::Graph> build();

 private:
  std::string linear(const std::string& name, const std::string& x, int64_t in, int64_t out, bool bias);
  std::string linear(const std::string& name, const std::string& x, int64_t in, int64_t out) {
    return linear(name, x, in, out, m_.bias);
  }
  std::string norm(const std::string& name, const std::string& x);
  std::string scaled(const std::string& name, const std::string& x, float factor);
  std::string table_of(const std::string& side, const Seq2SeqSide& s);
  std::string embedded(const std::string& side, const Seq2SeqSide& s, const std::string& ids);
  std::string position_rows(const std::string& side, const std::string& ids);
  std::string heard();
  std::string listen(const std::string& name, const std::string& x, int64_t channels, int64_t stride);
  std::string biases(const std::string& side, const Seq2SeqSide& s, int64_t layer);
  std::string attention(const std::string& p, const Seq2SeqSide& s, const std::string& x, size_t layer);
  std::string cross_attention(const std::string& p, const std::string& x);
  std::string mlp(const std::string& p, const Seq2SeqSide& s, const std::string& x);
  template <class Part>
  std::string residual(const std::string& p, const std::string& norm_name, const char* name,
                       const std::string& x, const Part& part);
  void side(const std::string& name, const Seq2SeqSide& s, const std::string& ids);
  void logits(const std::string& x);
  bool is_decoder() const { return !encoded_.empty(); }
  bool hears() const { return m_.mel_bands != 0; }

  const Seq2Seq& m_;
  GraphBuilder b_;
  std::string biases_, encoded_;  // of the layer that is built; what the encoder gives
};

std::string Seq2SeqGraph::linear(const std::string& name, const std::string& x, int64_t in, int64_t out,
                                 bool bias) {
  const std::string w =
      b_.node("Transpose", name + ".weight.transposed", {b_.weight(name + ".weight", {out, in})},
              {{"perm", std::vector<int64_t>{1, 0}}});
  const std::string y = b_.node("MatMul", name, {x, w});
  return bias ? b_.node("Add", name + ".biased", {y, b_.weight(name + ".bias", {out})}) : y;
}

std::string Seq2SeqGraph::norm(const std::string& name, const std::string& x) {
  Strings operands = {x, b_.weight(name + ".weight", {m_.hidden_size})};
  if (m_.norm == Norm::layer) operands.push_back(b_.weight(name + ".bias", {m_.hidden_size}));
  return b_.node(m_.norm == Norm::rms ? "RMSNormalization" : "LayerNormalization", name + ".normed", operands,
                 {{"axis", int64_t{-1}}, {"epsilon", m_.norm_epsilon}, {"stash_type", int64_t{kFloat}}});
}

std::string Seq2SeqGraph::scaled(const std::string& name, const std::string& x, float factor) {
  return factor == 1 ? x : b_.node("Mul", name, {x, b_.constant(name + ".factor", std::vector{factor})});
}

// Sides and head share a table where they have none of their own.
std::string Seq2SeqGraph::table_of(const std::string& side, const Seq2SeqSide& s) {
  const std::string own = m_.prefix + side + "embed_tokens.weight", shared = m_.prefix + "shared.weight";
  const std::string other =
      m_.prefix + (side == "encoder." ? "decoder." : "encoder.") + "embed_tokens.weight";
  for (const std::string& name : {own, shared, other})
    if (b_.has(name)) return b_.weight(name, {s.vocab_size, m_.hidden_size});
  return b_.weight(m_.head + ".weight", {s.vocab_size, m_.hidden_size});
}

// What each token gets for its position.
std::string Seq2SeqGraph::position_rows(const std::string& side, const std::string& ids) {
  const std::string name = m_.prefix + side + "embed_positions", stored = name + ".weight";
  std::string at = is_decoder() ? "position_ids" : "source.places";
  std::string table;
  if (m_.positions == SourcePositions::learned || b_.has(stored)) {
    table = b_.weight(stored, {m_.max_positions + m_.position_offset, m_.hidden_size});
    if (m_.position_offset != 0)
      at = b_.node("Add", name + ".moved",
                   {at, b_.constant("position_offset", std::vector{m_.position_offset})});
  } else {
    const bool wide = m_.positions == SourcePositions::sinusoidal;
    table = b_.constant("sinusoids",
                        wide ? sinusoids(0, m_.max_positions, m_.hidden_size)
                             : sinusoids_of_binary32(m_.position_offset, m_.max_positions, m_.hidden_size));
    table = b_.node("Reshape", name + ".table",
                    {table, b_.constant("sinusoids.shape", std::vector{m_.max_positions, m_.hidden_size})});
  }
  const auto gathered = [&] {
    return b_.node("Gather", name + ".rows", {table, at}, {{"axis", int64_t{0}}});
  };
  if (m_.positions != SourcePositions::sinusoidal32) return gathered();
  // Padding has no position, and none is counted for it in a source.
  const std::string is_text = b_.node(
      "Not", name + ".is_text",
      {b_.node("Equal", name + ".is_padding", {ids, b_.constant("padding", std::vector{m_.padding})})});
  if (!is_decoder()) {
    const std::string counts = b_.node("Cast", name + ".counts", {is_text}, {{"to", int64_t{kInt64}}});
    const std::string before =
        b_.node("Sub", name + ".before",
                {b_.node("CumSum", name + ".counted", {counts, b_.scalar("one", 1)}), counts});
    at = before;
  }
  const std::string factor =
      b_.node("Unsqueeze", name + ".factor",
              {b_.node("Cast", name + ".of_text", {is_text}, {{"to", int64_t{kFloat}}}),
               b_.constant("last_axis", std::vector<int64_t>{-1})});
  return b_.node("Mul", name + ".of_text_rows", {gathered(), factor});
}

// A convolution of 3 frames, and gelu whatever the activation of the layers is (seq2seq.10).
std::string Seq2SeqGraph::listen(const std::string& name, const std::string& x, int64_t channels,
                                 int64_t stride) {
  const std::string y = b_.node("Conv", name,
                                {x, b_.weight(name + ".weight", {m_.hidden_size, channels, 3}),
                                 b_.weight(name + ".bias", {m_.hidden_size})},
                                {{"kernel_shape", std::vector<int64_t>{3}},
                                 {"pads", std::vector<int64_t>{1, 1}},
                                 {"strides", std::vector<int64_t>{stride}}});
  return activated(b_, Activation::gelu, name + ".", y);
}

// What the encoder makes of a spectrum before its layers.
std::string Seq2SeqGraph::heard() {
  const std::string p = m_.prefix + "encoder.";
  std::string x = listen(p + "conv1", kSourceFeatures, m_.mel_bands, 1);
  x = listen(p + "conv2", x, m_.hidden_size, 2);
  x = b_.node("Transpose", p + "by_position", {x}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  return b_.node("Add", p + "with_positions",
                 {x, b_.weight(p + "embed_positions.weight", {m_.source_positions, m_.hidden_size})});
}

std::string Seq2SeqGraph::embedded(const std::string& side, const Seq2SeqSide& s, const std::string& ids) {
  if (hears() && !is_decoder()) return heard();
  const std::string p = m_.prefix + side;
  std::string x = b_.node("Gather", p + "embedded", {table_of(side, s), ids}, {{"axis", int64_t{0}}});
  x = scaled(p + "embedding_scale", x, m_.embedding_scale);
  if (m_.positions != SourcePositions::buckets)
    x = b_.node("Add", p + "with_positions", {x, position_rows(side, ids)});
  return m_.embedding_norm.empty() ? x : norm(p + m_.embedding_norm, x);
}

// What attention adds for a distance, [heads, 2 farthest + 1].
std::string Seq2SeqGraph::biases(const std::string& side, const Seq2SeqSide& s, int64_t layer) {
  if (m_.positions != SourcePositions::buckets) return "";
  const std::string name = m_.prefix + side + m_.layers + std::to_string(layer) + "." + m_.position_bias;
  const std::string buckets =
      b_.constant(side + "buckets", buckets_of(m_.buckets, m_.farthest, /*both_sides=*/!is_decoder()));
  const std::string rows = b_.node(
      "Gather", name, {b_.weight(name + ".weight", {m_.buckets, s.heads}), buckets}, {{"axis", int64_t{0}}});
  return b_.node("Transpose", name + ".by_head", {rows}, {{"perm", std::vector<int64_t>{1, 0}}});
}

std::string Seq2SeqGraph::attention(const std::string& p, const Seq2SeqSide& s, const std::string& x,
                                    size_t layer) {
  const int64_t size = s.heads * s.head_dim;
  Strings operands;
  for (const std::string& name : {s.names.q, s.names.k, s.names.v})
    operands.push_back(
        linear(p + name, x, m_.hidden_size, size, m_.bias && (m_.key_bias || name != s.names.k)));
  const std::string y = p + "self_attended", index = std::to_string(layer);
  Strings results = {y};
  operands.push_back("");
  for (const char* kind : {".key", ".value"}) {
    if (!is_decoder()) continue;
    operands.push_back("past_key_values." + index + kind);
    results.push_back("present." + index + kind);
    b_.input(operands.back(), kFloat, {{-1, "batch"}, {s.heads, ""}, {-1, "past"}, {s.head_dim, ""}});
    b_.output(results.back(), {{-1, "batch"}, {s.heads, ""}, {-1, "total"}, {s.head_dim, ""}});
  }
  if (!biases_.empty()) operands.resize(8), operands.push_back(biases_);
  b_.node("Attention", y, operands,
          {{"is_causal", int64_t{is_decoder()}},
           {"q_num_heads", s.heads},
           {"kv_num_heads", s.heads},
           {"scale", s.attention_scale}});
  if (!biases_.empty()) b_.graph().nodes.back().domain = "invar";  // ONNX has no such biases
  b_.graph().nodes.back().outputs = results;
  return linear(p + s.names.o, y, size, m_.hidden_size);
}

// Keys and values follow from the source alone.
std::string Seq2SeqGraph::cross_attention(const std::string& p, const std::string& x) {
  const Seq2SeqSide& s = m_.decoder;
  const int64_t size = s.heads * s.head_dim;
  const std::string q = linear(p + s.names.cross_q, x, m_.hidden_size, size),
                    k = linear(p + s.names.cross_k, encoded_, m_.hidden_size, size, m_.bias && m_.key_bias),
                    v = linear(p + s.names.cross_v, encoded_, m_.hidden_size, size);
  Strings operands = {q, k, v};
  if (!hears()) operands.resize(6), operands.push_back(kSourceLengths);
  const std::string y =
      b_.node("Attention", p + "cross_attended", operands,
              {{"q_num_heads", s.heads}, {"kv_num_heads", s.heads}, {"scale", s.attention_scale}});
  return linear(p + s.names.cross_o, y, size, m_.hidden_size);
}

std::string Seq2SeqGraph::mlp(const std::string& p, const Seq2SeqSide& s, const std::string& x) {
  const Seq2SeqNames& n = s.names;
  const std::string up = linear(p + n.up, x, m_.hidden_size, s.intermediate_size);
  std::string h;
  if (n.gate.empty()) {
    h = activated(b_, m_.activation, p + n.up + ".", up);
  } else {
    const std::string gate = linear(p + n.gate, x, m_.hidden_size, s.intermediate_size);
    h = b_.node("Mul", p + n.gate + ".gated", {activated(b_, m_.activation, p + n.gate + ".", gate), up});
  }
  return linear(p + n.down, h, s.intermediate_size, m_.hidden_size);
}

template <class Part>
std::string Seq2SeqGraph::residual(const std::string& p, const std::string& norm_name, const char* name,
                                   const std::string& x, const Part& part) {
  const std::string y = part(m_.pre_norm ? norm(p + norm_name, x) : x);
  const std::string sum = b_.node("Add", p + name, {x, y});
  return m_.pre_norm ? sum : norm(p + norm_name, sum);
}

// Ends in the value that the other parts read.
void Seq2SeqGraph::side(const std::string& name, const Seq2SeqSide& s, const std::string& ids) {
  biases_ = biases(name, s, 0);
  std::string x = embedded(name, s, ids);
  for (size_t i = 0; i < static_cast<size_t>(s.layers) && b_.status(); ++i) {
    if (i != 0 && m_.biases_of_layers) biases_ = biases(name, s, static_cast<int64_t>(i));
    const std::string p = m_.prefix + name + m_.layers + std::to_string(i) + ".";
    x = residual(p, s.names.attention_norm, "attended", x,
                 [&](const std::string& at) { return attention(p, s, at, i); });
    if (is_decoder())
      x = residual(p, s.names.cross_norm, "with_source", x,
                   [&](const std::string& at) { return cross_attention(p, at); });
    x = residual(p, s.names.mlp_norm, "output", x, [&](const std::string& at) { return mlp(p, s, at); });
  }
  if (!m_.final_norm.empty()) x = norm(m_.prefix + name + m_.final_norm, x);
  if (is_decoder()) return logits(x);
  encoded_ = x;
}

void Seq2SeqGraph::logits(const std::string& x) {
  const Seq2SeqSide& s = m_.decoder;
  const std::string table = !m_.tied || b_.has(m_.head + ".weight")
                                ? b_.weight(m_.head + ".weight", {s.vocab_size, m_.hidden_size})
                                : table_of("decoder.", s);
  const std::string turned =
      b_.node("Transpose", "lm_head.transposed", {table}, {{"perm", std::vector<int64_t>{1, 0}}});
  const std::string y = b_.node("MatMul", "lm_head", {scaled("head_scale", x, m_.head_scale), turned});
  if (b_.has("final_logits_bias"))
    b_.node("Add", "lm_head.biased", {y, b_.weight("final_logits_bias", {1, s.vocab_size})});
  b_.graph().nodes.back().outputs = {"logits"};
}

Result<onnx::Graph> Seq2SeqGraph::build() {
  onnx::Graph& graph = b_.graph();
  graph.name = m_.architecture, graph.metadata = m_.metadata;
  graph.ir_version = 13, graph.opsets = {{"", 25}};
  if (m_.positions == SourcePositions::buckets) graph.opsets["invar"] = 1;
  b_.input("input_ids", kInt64, {{-1, "batch"}, {-1, "seq"}});
  if (m_.positions != SourcePositions::buckets)
    b_.input("position_ids", kInt64, {{-1, "batch"}, {-1, "seq"}});
  if (hears()) {
    b_.input(kSourceFeatures, kFloat, {{-1, "batch"}, {m_.mel_bands, ""}, {2 * m_.source_positions, ""}});
  } else {
    b_.input(kSourceIds, kInt64, {{-1, "batch"}, {-1, "source"}});
    b_.input(kSourceLengths, kInt64, {{-1, "batch"}});
  }
  b_.output("logits", {{-1, "batch"}, {-1, "seq"}, {m_.decoder.vocab_size, ""}});
  if (!hears() && (m_.positions == SourcePositions::learned || m_.positions == SourcePositions::sinusoidal)) {
    b_.node("Shape", "source.length.list", {kSourceIds}, {{"start", int64_t{1}}, {"end", int64_t{2}}});
    b_.node("Squeeze", "source.length", {"source.length.list"});
    b_.node("Range", "source.places", {b_.scalar("zero", 0), "source.length", b_.scalar("one", 1)});
  }
  side("encoder.", m_.encoder, kSourceIds);
  side("decoder.", m_.decoder, "input_ids");
  INVAR_CHECK_OK(b_.status());
  // Tables that are stored twice, and counters of older checkpoints.
  INVAR_CHECK_OK(b_.check_unused([&](const std::string& name) {
    return name.ends_with("embed_tokens.weight") || name == m_.prefix + "shared.weight" ||
           name.ends_with(".version") || name.ends_with("embed_positions._float_tensor") ||
           name.ends_with("embed_positions.weights");
  }));
  return std::move(graph);
}

}  // namespace

Result<onnx::Graph> seq2seq_graph(const Seq2Seq& model, const Checkpoint& checkpoint) {
  return Seq2SeqGraph(model, checkpoint).build();
}

}  // namespace invar::checkpoint
