// Qwen 2 and 2.5 (biases of queries, keys and values), Qwen 3 (norms of queries and keys).
#include "checkpoint/families/family.h"

namespace invar::checkpoint {
namespace {

void read_windows(ConfigReader& r, Decoder& d) {
  const int64_t window = read_used_window(r, 4096);
  const int64_t first =
      r.find("max_window_layers") && *r.find("max_window_layers") == 0 ? 0 : r.size("max_window_layers", 28);
  read_layer_types(r, d, window,
                   [&](const Decoder&, size_t i) { return window != 0 && static_cast<int64_t>(i) >= first; });
}

}  // namespace

void describe_qwen2(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {.default_kv_heads = 32});
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = true;
  read_windows(r, d);
  read_rope(r, {}, d);
}

// MiMo of Xiaomi: Qwen 2 with a head for several tokens.
void describe_mimo(ConfigReader& r, Decoder& d) {
  describe_qwen2(r, d);
  if (!r.flag("attention_bias", true)) r.refuse("'attention_bias' = false is not covered");
  r.require_neutral("use_mrope");
  ignore_heads_for_more_tokens(r, d, "model.mtp_layers.");
}

void describe_qwen3(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {.default_kv_heads = 32, .default_head_dim = 128});
  d.tied = r.flag("tie_word_embeddings");
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  d.qk_norm = QkNorm::head;
  read_windows(r, d);
  read_rope(r, {}, d);
}

}  // namespace invar::checkpoint
