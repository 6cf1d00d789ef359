// MiniCPM 3: latent attention, a dense MLP and the scales of MiniCPM.
#include <cmath>

#include "checkpoint/families/latent/read_latent.h"

namespace invar::checkpoint {

void describe_minicpm3(ConfigReader& r, Decoder& d) {
  read_latent(r, d, {768, 256, 64, 32, 0, 40, 1e-5, true});
  d.tied = r.flag("tie_word_embeddings", true);
  d.mlp_bias = r.flag("mlp_bias");
  d.embedding_scale = read_factor(r, "scale_emb", 12);
  const auto layers = std::sqrt(static_cast<double>(d.layers.size()));
  const double depth = r.positive("scale_depth", r.is_null("scale_depth") ? layers : 1.4);
  d.residual_scale = static_cast<float>(depth / layers);
  const auto width = static_cast<double>(d.hidden_size);
  const double base = r.positive("dim_model_base", r.is_null("dim_model_base") ? width : 256);
  d.logits_divisor = static_cast<float>(width / base);
}

}  // namespace invar::checkpoint
