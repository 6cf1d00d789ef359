#include "checkpoint/families/encoder/encoder_family.h"

namespace invar::checkpoint {

#define INVAR_ENCODERS(X)       \
  X("bert", bert)               \
  X("electra", electra)         \
  X("roberta", roberta)         \
  X("camembert", camembert)     \
  X("xlm-roberta", xlm_roberta) \
  X("distilbert", distilbert)   \
  X("mpnet", mpnet)             \
  X("modernbert", modernbert)

#define INVAR_DECLARE(type, function) void describe_##function(ConfigReader&, Encoder&);
#define INVAR_ROW(type, function) {type, describe_##function},
INVAR_ENCODERS(INVAR_DECLARE)

std::span<const EncoderFamily> encoder_families() {
  static constexpr EncoderFamily kFamilies[] = {INVAR_ENCODERS(INVAR_ROW)};
  return kFamilies;
}

void read_blocks(ConfigReader& r, Encoder& e, const SizeKeys& keys, const char* activation_key) {
  Decoder sizes;
  read_sizes(r, sizes, keys);
  read_activation(r, sizes, activation_key, "gelu");
  e.vocab_size = sizes.vocab_size;
  e.hidden_size = e.embedding_size = sizes.hidden_size;
  e.intermediate_size = sizes.intermediate_size;
  e.heads = sizes.heads, e.head_dim = sizes.head_dim;
  e.layers = sizes.layers;
  e.activation = sizes.activation;
}

void read_bert_like(ConfigReader& r, Encoder& e) {
  read_blocks(r, e, {.kv_heads = nullptr, .head_dim = nullptr}, "hidden_act");
  e.norm_epsilon = read_factor(r, "layer_norm_eps", 1e-12);
  e.position_rows = r.size("max_position_embeddings", 512);
  r.require_neutral("is_decoder");
  r.require_neutral("position_embedding_type", "absolute");
}

}  // namespace invar::checkpoint
