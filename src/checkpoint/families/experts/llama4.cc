// Llama 4, the text model: one expert beside one for all tokens, some layers do not rotate.
#include <algorithm>

#include "checkpoint/architecture.h"
#include "checkpoint/families/experts/read_experts.h"

namespace invar::checkpoint {
namespace {

void read_experts_of_layers(ConfigReader& r, Decoder& d) {
  read_experts(r, d, {.inner = nullptr, .default_count = 16, .default_chosen = 1});
  Experts& e = d.experts;
  e.routing = Routing::sigmoid_of_chosen;
  e.weighted_input = true;
  e.layout = ExpertLayout::halves;
  e.shared_intermediate_size = e.intermediate_size;
  ExpertNames& n = e.names;
  n.router = "feed_forward.router", n.shared = "feed_forward.shared_expert.";
  n.gate_up_stack = "feed_forward.experts.gate_up_proj", n.down_stack = "feed_forward.experts.down_proj";
  const auto step = static_cast<size_t>(r.size("interleave_moe_layer_step", 1));
  const auto* listed = r.find("moe_layers");
  if (listed && (!listed->is_array() || !std::ranges::all_of(listed->items, &json::Value::is_unsigned)))
    return r.reject("'moe_layers' is not a list of layers");
  for (size_t i = 0; i < d.layers.size(); ++i) {
    const auto is_layer = [&](const json::Value& number) { return number == i; };
    d.layers[i].sparse = listed ? std::ranges::any_of(listed->items, is_layer) : (i + 1) % step == 0;
  }
  d.intermediate_size = r.size("intermediate_size_mlp", 16384);
}

// Rotated layers see the positions of their chunk alone. Within the first chunk that is all of
// them, and longer sequences are refused (decoder.35).
void read_chunks(ConfigReader& r, Decoder& d) {
  const auto* types = r.find("layer_types");
  if (types && (!types->is_array() || types->size() != d.layers.size()))
    return r.reject("'layer_types' is not a list of " + std::to_string(d.layers.size()) + " types");
  bool chunked = !types;
  for (size_t i = 0; types && i < types->size(); ++i) {
    const json::Value& type = types->items[i];
    if (type == "chunked_attention")
      chunked = true;
    else if (type != "full_attention")
      r.refuse("'layer_types': " + short_text(type) +
               " is not covered; full_attention and chunked_attention are");
  }
  const int64_t size = r.is_null("attention_chunk_size") ? 0 : r.size("attention_chunk_size", 8192);
  if (chunked && size != 0) d.max_positions = std::min(d.max_positions, size);
}

}  // namespace

void describe_llama4(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {.default_kv_heads = 8, .default_head_dim = r.is_null("head_dim") ? 0 : 128}, 1e-5);
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  d.names.gate = "feed_forward.gate_proj", d.names.up = "feed_forward.up_proj";
  d.names.down = "feed_forward.down_proj";
  d.rope_interleaved = true;
  read_unrotated_layers(r, d);
  if (r.flag("use_qk_norm", true)) d.qk_norm = QkNorm::head;
  d.qk_norm_after_rope = d.qk_norm_rotated = d.qk_norm != QkNorm::none;
  d.qk_norm_weight = d.qk_norm == QkNorm::none;
  read_experts_of_layers(r, d);
  const float beta = read_factor(r, "attn_scale", 0.1);
  const int64_t step = r.size("floor_scale", 8192);
  if (r.flag("attn_temperature_tuning", true)) d.temperature = {beta, step, 1, true};
  read_chunks(r, d);
  read_rope(r, {.theta = 500000}, d);
}

}  // namespace invar::checkpoint
