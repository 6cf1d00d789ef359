// The gated delta rule: what takes the place of attention in the recurrent layers of a decoder
// (spec/decoder.md decoder.50 to decoder.53). Part of Decoder.
#pragma once

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

struct GatedDelta {
  DeltaNames names;
  DeltaLayout layout = DeltaLayout::joined;
  int64_t key_heads = 0, value_heads = 0, key_dim = 0, value_dim = 0;  // the last two: of a head
  int64_t taps = 0;                                                    // of the convolutions
  float norm_epsilon = 0;                                              // of the norm of its results
  bool doubled_rate = false;                                           // rates of up to 2
  bool channel_decays = false;  // a decay for each channel of keys, gates by sigmoid (decoder.55)
};

}  // namespace invar::checkpoint
