// MPT: linear biases of scores in the place of positions, no biases of linear layers.
#include "checkpoint/architecture.h"
#include "checkpoint/families/family.h"

namespace invar::checkpoint {

namespace {

void read_attention(ConfigReader& top, Decoder& d) {
  static const json::Value kNone(json::Value::object);
  const json::Value* object = top.find("attn_config");
  if (object && !object->is_object()) return top.reject("'attn_config' is not an object");
  ConfigReader r(object ? *object : kNone, top.where() + ": attn_config");
  d.alibi_bias_max = 8;
  if (r.size("alibi_bias_max", 8) != 8)
    r.refuse("'alibi_bias_max' other than 8 is not covered: transformers ignores it");
  d.qkv_clip = static_cast<float>(r.optional("clip_qkv"));
  if (r.find("softmax_scale")) d.attention_scale = read_factor(r, "softmax_scale", 0);
  if (!r.flag("alibi", true)) r.refuse("'alibi' = false is not covered: transformers ignores it");
  for (const char* key : {"prefix_lm", "qk_ln", "attn_uses_sequence_id", "qk_gn", "sliding_window_size"})
    r.require_neutral(key, -1);
  if (const std::string type = r.text("attn_type", "multihead_attention"); type != "multihead_attention")
    r.refuse("'attn_type' = " + onnx::quote(type) + " is not covered; multihead_attention is");
  if (!r.status()) top.fail(r.status().error());
}

}  // namespace

void describe_mpt(ConfigReader& r, Decoder& d) {
  read_sizes(r, d,
             {.hidden = "d_model",
              .inner = nullptr,
              .layers = "n_layers",
              .heads = "n_heads",
              .kv_heads = nullptr,
              .head_dim = nullptr});
  d.intermediate_size = 4 * d.hidden_size;
  if (r.size("expansion_ratio", 4) != 4)
    r.refuse("'expansion_ratio' other than 4 is not covered: transformers ignores it");
  TensorNames& n = d.names;
  n.prefix = "transformer.";
  n.embedding = "wte";
  n.layers = "blocks.";
  n.attention_norm = "norm_1";
  n.mlp_norm = "norm_2";
  n.qkv = "attn.Wqkv";
  n.o = "attn.out_proj";
  n.up = "ffn.up_proj";
  n.down = "ffn.down_proj";
  n.final_norm = "norm_f";
  d.norm = Norm::layer;
  d.norm_epsilon = read_factor(r, "layer_norm_epsilon", 1e-5);
  d.qkv_layout = QkvLayout::concatenated;
  d.gated_mlp = false;
  d.activation = Activation::gelu;
  d.tied = r.flag("tie_word_embeddings", true);
  read_attention(r, d);
  if (!r.flag("no_bias", true)) r.refuse("'no_bias' = false is not covered: transformers ignores it");
  r.require_neutral("logit_scale");
  const std::string norm = r.text("norm_type", "low_precision_layernorm");
  if (norm != "low_precision_layernorm" && norm != "layernorm")
    r.refuse("'norm_type' = " + onnx::quote(norm) + " is not covered; low_precision_layernorm is");
}

}  // namespace invar::checkpoint
