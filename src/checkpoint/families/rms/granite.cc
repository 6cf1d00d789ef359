// Granite 3 and 4, the dense models: Llama with four multipliers. HyperCLOVA X has them, too.
// Granite with windows: sinks, and a theta for each layer.
#include <algorithm>
#include <utility>

#include "checkpoint/families/family.h"

namespace invar::checkpoint {

namespace {

void read_granite(ConfigReader& r, Decoder& d, int64_t kv_heads, double epsilon) {
  read_llama_like(r, d, {.default_kv_heads = kv_heads}, epsilon);
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  d.mlp_bias = r.flag("mlp_bias");
  d.embedding_scale = read_factor(r, "embedding_multiplier", 1);
  d.residual_scale = read_factor(r, "residual_multiplier", 1);
  d.attention_scale = read_factor(r, "attention_multiplier", 1);
  d.logits_divisor = read_factor(r, "logits_scaling", 1);
  read_rope(r, {}, d);
}

// layer_rope_theta: that of each layer, 0 of one that does not rotate. Two others at most.
void read_thetas_of_layers(ConfigReader& r, Decoder& d) {
  const json::Value* thetas = r.find("layer_rope_theta");
  if (!thetas || !r.status()) return;
  if (!thetas->is_array() || thetas->size() != d.layers.size())
    return r.reject("'layer_rope_theta' is not a list of " + std::to_string(d.layers.size()) + " numbers");
  std::vector<RopeParameters> ropes;
  for (size_t i = 0; i < d.layers.size(); ++i) {
    const double theta = thetas->items[i].is_number() ? thetas->items[i].to_double() : -1;
    const auto known = std::ranges::find(ropes, theta, &RopeParameters::theta);
    d.layers[i].rope = theta == 0 ? -1 : static_cast<int>(known - ropes.begin());
    if (theta == 0 || known != ropes.end()) continue;
    if (static_cast<float>(theta) <= 0)
      return r.reject("'layer_rope_theta' holds another value than numbers of at least 0");
    ropes.push_back(d.ropes[0]);
    ropes.back().theta = theta;
  }
  if (ropes.size() > 2) r.refuse("'layer_rope_theta' of more than two numbers beside 0 is not covered");
  if (ropes.empty()) d.rotary_dim = 0;
  d.ropes = std::move(ropes);
}

}  // namespace

void describe_granite(ConfigReader& r, Decoder& d) {
  read_granite(r, d, 0, 1e-6);
}

void read_granite_windows(ConfigReader& r, Decoder& d) {
  d.attention_sinks = true;
  read_layer_types(r, d, read_window(r, 128),
                   [](const Decoder& m, size_t i) { return m.window != 0 && i % 4 != 0; });
  read_thetas_of_layers(r, d);
}

void describe_granite_swa(ConfigReader& r, Decoder& d) {
  read_granite(r, d, 4, 1e-5);
  d.tied = r.flag("tie_word_embeddings", true);
  read_granite_windows(r, d);
}

void describe_hyperclovax(ConfigReader& r, Decoder& d) {
  describe_granite(r, d);
  if (!r.find("attention_multiplier")) d.attention_scale = default_attention_scale(d.head_dim);
  d.logits_scale = std::exchange(d.logits_divisor, 1.0f);
  if (!r.flag("use_post_norm", true)) return;
  d.block = Block::both;
  d.names.attention_post_norm = "post_norm1";
  d.names.mlp_post_norm = "post_norm2";
}

}  // namespace invar::checkpoint
