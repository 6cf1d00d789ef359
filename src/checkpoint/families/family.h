// A family of models: one small recipe from its config.json to a Decoder (spec/decoder.md). What a
// family reads of the config it reads with the helpers below; a key that changes results and that
// it does not read must be neutral.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "checkpoint/config_reading/config_reader.h"
#include "checkpoint/config_reading/rope_reader.h"
#include "checkpoint/recipes/decoder.h"

namespace invar::checkpoint {

struct Family {
  const char* model_type;
  void (*describe)(ConfigReader&, Decoder&);
};
std::span<const Family> families();

// vocab_size, hidden_size, intermediate_size, num_hidden_layers, num_attention_heads,
// num_key_value_heads, head_dim, in transformers' usual spelling.
struct SizeKeys {
  const char *hidden = "hidden_size", *inner = "intermediate_size", *layers = "num_hidden_layers",
             *heads = "num_attention_heads", *kv_heads = "num_key_value_heads", *head_dim = "head_dim";
  int64_t default_kv_heads = 0;  // 0: as many as heads
  int64_t default_head_dim = 0;  // 0: hidden_size / heads
};
void read_sizes(ConfigReader&, Decoder&, const SizeKeys& = {});

// The activation under `key`; `allowed` and `fallback` are names of transformers.
void read_activation(ConfigReader&, Decoder&, const char* key, const char* fallback);

// sliding_window: positions that a query sees; 0 where it is null or, without a fallback, absent.
int64_t read_window(ConfigReader&, int64_t fallback);
// The same with use_sliding_window alone: without it, which is the default, sliding_window decides
// nothing, and transformers saves 0 or null.
int64_t read_used_window(ConfigReader&, int64_t fallback);
// layer_types, or where it is absent the layers for which `windowed` is true -> windows of layers.
// `windowed` sees the decoder with its window.
void read_layer_types(ConfigReader&, Decoder&, int64_t window,
                      const std::function<bool(const Decoder&, size_t layer)>& windowed);
// All layers but every `pattern`th.
std::function<bool(const Decoder&, size_t layer)> every(int64_t pattern);

// Tensors that begin with `beginning`, of heads for several tokens (num_nextn_predict_layers), are
// not read.
void ignore_heads_for_more_tokens(ConfigReader&, Decoder&, const char* beginning = "mtp.");

// no_rope_layers, or where it is absent every no_rope_layer_intervalth: layers that do not rotate.
void read_unrotated_layers(ConfigReader&, Decoder&);

// The name of a key of released files and that of transformers -> the one that is there.
const char* either(ConfigReader&, const char* released, const char* newer);

// A positive number that meets f32 values.
float read_factor(ConfigReader&, const char* key, double fallback);

// A softcap; null, and 0 as the fallback, are none.
float read_softcap(ConfigReader&, const char* key, double fallback);

// Reads what Llama-like families share: sizes, hidden_act and rms_norm_eps.
void read_llama_like(ConfigReader&, Decoder&, const SizeKeys& = {}, double epsilon = 1e-6);

}  // namespace invar::checkpoint
