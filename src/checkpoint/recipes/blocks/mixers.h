// What stands in the place of attention: a short convolution, or a state-space layer of Mamba or
// Mamba-2 (spec/decoder.md decoder.61, decoder.62, decoder.65). Part of Decoder.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace invar::checkpoint {

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

}  // namespace invar::checkpoint
