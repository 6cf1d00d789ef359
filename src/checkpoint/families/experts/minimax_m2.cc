// MiniMax M2: norms of whole queries and keys, the experts of Mixtral, sigmoid routing with a bias
// for the choice.
#include "checkpoint/families/experts/read_experts.h"

namespace invar::checkpoint {

void describe_minimax_m2(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d, {.default_kv_heads = 8, .default_head_dim = 128});
  d.tied = r.flag("tie_word_embeddings");
  d.qk_norm = QkNorm::projection;
  read_experts(r, d, {.inner = nullptr, .default_count = 256, .default_chosen = 8});
  Experts& e = d.experts;
  name_as_mixtral(e.names);
  e.names.correction_bias = "block_sparse_moe.e_score_correction_bias";
  e.routing = Routing::sigmoid;
  e.correction_bias = e.normalized = true;
  // Files name the rotated part of a head by its size.
  const auto rotated = static_cast<double>(r.size("rotary_dim", d.head_dim));
  read_rope(r, {.theta = 5000000, .partial = rotated / static_cast<double>(d.head_dim)}, d);
}

}  // namespace invar::checkpoint
