// What takes the place of attention in recurrent layers: the gated delta rule, a short convolution,
// a state-space layer of Mamba or Mamba-2, or an RG-LRU (spec/decoder.md decoder.50 to decoder.53,
// decoder.61, decoder.62, decoder.65, decoder.76), and blocks before such layers. Part of Decoder.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace invar::checkpoint {

// How weights hold queries, keys, values, gates, decays and rates (decoder.51).
enum class DeltaLayout { separate, joined, by_key_head };

// Parts of names behind those of the layer.
struct DeltaNames {
  std::string prefix = "linear_attn.";  // of all others
  std::string q = "q_proj", k = "k_proj", v = "v_proj", qkv = "in_proj_qkv", qkvz = "in_proj_qkvz";
  std::string gate = "in_proj_z", decay = "in_proj_a", rate = "in_proj_b", rate_decay = "in_proj_ba";
  std::string norm = "norm", out = "out_proj";
  // Of channel_decays: pairs of matrices with a narrow row between them.
  std::string decay_in = "f_a_proj", decay_out = "f_b_proj", gate_in = "g_a_proj", gate_out = "g_b_proj";
};

// The gated delta rule (decoder.50 to decoder.53).
struct GatedDelta {
  DeltaNames names;
  DeltaLayout layout = DeltaLayout::joined;
  int64_t key_heads = 0, value_heads = 0, key_dim = 0, value_dim = 0;  // the last two: of a head
  int64_t taps = 0;                                                    // of the convolutions
  float norm_epsilon = 0;                                              // of the norm of its results
  bool doubled_rate = false;                                           // rates of up to 2
  // As llama.cpp's files have them: head j of values has the keys of head j mod key_heads, and a
  // tensor A is -exp(A_log).
  bool tiled_heads = false, stored_decays = false;
  bool channel_decays = false;  // a decay for each channel of keys, gates by sigmoid (decoder.55)
};

// A causal convolution between two gates (decoder.61). Its tensors begin with `name`.
struct ShortConv {
  std::string name = "conv.";
  int64_t width = 0;  // 0: no layer has one
  bool bias = false;
};

// Mamba-2 (decoder.62). Its tensors begin with `name`.
struct StateSpace {
  std::string name = "mamba.";
  int64_t heads = 0, head_dim = 0;     // heads of values; 0: no layer has one
  int64_t groups = 1, state_size = 0;  // heads of keys and queries, and their size
  int64_t width = 0;                   // of the convolution
  bool in_bias = false, conv_bias = false, out_bias = false;
  float dt_minimum = 0, dt_maximum = 0;  // limits of time steps; 0: none
  bool norm = true, norm_before_gate = false;
  // Factors of what goes in and out, and of the parts of the projection: gate, x, B, C, time steps.
  float in_scale = 1, out_scale = 1;
  std::array<float, 5> scales = {1, 1, 1, 1, 1};
};

// Mamba (decoder.65). Its tensors begin with `name`.
struct SelectiveScan {
  std::string name = "mixer.";
  int64_t channels = 0, state_size = 0, rank = 0;  // rank: of time steps. channels 0: no layer has one
  int64_t width = 0;                               // of the convolution
  bool bias = false, conv_bias = false;
  // Norms of time steps, B and C: with weights, or with weights of 1 and an epsilon of their own.
  bool norm = false;
  float plain_norm_epsilon = 0;
};

// The real-gated linear recurrent unit of Griffin (decoder.76). Its tensors begin with `name`.
struct Rglru {
  std::string name = "temporal_block.";
  int64_t channels = 0, blocks = 0;  // blocks: of the matrices of gates. channels 0: no layer has one
  int64_t width = 0;                 // of the convolution
};

// Blocks of attention and MLP, each of which several layers share (decoder.72). Their tensors lie
// in one of these layers, behind `name`.
struct SharedBlocks {
  std::string name = "shared_transformer.", layer = "mamba_decoder.";
  int64_t count = 0;               // 0: no layer has one
  int64_t rank = 0;                // of what each layer adds to the matrices of its block
  bool attends_with_rank = false;  // to those of queries, keys and values, too
};

}  // namespace invar::checkpoint
