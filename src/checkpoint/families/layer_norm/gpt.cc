// GPT-2: a table of positions, weights stored transposed. GPT-J: partly rotated, in parallel.
#include "checkpoint/families/family.h"

namespace invar::checkpoint {

namespace {

void read_gpt(ConfigReader& r, Decoder& d) {
  read_sizes(r, d,
             {.hidden = "n_embd",
              .inner = nullptr,
              .layers = "n_layer",
              .heads = "n_head",
              .kv_heads = nullptr,
              .head_dim = nullptr});
  d.intermediate_size = r.size("n_inner", 4 * d.hidden_size);
  read_activation(r, d, "activation_function", "gelu_new");
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

}  // namespace

void describe_gpt2(ConfigReader& r, Decoder& d) {
  read_gpt(r, d);
  TensorNames& n = d.names;
  n.other_places = {{"", n.head}};
  n.positions = "wpe";
  n.qkv = "attn.c_attn";
  n.o = "attn.c_proj";
  n.up = "mlp.c_fc";
  n.down = "mlp.c_proj";
  d.tied = r.flag("tie_word_embeddings", true);
  d.transposed_weights = true;
  d.qkv_layout = QkvLayout::concatenated;
  d.qkv_bias = d.output_bias = true;
  d.attention_scale_by_layer = r.flag("scale_attn_by_inverse_layer_idx");
  if (!r.flag("scale_attn_weights", true)) d.attention_scale = 1;
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

}  // namespace invar::checkpoint
