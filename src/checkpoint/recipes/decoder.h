// The description of a decoder-only language model: the switches that a family of models sets, and
// the names of its tensors (spec/decoder.md). The neutral value of a switch is that of Llama.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/recipes/blocks/altup_config.h"
#include "checkpoint/recipes/blocks/mixers.h"
#include "checkpoint/recipes/experts.h"
#include "checkpoint/recipes/rope_frequencies.h"
#include "onnx/recipe.h"

namespace invar::checkpoint {

enum class Norm { rms, layer };
// Where the norms stand around attention and MLP (decoder.8).
enum class Block { pre, post, both, parallel, parallel_two, after, single, normed };
enum class QkNorm { none, head, projection, heads };
// How one weight holds queries, keys and values (decoder.6).
enum class QkvLayout { split, concatenated, grouped, quarters };
enum class Activation { silu, gelu, gelu_tanh, relu, relu_squared, xielu };

// Parts of names between the prefix and ".weight" or ".bias".
struct TensorNames {
  std::string prefix = "model.";
  // Prefixes and heads of checkpoints with other names: of the model without its head, or of a
  // model that this one is a part of. The first one that has layers is taken.
  std::vector<std::pair<std::string, std::string>> other_places;
  std::string embedding = "embed_tokens", embedding_norm, positions, layers = "layers.";
  std::string project_in, project_out;  // between the embedding's size and the layers'
  std::string attention_norm = "input_layernorm", mlp_norm = "post_attention_layernorm";
  std::string attention_post_norm, mlp_post_norm;
  std::string q = "self_attn.q_proj", k = "self_attn.k_proj", v = "self_attn.v_proj",
              qkv = "self_attn.qkv_proj", o = "self_attn.o_proj";
  std::string q_norm = "self_attn.q_norm", k_norm = "self_attn.k_norm";
  std::string attention_gate;                    // "": the matrix of queries has the gates, too
  std::string attention_sub_norm, mlp_sub_norm;  // of what the last matrix takes; "": none
  std::string sinks = "self_attn.sinks";         // a whole name
  bool norm_of_each_head = false;  // QkNorm::heads: a tensor NORM.norms.H.weight for each head H
  std::string gate = "mlp.gate_proj", up = "mlp.up_proj", gate_up = "mlp.gate_up_proj",
              down = "mlp.down_proj";
  std::string final_norm = "norm", head = "lm_head";
  // Parts of names of layers. A layer of the checkpoint is two layers here (decoder.74), and the
  // number of the one stands behind them. Empty: each is one.
  std::vector<std::string> of_halves;
  std::vector<int64_t> skipped;  // numbers of layers of the checkpoint that are none here, ascending
  std::vector<std::string> ignored = {".rotary_emb.inv_freq"};  // ends of names of tables
  std::vector<std::string> ignored_begins;                      // of parts that logits of text do not need
};

// What reads other positions in a layer (decoder.60). Both: attention and a state-space layer side
// by side. A layer of none is an MLP alone. Shared: a block that several layers share, before a
// state-space layer.
enum class Mixer {
  attention,
  gated_delta,
  short_conv,
  state_space,
  both,
  none,
  selective,
  lightning,
  shared,
  rglru
};

// Whether matrices of layers are ternary and rows are rounded to 8 bits before them, and what the
// factor of a matrix does with the product (decoder.69).
enum class Ternary { none, multiplied, divided };

// Queries grow with their positions, in steps (decoder.33).
struct Temperature {
  float beta = 0;          // 0: they do not
  int64_t positions = 0;   // of a step
  int64_t offset = 0;      // added to a position
  bool unrotated = false;  // in the layers without rotary embedding alone
  bool operator==(const Temperature&) const = default;
};

struct Layer {
  Mixer mixer = Mixer::attention;
  bool window = false;  // attention sees the last `Decoder::window` positions alone
  int rope = 0;         // index of Decoder::ropes; -1: none
  bool sparse = false;  // experts in the place of the MLP
  // 0: those of the decoder (decoder.36).
  int64_t heads = 0, head_dim = 0, kv_heads = 0, intermediate_size = 0;
  int64_t keys_of = -1;          // the layer whose keys and values this one uses; -1: it makes its own
  bool values_are_keys = false;  // values are the keys before norm and rotation
  double gate_sparsity = 0;      // part of the MLP's gates that is cut off (decoder.68); 0: none
  bool operator==(const Layer&) const = default;
};

struct Decoder {
  std::string family, architecture;  // model_type and class of transformers
  TensorNames names;
  int64_t vocab_size = 0, hidden_size = 0, intermediate_size = 0;
  int64_t embedding_size = 0;  // 0: hidden_size
  int64_t embedding_rows = 0;  // of the table; 0: vocab_size
  int64_t heads = 0, kv_heads = 0, head_dim = 0, max_positions = 0;
  bool long_context = false;  // the program of the prompts beyond LongRoPE's original length
  std::vector<Layer> layers;
  int64_t window = 0;  // positions that a query sees, its own included; 0: no layer has a window

