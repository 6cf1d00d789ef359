// Reads the keys that families with multi-head latent attention share (spec/decoder.md decoder.20).
#pragma once

#include "checkpoint/families/family.h"

namespace invar::checkpoint {

// Values of absent keys. v_head_dim 0: hidden_size / heads.
struct LatentDefaults {
  int64_t q_lora_rank = 1536, kv_lora_rank = 512;
  int64_t qk_nope_head_dim = 128, qk_rope_head_dim = 64, v_head_dim = 128;
  int64_t kv_heads = 0;  // 0: as many as heads
  double epsilon = 1e-6;
  bool longrope = false;
  bool temperature = false;    // of queries, and the rotated part of a head is named as one
  bool rotated = true;         // else no part of a head is, and head_dim says nothing
  bool deepseek_yarn = false;  // another name of yarn; head_dim is that of the memory of others
  double theta = 10000;
  const char *inner = "intermediate_size", *layers = "num_hidden_layers";  // keys
};
// Sizes, ranks, rotary embedding, scale of scores, hidden_act, rms_norm_eps and attention_bias.
void read_latent(ConfigReader&, Decoder&, const LatentDefaults& = {});

}  // namespace invar::checkpoint
