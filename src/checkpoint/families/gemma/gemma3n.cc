// Gemma 3n, the text model: several versions of the residual stream, a linear branch beside
// attention, MLPs whose gates are cut off, keys of earlier layers, and what each layer sees of the
// token itself.
#include <algorithm>

#include "checkpoint/architecture.h"
#include "checkpoint/families/experts/read_experts.h"
#include "checkpoint/families/gemma/read_gemma.h"

namespace invar::checkpoint {

namespace {

// A value of each layer, of a list or of one value for all; `set` says whether it fits.
void read_of_layers(ConfigReader& r, Decoder& d, const char* key,
                    const std::function<bool(Layer&, const json::Value&)>& set) {
  const json::Value* value = r.find(key);
  if (!value) return;
  const bool list = value->is_array();
  bool right = !list || value->size() == d.layers.size();
  for (size_t i = 0; right && i < d.layers.size(); ++i)
    right = set(d.layers[i], list ? value->items[i] : *value);
  if (!right)
    r.reject(onnx::quote(key) + " = " + short_text(*value) + " has no value that fits each of " +
             std::to_string(d.layers.size()) + " layers");
}

bool is_size(const json::Value& n) {
  return n.is_unsigned() && n.to_uint64() >= 1 && n.to_uint64() < (1u << 31);
}

// transformers cuts off 95 % of the gates of the first ten layers of more than ten.
void read_sparsities(ConfigReader& r, Decoder& d) {
  if (!r.find("activation_sparsity_pattern"))
    for (size_t i = 0; d.layers.size() > 10 && i < 10; ++i) d.layers[i].gate_sparsity = 0.95;
  read_of_layers(r, d, "activation_sparsity_pattern", [](Layer& layer, const json::Value& part) {
    layer.gate_sparsity = part.is_number() ? std::max(part.to_double(), 0.0) : 1;
    return layer.gate_sparsity < 1;
  });
}

}  // namespace

void describe_gemma3n(ConfigReader& r, Decoder& d) {
  read_second_gemma(r, d, {.inner = nullptr, .default_kv_heads = 2, .default_head_dim = 256});
  d.norm_offset = false;
  d.attention_scale = 1;
  r.find("query_pre_attn_scalar");  // of released files; the model has no scale of scores
  d.logits_softcap = read_softcap(r, "final_logit_softcapping", 30);
  d.qk_norm = QkNorm::head;
  d.value_norm = true;
  read_layer_types(r, d, read_window(r, 512), every(5));
  read_ropes_of_layers(r, {.theta = 1000000}, {.theta = 10000, .theta_key = "rope_local_base_freq"}, d);
  if (!r.status()) return;
  d.intermediate_size = 16384;
  read_of_layers(r, d, "intermediate_size", [&](Layer& layer, const json::Value& size) {
    if (!is_size(size)) return false;
    if (&layer == d.layers.data()) d.intermediate_size = size.to_int64();
    layer.intermediate_size = size.to_int64() == d.intermediate_size ? 0 : size.to_int64();
    return true;
  });
  read_sparsities(r, d);
  read_shared_keys(r, d, 15);
  d.layer_input_size = r.size("hidden_size_per_layer_input", 256);
  d.layer_input_vocab = r.size("vocab_size_per_layer_input", 262144);
  AltUp& a = d.altup;
  a.inputs = r.size("altup_num_inputs", 4);
  a.active = read_count(r, "altup_active_idx", 0);
  a.scaled = r.flag("altup_correct_scale", true);
  if (!a.scaled) d.names.ignored.push_back(".altup.correct_output_scale");  // there all the same
  a.laurel_rank = r.size("laurel_rank", 64);
  if (a.inputs < 2 || a.inputs > 64) r.refuse("'altup_num_inputs' other than 2 to 64 is not covered");
  if (a.active >= a.inputs) r.reject("'altup_active_idx' is not below 'altup_num_inputs'");
}

}  // namespace invar::checkpoint