  Norm norm = Norm::rms;
  float norm_epsilon = 0;
  bool norm_bias = false, norm_offset = false;  // offset: the weight is 1 + what is stored
  bool norm_weight = true;                      // else the weights of norms are 1
  Block block = Block::pre;
  bool final_norm = true;

  QkvLayout qkv_layout = QkvLayout::split;
  bool transposed_weights = false;  // linear weights are stored [in, out]
  bool qkv_bias = false, output_bias = false, mlp_bias = false, head_bias = false;
  QkNorm qk_norm = QkNorm::none;
  bool qk_norm_after_rope = false, qk_norm_bias = false;
  bool qk_norm_weight = true;    // else the weights of these norms are 1
  bool qk_norm_rotated = false;  // in the layers with rotary embedding alone
  float qkv_clip = 0;            // limit of queries, keys and values; 0: none
  float attention_in_scale = 1, attention_out_scale = 1, key_scale = 1, value_scale = 1;
  float attention_scale = 0, attention_softcap = 0;  // softcap 0: none
  bool attention_sinks = false;                      // a score for each head that no key has
  bool attention_sinks_of_windows = false;           // in windowed layers alone
  bool attention_gate = false;                       // of each result of a head, made with its query
  bool attention_gate_of_heads = false;              // one number for each head instead
  bool attention_gate_softplus = false;              // opened by softplus, not by sigmoid
  bool attention_scale_by_layer = false;             // divided by the number of the layer, from 1 on
  float alibi_bias_max = 0, alibi_scale = 1;         // of the slopes (decoder.26); 0: no biases
  // Latent attention (decoder.20): the sizes of what keys and values, and queries, are made from.
  // 0: they are made from the layer's input. head_dim is then that of queries and keys.
  int64_t kv_lora_rank = 0, q_lora_rank = 0;
  int64_t v_head_dim = 0;                       // 0: head_dim
  std::array<float, 2> latent_scales = {1, 1};  // of queries, and of what keys and values are made from

  bool value_norm = false;  // of each head, without weight

  std::vector<RopeParameters> ropes;
  int64_t rotary_dim = 0;  // elements of a head that are rotated
  bool rope_interleaved = false;
  bool rope_reversed = false;  // the angles are negative
  Temperature temperature;
  int64_t position_offset = 0;        // of the table of positions; the model has one if names.positions
  bool sinusoidal_positions = false;  // the table is computed, not stored

  std::array<float, 2> mlp_scales = {1, 1};  // of the gate, and of what the MLP gives
  bool gated_mlp = true, fused_gate_up = false;
  Ternary ternary = Ternary::none;
  Activation activation = Activation::silu;
  // Of Block::normed: the factors of the norm and of what is added to it, for attention, lightning
  // attention and the MLP.
  std::array<float, 6> normed_scales = {1, 1, 1, 1, 1, 1};
  float embedding_scale = 1, residual_scale = 1, logits_scale = 1, logits_divisor = 1, logits_softcap = 0;
  bool tied = false;
  Experts experts;                // of the sparse layers
  GatedDelta delta;               // of the layers with Mixer::gated_delta
  int64_t layer_input_size = 0;   // of what each layer sees of the token itself (decoder.37); 0: nothing
  int64_t layer_input_vocab = 0;  // rows of that table
  bool layer_scalar = false;      // what leaves a layer is multiplied by a number
  AltUp altup;
  ShortConv short_conv;
  StateSpace state_space;
  SelectiveScan selective_scan;
  Rglru rglru;
  SharedBlocks shared_blocks;
  int64_t unused_layers =
      0;  // behind the last one, for predicting several tokens; their tensors are not read

  bool takes_hidden = false;  // the head for several tokens, which reads the decoder's last state, too

  std::map<std::string, std::string> metadata;  // for the model's metadata_props
};

// 1 / sqrt(size), the scale of scores where a model says no other.
float default_attention_scale(int64_t size);
// The scale of latent attention. A rotary embedding with mscale_all_dim changes it (decoder.23).
float latent_attention_scale(const Decoder&);

// The recipe of a program and its parameters (llama.13, decoder.13): several spellings of a
// configuration give one value.
onnx::Recipe recipe_of(const Decoder&);

}  // namespace invar::checkpoint
