// GPT: norms behind attention and MLP. GPT-2: a table of positions, weights stored transposed.
// GPT-J: partly rotated, in parallel. CodeGen: the same with joined projections. GPT BigCode: one
// head of keys. GPT Neo: windows in every second layer, scores without scale.
#include <algorithm>

#include "checkpoint/architecture.h"
#include "checkpoint/families/family.h"

namespace invar::checkpoint {

namespace {

constexpr SizeKeys kGptSizes = {.hidden = "n_embd",
                                .inner = nullptr,
                                .layers = "n_layer",
                                .heads = "n_head",
                                .kv_heads = nullptr,
                                .head_dim = nullptr};

void read_gpt(ConfigReader& r, Decoder& d, const SizeKeys& sizes = kGptSizes, const char* inner = "n_inner",
              const char* activation = "gelu_new") {
  read_sizes(r, d, sizes);
  d.intermediate_size = r.size(inner, 4 * d.hidden_size);
  read_activation(r, d, "activation_function", activation);
  TensorNames& n = d.names;
  n.prefix = "transformer.";
  n.embedding = "wte";
  n.layers = "h.";
  n.attention_norm = "ln_1";
  n.mlp_norm = "ln_2";
  n.final_norm = "ln_f";
  n.ignored = {".attn.bias", ".attn.masked_bias"};
  d.norm = Norm::layer;
  d.norm_bias = d.mlp_bias = true;
  d.norm_epsilon = read_factor(r, "layer_norm_epsilon", 1e-5);
  d.gated_mlp = false;
}

// Names of GPT-2 but for the prefix.
void name_as_gpt2(TensorNames& n) {
  n.positions = "wpe";
  n.qkv = "attn.c_attn", n.o = "attn.c_proj";
  n.up = "mlp.c_fc", n.down = "mlp.c_proj";
}

// attention_types: pairs of a list of `global` and `local` and how often it comes.
void read_local_layers(ConfigReader& r, Decoder& d) {
  const json::Value* types = r.find("attention_types");
  const json::Value usual = json::list({json::list({json::list({"global", "local"}), 12})});
  std::vector<json::Value> layers;
  for (const json::Value& pair : (types && types->is_array() ? *types : usual).items) {
    const bool right = pair.is_array() && pair.size() == 2 && pair.items[0].is_array() &&
                       pair.items[1].is_unsigned() && pair.items[1].to_uint64() <= d.layers.size();
    for (uint64_t n = 0; right && n < pair.items[1].to_uint64(); ++n)
      layers.insert(layers.end(), pair.items[0].items.begin(), pair.items[0].items.end());
  }
  const auto known = [](const json::Value& v) { return v == "global" || v == "local"; };
  if (layers.size() != d.layers.size() || !std::ranges::all_of(layers, known))
    return r.reject("'attention_types' does not say 'global' or 'local' of each of " +
                    std::to_string(d.layers.size()) + " layers");
  for (size_t i = 0; i < layers.size(); ++i) d.layers[i].window = layers[i] == "local";
  if (const json::Value* given = r.find("attention_layers"); given && *given != json::list(layers))
    r.reject("'attention_layers' and 'attention_types' disagree");
}

}  // namespace

void describe_gpt_bigcode(ConfigReader& r, Decoder& d) {
  read_gpt(r, d, kGptSizes, "n_inner", "gelu_pytorch_tanh");
  name_as_gpt2(d.names);
  d.tied = r.flag("tie_word_embeddings", true);
  d.qkv_bias = d.output_bias = true;
  const bool shared = r.flag("multi_query", true);
  if (shared) d.kv_heads = 1;
  d.qkv_layout = shared ? QkvLayout::concatenated : QkvLayout::grouped;
  if (!r.flag("scale_attn_weights", true)) d.attention_scale = 1;
}

void describe_gpt_neo(ConfigReader& r, Decoder& d) {
  read_gpt(r, d,
           {.inner = nullptr,
            .layers = "num_layers",
            .heads = "num_heads",
            .kv_heads = nullptr,
            .head_dim = nullptr},
           "intermediate_size");
  TensorNames& n = d.names;
  name_as_gpt2(n);
  n.ignored = {".attn.attention.bias", ".attn.attention.masked_bias"};
  n.q = "attn.attention.q_proj", n.k = "attn.attention.k_proj", n.v = "attn.attention.v_proj";
  n.o = "attn.attention.out_proj";
  d.tied = r.flag("tie_word_embeddings", true);
  d.output_bias = true;
  d.attention_scale = 1;
  d.window = r.size("window_size", 256);
  read_local_layers(r, d);
}

void describe_gpt2(ConfigReader& r, Decoder& d) {
  read_gpt(r, d);
  TensorNames& n = d.names;
  n.other_places = {{"", n.head}};
  name_as_gpt2(n);
  d.tied = r.flag("tie_word_embeddings", true);
  d.transposed_weights = true;
  d.qkv_layout = QkvLayout::concatenated;
  d.qkv_bias = d.output_bias = true;
  d.attention_scale_by_layer = r.flag("scale_attn_by_inverse_layer_idx");
  if (!r.flag("scale_attn_weights", true)) d.attention_scale = 1;
}

// Files have the names of the first code, without the prefix.
void describe_gpt(ConfigReader& r, Decoder& d) {
  read_gpt(r, d);
  TensorNames& n = d.names;
  n.other_places = {{"", n.head}};
  name_as_gpt2(n);
  n.embedding = "tokens_embed", n.positions = "positions_embed";
  n.ignored.push_back("position_ids");
  const std::string name = r.text("afn", "gelu");  // the approximation is called gelu, too
  if (name != "gelu" && name != "gelu_new")
    return r.refuse("'afn' = " + onnx::quote(name) + " is not covered");
  d.activation = Activation::gelu_tanh;
  d.block = Block::after, d.final_norm = false;
  d.tied = r.flag("tie_word_embeddings", true);
  d.transposed_weights = d.qkv_bias = d.output_bias = true;
  d.qkv_layout = QkvLayout::concatenated;
}

void describe_gptj(ConfigReader& r, Decoder& d) {
  read_gpt(r, d);
  TensorNames& n = d.names;
  n.q = "attn.q_proj";
  n.k = "attn.k_proj";
  n.v = "attn.v_proj";
  n.o = "attn.out_proj";
  n.up = "mlp.fc_in";
  n.down = "mlp.fc_out";
  d.block = Block::parallel;
  d.tied = r.flag("tie_word_embeddings");
  d.head_bias = true;
  d.ropes = {RopeParameters{}};
  d.rope_interleaved = true;
  d.rotary_dim = r.is_null("rotary_dim") ? d.head_dim : r.size("rotary_dim", 64);
  if (d.rotary_dim % 2 != 0 || d.rotary_dim > d.head_dim)
    r.reject("'rotary_dim' = " + std::to_string(d.rotary_dim) + " is odd or larger than a head");
}

void describe_codegen(ConfigReader& r, Decoder& d) {
  describe_gptj(r, d);
  d.names.qkv = "attn.qkv_proj";
  d.names.ignored.push_back(".attn.causal_mask");
  d.qkv_layout = QkvLayout::quarters;
  if (d.hidden_size % 4 != 0) r.reject("'n_embd' is not a multiple of 4");
}

}  // namespace invar::checkpoint
