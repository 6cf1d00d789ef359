// Gemma 4, the text model: layers of two kinds of heads, layers that use the keys and values of an
// earlier one, what each layer sees of the token itself, and experts beside the MLP.
#include <algorithm>

#include "checkpoint/architecture.h"
#include "checkpoint/families/experts/read_experts.h"
#include "checkpoint/families/gemma/read_gemma.h"

namespace invar::checkpoint {

namespace {

// The object of a layer; its number may begin with zeros.
const json::Value* of_layer(const json::Value& saved, size_t number) {
  for (const auto& [name, value] : saved.members)
    if (!name.empty() &&
        name.substr(std::min(name.find_first_not_of('0'), name.size() - 1)) == std::to_string(number))
      return &value;
  return nullptr;
}

// Heads of the layers without window: global_head_dim and num_global_key_value_heads, or, as
// transformers saves it, the per_layer_config of each of them.
void read_global_heads(ConfigReader& r, Decoder& d, bool keys_are_values) {
  int64_t dim = r.size("global_head_dim", 512), heads = d.kv_heads;
  if (keys_are_values && r.find("num_global_key_value_heads"))
    heads = r.size("num_global_key_value_heads", 0);
  const json::Value* saved = r.find("per_layer_config");
  if (saved && !saved->is_object()) return r.reject("'per_layer_config' is not an object");
  bool first = true;
  for (size_t i = 0; saved && i < d.layers.size() && r.status(); ++i) {
    const json::Value* layer = of_layer(*saved, i);
    if (d.layers[i].window != !layer)
      return r.refuse("'per_layer_config' of other layers than those without window is not covered");
    if (!layer) continue;
    ConfigReader inner(*layer, r.where() + ": per_layer_config");
    const int64_t own_dim = inner.size("head_dim", d.head_dim),
                  own_heads = inner.size("num_key_value_heads", d.kv_heads);
    if (!inner.status()) return r.fail(inner.status().error());
    if (!first && (own_dim != dim || own_heads != heads))
      return r.refuse("'per_layer_config' that differs between layers is not covered");
    for (const auto& [key, value] : layer->members)
      if (key != "head_dim" && key != "num_key_value_heads")
        return r.refuse("'per_layer_config': " + onnx::quote(key) + " is not covered");
    dim = own_dim, heads = own_heads, first = false;
  }
  if (dim % 2 != 0 || d.heads % heads != 0)
    return r.reject("the heads of layers without window do not fit: " + std::to_string(heads) + " of " +
                    std::to_string(dim) + " elements");
  for (Layer& layer : d.layers) {
    if (layer.window) continue;
    if (dim != d.head_dim) layer.head_dim = dim;
    if (heads != d.kv_heads) layer.kv_heads = heads;
    layer.values_are_keys = keys_are_values;
  }
  d.ropes[0].size = dim;
}

void read_experts_beside(ConfigReader& r, Decoder& d) {
  if (!r.flag("enable_moe_block")) {
    for (const char* key : {"num_experts", "top_k_experts", "moe_intermediate_size"}) r.find(key);
    return;
  }
  read_experts(r, d, {.chosen = "top_k_experts"});
  Experts& e = d.experts;
  e.layout = ExpertLayout::stacked;
  e.normalized = e.beside_mlp = true;
  e.names.router = "router.proj", e.names.expert_scale = "router.per_expert_scale";
  e.names.gate_up_stack = "experts.gate_up_proj", e.names.down_stack = "experts.down_proj";
}

}  // namespace

void read_shared_keys(ConfigReader& r, Decoder& d, int64_t fallback) {
  const auto count = static_cast<int64_t>(d.layers.size()),
             shared = read_count(r, "num_kv_shared_layers", fallback);
  for (int64_t i = std::max<int64_t>(count - shared, 0); i < count && r.status(); ++i) {
    Layer& layer = d.layers[static_cast<size_t>(i)];
    int64_t source = count - shared - 1;
    while (source >= 0 && d.layers[static_cast<size_t>(source)].window != layer.window) --source;
    if (source < 0)
      return r.reject("'num_kv_shared_layers' leaves no layer whose keys layer " + std::to_string(i) +
                      " can use");
    layer.keys_of = source;
    layer.values_are_keys = false;
    // Old files have tensors that nothing reads.
    for (const char* name :
         {"k_proj.weight", "v_proj.weight", "k_norm.weight", "v_norm.weight", "k_proj.bias", "v_proj.bias"})
      d.names.ignored.push_back("." + d.names.layers + std::to_string(i) + ".self_attn." + name);
  }
}

namespace {

void read_gemma4(ConfigReader& r, Decoder& d, int64_t window) {
  read_second_gemma(r, d);
  d.norm_offset = false;
  d.attention_scale = 1;
  d.logits_softcap = read_softcap(r, "final_logit_softcapping", 0);
  d.qk_norm = QkNorm::head;
  d.value_norm = d.layer_scalar = true;
  // "vision": pictures alone see what follows.
  if (const std::string both = r.text("use_bidirectional_attention", "vision"); both != "vision")
    r.refuse("'use_bidirectional_attention' = " + onnx::quote(both) + " is not covered");
  read_layer_types(r, d, read_window(r, window), every(6));
  if (!d.layers.empty()) d.layers.back().window = false;  // whatever layer_types says
  require_rope_object(r, d);
  read_ropes_of_layers(r, {.theta = 1000000, .theta_key = nullptr, .proportional = true},
                       {.theta = 10000, .theta_key = nullptr}, d);
  if (!r.status()) return;
  read_global_heads(r, d, r.flag("attention_k_eq_v"));
  read_shared_keys(r, d, 0);
  if (r.flag("use_double_wide_mlp"))
    for (Layer& layer : d.layers)
      if (layer.keys_of >= 0) layer.intermediate_size = 2 * d.intermediate_size;
}

}  // namespace

// Gemma 4 12B: without inputs of layers and experts.
void describe_gemma4_unified(ConfigReader& r, Decoder& d) {
  read_gemma4(r, d, 1024);
}

void describe_gemma4(ConfigReader& r, Decoder& d) {
  read_gemma4(r, d, 512);  // where it refuses, keys that nothing reads would be named first
  d.layer_input_size = read_count(r, "hidden_size_per_layer_input", 256);
  d.layer_input_vocab = r.size("vocab_size_per_layer_input", 262144);
  if (d.layer_input_size != 0 && d.layer_input_vocab < d.vocab_size)
    r.refuse("'vocab_size_per_layer_input' below 'vocab_size' is not covered");
  read_experts_beside(r, d);
}

}  // namespace invar::checkpoint
