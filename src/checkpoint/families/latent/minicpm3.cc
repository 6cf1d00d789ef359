// MiniCPM: Llama with scales. MiniCPM 3: the same with latent attention.
#include <cmath>

#include "checkpoint/families/latent/read_latent.h"

namespace invar::checkpoint {

static void read_scales(ConfigReader& r, Decoder& d, double embedding, double usual_depth,
                        double usual_base) {
  d.tied = r.flag("tie_word_embeddings", true);
  d.embedding_scale = read_factor(r, "scale_emb", embedding);
  const auto layers = std::sqrt(static_cast<double>(d.layers.size()));
  const double depth = r.positive("scale_depth", r.is_null("scale_depth") ? layers : usual_depth);
  d.residual_scale = static_cast<float>(depth / layers);
  const auto width = static_cast<double>(d.hidden_size);
  const double base = r.positive("dim_model_base", r.is_null("dim_model_base") ? width : usual_base);
  d.logits_divisor = static_cast<float>(width / base);
}

// transformers has no class of it. MiniCPM 4.1 has an attention to chosen blocks, too.
void describe_minicpm(ConfigReader& r, Decoder& d) {
  read_llama_like(r, d);
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  r.find("auto_map");
  r.require_neutral("sparse_config");
  read_scales(r, d, 1, 1, 1);
  read_rope(r, {.longrope = true}, d);
}

void describe_minicpm3(ConfigReader& r, Decoder& d) {
  read_latent(r, d, {768, 256, 64, 32, 0, 40, 1e-5, true});
  d.mlp_bias = r.flag("mlp_bias");
  read_scales(r, d, 12, 1.4, 256);
}

}  // namespace invar::checkpoint
