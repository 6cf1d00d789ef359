// The ONNX graph of a decoder, layer by layer (spec/llama.md llama.4 to llama.9, spec/decoder.md
// decoder.4 to decoder.10).
#include "checkpoint/recipes/decoder_graph.h"

#include <algorithm>
#include <utility>

#include "checkpoint/adapter/adapter.h"
#include "checkpoint/recipes/attention_parts.h"
#include "checkpoint/recipes/blocks/decoder_graph_builder.h"

namespace invar::checkpoint {

std::string DecoderGraph::softcapped(const std::string& x) {
  if (d_.logits_softcap == 0) return x;
  const std::string inner = scaled("Div", "logits.softcap", x, d_.logits_softcap, 0);
  return b_.node("Mul", "logits.capped", {b_.node("Tanh", "logits.tanh", {inner}), "softcap"});
}

void DecoderGraph::angles() {
  for (size_t i = 0; i < d_.ropes.size(); ++i) {
    const std::string p = i ? "local." : "";
    const int64_t size = d_.ropes[i].size ? d_.ropes[i].size : d_.rotary_dim;
    std::vector<float> table = inverse_frequencies(d_.ropes[i], size);
    for (float& f : table) f = d_.rope_reversed ? -f : f;
    const std::string frequencies = b_.constant(p + "inv_freq", table);
    if (i == 0) {
      b_.constant("last_axis", std::vector<int64_t>{-1});
      b_.node("Cast", "positions", {"position_ids"}, {{"to", int64_t{kFloat}}});
      b_.node("Unsqueeze", "positions.column", {"positions", "last_axis"});
    }
    const std::string angles = b_.node("Mul", p + "angles", {"positions.column", frequencies});
    cos_.push_back(b_.node("Cos", p + "cos", {angles}));
    sin_.push_back(b_.node("Sin", p + "sin", {angles}));
    if (const float factor = attention_factor(d_.ropes[i]); factor != 1) {
      const std::string constant = b_.constant(p + "attention_factor", std::vector{factor});
      cos_.back() = b_.node("Mul", p + "cos.scaled", {cos_.back(), constant});
      sin_.back() = b_.node("Mul", p + "sin.scaled", {sin_.back(), constant});
    }
  }
}

// transformers ties the embedding and the head only if the checkpoint does not hold both, in
// whichever direction a table exists. So a stored head is always used, tied or not.
std::string DecoderGraph::embedded() {
  const std::string name = prefix_ + d_.names.embedding;
  const bool from_head = d_.tied && !b_.has(name + ".weight");
  std::string x =
      b_.node("Gather", name,
              {b_.weight((from_head ? head_ : name) + ".weight",
                         {d_.embedding_rows ? d_.embedding_rows : d_.vocab_size, embedding_size()}),
               "input_ids"},
              {{"axis", int64_t{0}}});
  x = scaled("Mul", name + ".embedding_scale", x, d_.embedding_scale, 1);
  if (!d_.names.embedding_norm.empty()) x = block_norm(prefix_ + d_.names.embedding_norm, x);
  if (d_.embedding_size != 0)
    x = linear(prefix_ + d_.names.project_in, x, d_.embedding_size, d_.hidden_size, false);
  return d_.names.positions.empty() ? x : with_positions(x);
}

// Queries, keys and values; queries alone where the keys are another layer's.
Strings DecoderGraph::projections(size_t layer, const std::string& p, const std::string& x) {
  const TensorNames& n = d_.names;
  const Layer& l = d_.layers[layer];
  const int64_t q = heads(layer) * head_dim(layer), kv = kv_heads(layer) * head_dim(layer);
  const int64_t values = kv_heads(layer) * value_dim(layer);
  if (d_.qkv_layout == QkvLayout::split) {
    const bool within = d_.attention_gate && n.attention_gate.empty();
    Strings out = {linear(p + n.q, x, d_.hidden_size, within ? 2 * q : q, d_.qkv_bias)};
    if (l.keys_of >= 0) return out;
    out.push_back(linear(p + n.k, x, d_.hidden_size, kv, d_.qkv_bias));
    out.push_back(l.values_are_keys ? out[1] : linear(p + n.v, x, d_.hidden_size, values, d_.qkv_bias));
    if (within) split_gate(p + n.q, out);
    if (d_.attention_gate && !within)

      out.push_back(linear(p + n.attention_gate, x, d_.hidden_size,
                           d_.attention_gate_of_heads ? heads(layer) : q, false));
    return out;
  }
  const std::string all = linear(p + n.qkv, x, d_.hidden_size, q + 2 * kv, d_.qkv_bias);
  if (d_.qkv_layout == QkvLayout::concatenated) return parts(p + n.qkv + ".split", all, 2, {q, kv, kv});
  // Each head of keys stands behind the heads of queries that use it, and its values behind it. A
  // quarter has its part of values before that of keys.
  const bool quarters = d_.qkv_layout == QkvLayout::quarters;
  const int64_t groups = quarters ? 4 : d_.kv_heads, queries = q / groups, keys = kv / groups;
  const std::string grouped = reshaped(p + n.qkv + ".grouped", all, {0, 0, groups, queries + 2 * keys});
  Strings out = parts(p + n.qkv + ".split", grouped, 3, {queries, keys, keys});
  for (size_t i = 0; i < out.size(); ++i) out[i] = reshaped(out[i] + ".flat", out[i], {0, 0, i ? kv : q});
  if (quarters) std::swap(out[1], out[2]);
  return out;
}

std::string DecoderGraph::qk_norm(const std::string& name, const std::string& x, int64_t heads,
                                  int64_t head_dim) {
  if (d_.qk_norm == QkNorm::none) return x;
  const int64_t size = heads * head_dim;
  if (d_.qk_norm == QkNorm::projection) return norm(name, x, size, d_.qk_norm_bias, d_.qk_norm_weight);
  std::string y = reshaped(name + ".heads", x, {0, 0, heads, head_dim});
  y = d_.qk_norm == QkNorm::head ? norm(name, y, head_dim, d_.qk_norm_bias, d_.qk_norm_weight)
                                 : norm_of_heads(b_, d_, name, y, heads);
  return reshaped(name + ".flat", y, {0, 0, size});
}

// Queries times 1 + beta ln(1 + the step that their position is in).
std::string DecoderGraph::tempered(const std::string& name, const std::string& q) {
  const Temperature& t = d_.temperature;
  const std::string p = "temperature.", one = b_.constant("one", std::vector{1.0f});
  if (temperature_.empty()) {
    std::string step =
        scaled("Add", p + "position_offset_f32", "positions.column", static_cast<float>(t.offset), 0);
    step = b_.node("Floor", p + "step",
                   {scaled("Div", p + "positions_of_a_step", step, static_cast<float>(t.positions), 0)});
    const std::string log = b_.node("Log", p + "log", {b_.node("Add", p + "steps", {step, one})});
    temperature_ = b_.node("Add", p + "factor", {scaled("Mul", p + "temperature_beta", log, t.beta, 0), one});
  }
  return b_.node("Mul", name, {q, temperature_});
}

std::string DecoderGraph::rotated(const std::string& name, const std::string& x, int64_t heads,
                                  int64_t head_dim, int rope) {
  if (rope < 0 || d_.ropes.empty()) return x;
  const auto i = static_cast<size_t>(rope);
  Attributes attributes = {{"num_heads", heads}, {"interleaved", int64_t{d_.rope_interleaved}}};
  const int64_t turned = d_.ropes[i].size ? d_.ropes[i].size : d_.rotary_dim;
  if (turned != head_dim) attributes["rotary_embedding_dim"] = turned;
  return b_.node("RotaryEmbedding", name, {x, cos_[i], sin_[i]}, attributes);
}

// Queries, keys and values as attention takes them.
Strings DecoderGraph::attention_operands(size_t layer, const std::string& p, const std::string& x) {
  const Layer& l = d_.layers[layer];
  const bool latent = d_.kv_lora_rank != 0;
  Strings qkv = latent ? latent_projections(p, x) : projections(layer, p, x);
  for (size_t i = 0; i < qkv.size() && d_.qkv_clip != 0; ++i)
    qkv[i] = clipped(b_, p + "self_attn." + "qkv"[i] + "_clipped", qkv[i], d_.qkv_clip);
  if (d_.key_scale != 1) qkv[1] = scaled("Mul", p + "self_attn.key_scale", qkv[1], d_.key_scale, 1);
  if (d_.value_scale != 1) qkv[2] = scaled("Mul", p + "self_attn.value_scale", qkv[2], d_.value_scale, 1);
  const size_t made = std::min<size_t>(qkv.size(), 2);
  const std::pair<std::string, int64_t> sides[] = {{"q", heads(layer)}, {"k", kv_heads(layer)}};
  const auto normed = [&](size_t i) {
    if (d_.qk_norm_rotated && l.rope < 0) return qkv[i];
    return qk_norm(p + (i ? d_.names.k_norm : d_.names.q_norm), qkv[i], sides[i].second, head_dim(layer));
  };
  if (d_.value_norm && qkv.size() == 3)
    qkv[2] = value_norm(p + "self_attn.v_norm", qkv[2], kv_heads(layer), head_dim(layer));
  for (size_t i = 0; i < made && !d_.qk_norm_after_rope; ++i) qkv[i] = normed(i);
  for (size_t i = 0; i < made && !latent; ++i)
    qkv[i] = rotated(p + "self_attn." + sides[i].first + "_rotated", qkv[i], sides[i].second, head_dim(layer),
                     l.rope);
  for (size_t i = 0; i < made && d_.qk_norm_after_rope; ++i) qkv[i] = normed(i);
  if (d_.temperature.beta != 0 && !(d_.temperature.unrotated && l.rope >= 0))
    qkv[0] = tempered(p + "self_attn.q_tempered", qkv[0]);
  if (l.keys_of >= 0) {
    const Strings& others = keys_[static_cast<size_t>(l.keys_of)];
    qkv.insert(qkv.end(), others.begin(), others.end());
  }
  keys_.push_back({qkv[1], qkv[2]});
  return qkv;
}

std::string DecoderGraph::attention(size_t layer, std::string x) {
  const std::string p = prefix_ + d_.names.layers + std::to_string(layer) + ".";
  const int64_t size = heads(layer) * value_dim(layer);
  x = scaled("Mul", p + "self_attn.attention_in_scale", x, d_.attention_in_scale, 1);
  const Strings qkv = attention_operands(layer, p, x);
  std::string result = attended(layer, p, qkv);
  if (d_.attention_gate) result = attention_gated(layer, p, result, qkv[3]);
  if (!d_.names.attention_sub_norm.empty())
    result = norm(p + d_.names.attention_sub_norm, result, size, false);
  const std::string out = linear(p + d_.names.o, result, size, d_.hidden_size, d_.output_bias);
  return scaled("Mul", p + "self_attn.attention_out_scale", out, d_.attention_out_scale, 1);
}

std::string DecoderGraph::attended(size_t layer, const std::string& p, const Strings& qkv) {
  const std::string index = std::to_string(layer);
  const int64_t kv = kv_heads(layer);

  Strings past, present;
  for (const auto& [kind, size] : {std::pair{".key", head_dim(layer)}, {".value", value_dim(layer)}}) {
    past.push_back("past_key_values." + index + kind);
    present.push_back("present." + index + kind);
    b_.input(past.back(), kFloat, {{-1, "batch"}, {kv, ""}, {-1, "past"}, {size, ""}});
    b_.output(present.back(), {{-1, "batch"}, {kv, ""}, {-1, "total"}, {size, ""}});
  }
  Attributes attributes = {{"is_causal", int64_t{1}},
                           {"q_num_heads", heads(layer)},
                           {"kv_num_heads", kv},
                           {"scale", attention_scale(d_, layer)}};
  if (d_.attention_softcap != 0) attributes["softcap"] = d_.attention_softcap;
  if (d_.layers[layer].window) attributes["left_window_size"] = d_.window - 1;
  Strings operands = {qkv[0], qkv[1], qkv[2], biases_, past[0], past[1]};
  const bool sinks = d_.attention_sinks && (d_.layers[layer].window || !d_.attention_sinks_of_windows);
  if (sinks) operands.insert(operands.end(), {"", b_.weight(p + d_.names.sinks, {heads(layer)})});
  const std::string y = b_.node("Attention", p + "self_attn.attention", operands, attributes);
  if (sinks) b_.graph().nodes.back().domain = "invar";  // ONNX has no sinks
  b_.graph().nodes.back().outputs = {y, present[0], present[1]};
  return y;
}

// decoder.50, decoder.60.
std::string DecoderGraph::mixed(size_t layer, const std::string& x) {
  const Mixer mixer = d_.layers[layer].mixer;
  if (mixer == Mixer::gated_delta) return gated_delta(layer, x);
  if (mixer == Mixer::short_conv) return short_conv(layer, x);
  if (mixer == Mixer::state_space) return state_space(layer, x);
  if (mixer == Mixer::selective) return selective_scan(layer, x);
  if (mixer == Mixer::lightning) return lightning(layer, x);
  if (mixer == Mixer::rglru) return rglru(layer, x);
  const std::string y = attention(layer, x);
  if (mixer != Mixer::both) return y;
  return b_.node("Add", y + ".with_states", {state_space(layer, x), y});
}

// decoder.8 has a table of the blocks.
std::string DecoderGraph::layer(size_t index, std::string x) {
  const TensorNames& n = d_.names;
  const std::string p = prefix_ + n.layers + std::to_string(index) + ".";
  const auto before = [&](const std::string& name, const std::string& at) {
    return block_norm(p + name, at);
  };
  const auto add = [&](const char* name, const std::string& to, const std::string& what) {
    const std::string scaled_part =
        scaled("Mul", p + name + std::string(".residual_scale"), what, d_.residual_scale, 1);
    return b_.node("Add", p + name, {to, scaled_part});
  };
  // Layers of the gated delta rule have norms in front alone, whatever the others have.
  switch (d_.layers[index].mixer == Mixer::gated_delta ? Block::pre : d_.block) {
    case Block::pre: {
      const std::string shortcut = std::exchange(shortcut_, "");
      x = add("attended", x, mixed(index, before(n.attention_norm, x)));
      x = add("output", x, mlp(index, before(n.mlp_norm, x), x));
      return shortcut.empty() ? x : b_.node("Add", p + "output.with_shortcut", {x, shortcut});
    }
    case Block::post:
      x = add("attended", x, before(n.attention_post_norm, mixed(index, x)));
      return add("output", x, before(n.mlp_post_norm, mlp(index, x, x)));
    case Block::both:
      x = add("attended", x, before(n.attention_post_norm, mixed(index, before(n.attention_norm, x))));
      return add("output", x, before(n.mlp_post_norm, mlp(index, before(n.mlp_norm, x), x)));
    case Block::after:
      x = before(n.attention_norm, add("attended", x, mixed(index, x)));
      return before(n.mlp_norm, add("output", x, mlp(index, x, x)));
    case Block::single:
      if (d_.layers[index].mixer == Mixer::none)
        return add("output", x, mlp(index, before(n.attention_norm, x), x));
      if (d_.layers[index].mixer == Mixer::shared) return with_shared_block(index, x);
      return add("output", x, mixed(index, before(n.attention_norm, x)));
    case Block::normed: return normed_layer(index, x);
    case Block::parallel:
    case Block::parallel_two: break;
  }
  const std::string shared = before(n.attention_norm, x);
  const std::string attended = add("attended", x, mixed(index, shared));
  return add("output", attended, mlp(index, d_.block == Block::parallel ? shared : before(n.mlp_norm, x), x));
}

void DecoderGraph::logits(std::string x) {
  if (d_.final_norm) x = block_norm(prefix_ + d_.names.final_norm, x);
  if (d_.embedding_size != 0)
    x = linear(prefix_ + d_.names.project_out, x, d_.hidden_size, d_.embedding_size, false);
  const std::string &head = head_, embedding = prefix_ + d_.names.embedding;
  const std::string table = b_.weight((d_.tied && !b_.has(head + ".weight") ? embedding : head) + ".weight",
                                      {d_.vocab_size, embedding_size()});
  const std::string rows = x;
  x = b_.node("MatMul", head,
              {x, b_.node("Transpose", head + ".weight.transposed", {table},
                          {{"perm", std::vector<int64_t>{1, 0}}})});
  if (d_.head_bias) x = b_.node("Add", head + ".biased", {x, b_.weight(head + ".bias", {d_.vocab_size})});
  x = adapted(head, rows, x, embedding_size(), d_.vocab_size);
  x = scaled("Mul", "logits.logits_scale", x, d_.logits_scale, 1);
  x = scaled("Div", "logits.logits_divisor", x, d_.logits_divisor, 1);
  softcapped(x);
  b_.graph().nodes.back().outputs = {"logits"};
}

Result<onnx::Graph> DecoderGraph::build() {
  onnx::Graph& graph = b_.graph();
  graph.name = d_.architecture;
  graph.ir_version = 11;  // the first with opset 23
  graph.opsets = {{"", 23}};
  for (const Layer& layer : d_.layers)
    if (layer.window) graph.ir_version = 13, graph.opsets = {{"", 25}};  // the first with windows
  for (const Layer& layer : d_.layers) {
    if (layer.mixer != Mixer::attention && layer.mixer != Mixer::none)
      graph.ir_version = 13, graph.opsets[""] = 27;
    if (layer.mixer != Mixer::attention && layer.mixer != Mixer::none && layer.mixer != Mixer::short_conv)
      graph.opsets["invar"] = 1;
  }
  if (d_.attention_sinks) graph.opsets["invar"] = 1;
  for (const Layer& layer : d_.layers)  // the first opset with CausalConvWithState
    if (layer.mixer == Mixer::gated_delta) graph.ir_version = 13, graph.opsets = {{"", 27}, {"invar", 1}};
  graph.metadata = d_.metadata;
  b_.input("input_ids", onnx::kInt64, {{-1, "batch"}, {-1, "seq"}});
  b_.input("position_ids", onnx::kInt64, {{-1, "batch"}, {-1, "seq"}});
  b_.output("logits", {{-1, "batch"}, {-1, "seq"}, {d_.vocab_size, ""}});
  angles();
  if (d_.alibi_bias_max != 0) biases_ = linear_biases(b_, d_);
  std::string x = embedded();
  if (d_.takes_hidden) x = with_hidden(x);
  layer_inputs(x);
  first_ = x;
  const bool several = d_.altup.inputs != 0;
  if (several) x = versions(x);
  for (size_t i = 0; i < d_.layers.size() && b_.status(); ++i)
    x = several ? altup_layer(i, x) : with_layer_input(i, layer(i, x));
  if (several) x = joined_versions(x);
  logits(x);
  INVAR_CHECK_OK(b_.status());
  if (b_.adapter()) {
    INVAR_CHECK_OK(b_.adapter()->check_used());
  }
  Strings unused = d_.names.ignored_begins;
  for (int64_t i = 0; i < d_.unused_layers; ++i)
    unused.push_back(prefix_ + d_.names.layers + std::to_string(static_cast<int64_t>(d_.layers.size()) + i) +
                     ".");
  for (int64_t number : d_.names.skipped)
    unused.push_back(prefix_ + d_.names.layers + std::to_string(number) + ".");
  INVAR_CHECK_OK(b_.check_unused(d_.names.ignored, unused));
  return std::move(graph);
}

Result<onnx::Graph> decoder_graph(const Decoder& decoder, const Checkpoint& checkpoint) {
  // Some families have both layouts of experts in files of the field. The tensors say which.
  const std::string& stack = decoder.experts.names.gate_up_stack;
  const auto found = std::ranges::find_if(
      checkpoint.tensors, [&](const auto& tensor) { return tensor.first.ends_with("." + stack); });
  if (decoder.experts.layout != ExpertLayout::separate || stack.empty() || found == checkpoint.tensors.end())
    return DecoderGraph(decoder, checkpoint).build();
  Decoder stacked = decoder;
  // [E, in, out] where the shape says so, and [E, out, in] where both would fit.
  const std::vector<int64_t>& shape = found->second.shape;
  const int64_t both = 2 * decoder.experts.intermediate_size;
  const bool turned = both != decoder.hidden_size && shape.size() == 3 && shape[2] == both;
  stacked.experts.layout = turned ? ExpertLayout::halves : ExpertLayout::stacked;
  onnx::add_recipe(recipe_of(stacked), stacked.metadata);
  return DecoderGraph(stacked, checkpoint).build();
}

}  // namespace invar::checkpoint
