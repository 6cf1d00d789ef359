#include "checkpoint/families/latent/read_latent.h"

#include <algorithm>

namespace invar::checkpoint {

using onnx::quote;

void read_latent(ConfigReader& r, Decoder& d, const LatentDefaults& absent) {
  const int64_t turned = r.size("qk_rope_head_dim", absent.qk_rope_head_dim),
                whole = r.size("qk_nope_head_dim", absent.qk_nope_head_dim) + turned;
  read_llama_like(r, d,
                  {.inner = absent.inner,
                   .layers = absent.layers,
                   .head_dim = "qk_head_dim",
                   .default_kv_heads = absent.kv_heads,
                   .default_head_dim = whole},
                  absent.epsilon);
  // Keys that transformers writes beside those that it reads.
  const int64_t head_dim = absent.temperature ? whole : turned;  // Mistral 4 has the whole head
  for (const auto& [key, size] : {std::pair{"qk_head_dim", whole}, {"head_dim", head_dim}})
    if (r.size(key, size) != size &&
        ((absent.rotated && !absent.deepseek_yarn) || key != std::string_view("head_dim")))
      r.refuse(quote(key) + " other than " + std::to_string(size) +
               ", which the other sizes give, is not covered");
  if (d.kv_heads != d.heads)
    r.refuse("'num_key_value_heads' = " + std::to_string(d.kv_heads) + " is not covered; as many as " +
             quote("num_attention_heads") + ", " + std::to_string(d.heads) + ", are");
  if (turned % 2 != 0)
    r.reject("'qk_rope_head_dim' = " + std::to_string(turned) + " is odd; rotary embedding needs pairs");
  d.kv_lora_rank = r.size("kv_lora_rank", absent.kv_lora_rank);
  if (r.is_null("q_lora_rank"))
    r.find("q_lora_rank");
  else if (absent.q_lora_rank != 0 || r.find("q_lora_rank"))
    d.q_lora_rank = r.size("q_lora_rank", absent.q_lora_rank);
  const int64_t usual = std::max<int64_t>(d.hidden_size / d.heads, 1);
  d.v_head_dim = r.size("v_head_dim", absent.v_head_dim ? absent.v_head_dim : usual);
  d.qkv_bias = d.output_bias = r.flag("attention_bias");
  if (!absent.rotated) {
    d.rotary_dim = turned, d.head_dim = whole;
    d.attention_scale = default_attention_scale(whole);
    r.find("auto_map");
    return;
  }
  d.head_dim = turned;  // the rotary embedding is that of these elements
  const double part = absent.temperature ? static_cast<double>(turned) / static_cast<double>(whole) : 1;
  read_rope(r,
            {.theta = absent.theta,
             .whole = part,
             .longrope = absent.longrope,
             .temperature = absent.temperature,
             .deepseek_yarn = absent.deepseek_yarn},
            d);
  d.head_dim = whole;
  if (r.status()) d.attention_scale = latent_attention_scale(d);
  // Names the class of files that were written before transformers had the family.
  r.find("auto_map");
}

}  // namespace invar::checkpoint
