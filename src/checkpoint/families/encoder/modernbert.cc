// ModernBERT: norms before the blocks, rotary embeddings, windows in two of three layers.
#include "checkpoint/families/encoder/encoder_family.h"

namespace invar::checkpoint {
namespace {

// The layers' windows and rotary embeddings.
void read_layers(ConfigReader& r, Encoder& e) {
  Decoder d;
  d.layers = e.layers, d.head_dim = e.head_dim;
  d.max_positions = r.size("max_position_embeddings", 8192);
  const int64_t pattern = r.size("global_attn_every_n_layers", 3);
  read_layer_types(r, d, std::max<int64_t>(r.size("local_attention", 128) / 2, 1),
                   [&](const Decoder&, size_t i) { return i % static_cast<size_t>(pattern) != 0; });
  read_ropes_of_layers(r, {.theta = 160000, .theta_key = "global_rope_theta", .scaled = false},
                       {.theta = 10000, .theta_key = "local_rope_theta", .scaled = false}, d);
  e.layers = d.layers, e.ropes = d.ropes, e.window = d.window;
}

}  // namespace

void describe_modernbert(ConfigReader& r, Encoder& e) {
  read_blocks(r, e, {.kv_heads = nullptr, .head_dim = nullptr}, "hidden_activation");
  read_layers(r, e);
  e.norm_epsilon = read_factor(r, "norm_eps", 1e-5);
  e.norm_bias = r.flag("norm_bias");
  e.attention_bias = r.flag("attention_bias");
  e.mlp_bias = r.flag("mlp_bias");
  e.pre_norm = e.gated_mlp = true;
  e.positions = Positions::none;
  EncoderNames& n = e.names;
  n.prefix = "model.";
  n.words = "embeddings.tok_embeddings";
  n.embedding_norm = "embeddings.norm";
  n.layers = "layers.";
  n.attention_norm = "attn_norm";
  n.qkv = "attn.Wqkv";
  n.o = "attn.Wo";
  n.mlp_norm = "mlp_norm";
  n.up = "mlp.Wi";
  n.down = "mlp.Wo";
  n.final_norm = "final_norm";
  Classifier& c = e.classifier;
  c.dense = "head.dense";
  c.dense_bias = r.flag("classifier_bias");
  c.norm = "head.norm";
  c.activation = Classifier::gelu;
  r.require_neutral("classifier_activation", "gelu");
  c.pooling = r.text("classifier_pooling", "cls");
  if (c.pooling != "cls" && c.pooling != "mean")
    r.reject("'classifier_pooling' is neither \"cls\" nor \"mean\"");
}

}  // namespace invar::checkpoint
