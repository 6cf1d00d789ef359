// Youtu-LLM: the attention of DeepSeek-V3 and a dense MLP.
#include "checkpoint/families/latent/read_latent.h"

namespace invar::checkpoint {

void describe_youtu(ConfigReader& r, Decoder& d) {
  read_latent(r, d, {.kv_heads = 16});
  d.tied = r.flag("tie_word_embeddings", true);
  d.rope_interleaved = r.flag("rope_interleave", true);
}

}  // namespace invar::checkpoint
