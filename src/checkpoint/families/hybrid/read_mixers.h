// Reads the keys that families with layers in the place of attention share.
#pragma once

#include <initializer_list>
#include <utility>

#include "checkpoint/families/family.h"

namespace invar::checkpoint {

// The value of `types`, a list of a name for each layer -> the mixers of the layers. Other names
// are refused.
void read_mixers(ConfigReader&, Decoder&, const char* key, const json::Value& types,
                 std::initializer_list<std::pair<const char*, Mixer>> names);

// The same from layer_types, or where it is absent from `recurrent`, true for layers of the gated
// delta rule.
void read_mixers(ConfigReader&, Decoder&, const std::function<bool(size_t layer)>& recurrent);
// The same from a list of the numbers of the layers with attention; `other`: the mixer of the
// others.
void read_attention_layers(ConfigReader&, Decoder&, const char* key, const json::Value& numbers, Mixer other);

struct StateSpaceKeys {
  const char *heads = "mamba_n_heads", *head_dim = "mamba_d_head", *groups = "mamba_n_groups",
             *state = "mamba_d_state", *width = "mamba_d_conv", *conv_bias = "mamba_conv_bias",
             *in_bias = "mamba_proj_bias", *out_bias = "mamba_proj_bias", *activation = "hidden_act";
  int64_t default_heads = 128, default_groups = 1, default_state = 256;
};
// `inner`: the size that the heads divide; 0: the key head_dim says their size, absent 64.
void read_state_space(ConfigReader&, Decoder&, int64_t inner, const StateSpaceKeys& = {});
// time_step_limit: the least and the largest time step.
void read_time_step_limit(ConfigReader&, Decoder&);
// linear_conv_kernel_dim, and what layers of the gated delta rule ask of the others. Needs the
// sizes of delta and norm_epsilon.
void read_delta(ConfigReader&, Decoder&);
// A width of a convolution.
int64_t read_width(ConfigReader&, const char* key, int64_t fallback);

// Mamba and Mamba-2 alone: sizes, layers of this mixer and no others, and the names of their
// tensors. tied: what the absence of tie_word_embeddings says.
void read_mixers_alone(ConfigReader&, Decoder&, Mixer, bool tied);

}  // namespace invar::checkpoint
