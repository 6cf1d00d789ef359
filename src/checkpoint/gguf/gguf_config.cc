// config.json of a GGUF file (spec/weights.md weights.12).
#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "base/hash/sha256.h"
#include "checkpoint/gguf/gguf_keys.h"
#include "onnx/error_text.h"
#include "weights/formats.h"

namespace invar::checkpoint {
namespace {

using json::Value;
using onnx::quote;

constexpr GgufArchitecture kGgufArchitectures[] = {
    {"llama", "llama", "LlamaForCausalLM", true},
    {"qwen2", "qwen2", "Qwen2ForCausalLM"},
    {"qwen3", "qwen3", "Qwen3ForCausalLM"},
    {"qwen2moe", "qwen2_moe", "Qwen2MoeForCausalLM"},
    {"qwen3moe", "qwen3_moe", "Qwen3MoeForCausalLM"},
    {"qwen3next", "qwen3_next", "Qwen3NextForCausalLM"},
    {"qwen35", "qwen3_5_text", "Qwen3_5ForCausalLM"},
    {"qwen35moe", "qwen3_5_moe_text", "Qwen3_5MoeForCausalLM"},
    {"gemma", "gemma", "GemmaForCausalLM"},
    {"gemma2", "gemma2", "Gemma2ForCausalLM"},
    {"gemma3", "gemma3_text", "Gemma3ForCausalLM"},
    {"gemma4", "gemma4_text", "Gemma4ForCausalLM"},
    {"phi3", "phi3", "Phi3ForCausalLM"},
    {"granite", "granite", "GraniteForCausalLM", true},
    {"olmo2", "olmo2", "Olmo2ForCausalLM"},
    {"gpt-oss", "gpt_oss", "GptOssForCausalLM"},
    {"deepseek2", "deepseek_v3", "DeepseekV3ForCausalLM"},  // or another: latent_family
};

// The factors of rotary frequencies that llama.cpp stores for Llama 3.1 and later: the parameters
// that they were made of.
struct Llama3Scaling {
  double factor, low, high, positions;
};
std::vector<double> llama3_factors(const Llama3Scaling& s, double theta, size_t pairs) {
  std::vector<double> out;
  for (size_t i = 0; i < pairs; ++i) {
    const double frequency = 1 / std::pow(theta, static_cast<double>(i) / static_cast<double>(pairs));
    const double length = 2 * M_PI / frequency;
    const double smooth = (s.positions / length - s.low) / (s.high - s.low);
    out.push_back(length < s.positions / s.high  ? 1
                  : length > s.positions / s.low ? s.factor
                                                 : 1 / ((1 - smooth) / s.factor + smooth));
  }
  return out;
}

std::vector<float> floats_of(const Gguf& g, const char* tensor) {
  const GgufTensor& t = g.tensors.find(std::string_view(tensor))->second;
  std::vector<float> out;
  if (t.type != 0 || t.shape.size() != 1) return out;
  const auto* p =
      reinterpret_cast<const uint8_t*>(g.maps[static_cast<size_t>(t.file)].bytes().data()) + t.offset;
  for (int64_t i = 0; i < t.shape[0]; ++i, p += 4)
    out.push_back(std::bit_cast<float>(p[0] | p[1] << 8 | p[2] << 16 | static_cast<uint32_t>(p[3]) << 24));
  return out;
}

Value llama3_scaling(GgufKeys& keys, double theta) {
  constexpr double kClose = 1.0 / 4096;  // the parameters differ by much more
  const std::vector<float> stored = floats_of(keys.file(), "rope_freqs.weight");
  const double most = stored.empty() ? 0 : *std::ranges::max_element(stored);
  const Llama3Scaling s{std::round(most), 1, 4, 8192};
  const std::vector<double> made = llama3_factors(s, theta, stored.size());
  bool same = !stored.empty();
  for (size_t i = 0; i < stored.size(); ++i) same = same && std::abs(stored[i] - made[i]) <= made[i] * kClose;
  if (!same)
    keys.fail(
        not_covered(keys.file().path +
                    ": the tensor 'rope_freqs.weight' is not that of Llama 3 (low 1, high 4, 8192 "
                    "positions), which alone is covered: pass the checkpoint that the file was made of"));
  return {{"rope_type", "llama3"},
          {"factor", s.factor},
          {"low_freq_factor", s.low},
          {"high_freq_factor", s.high},
          {"original_max_position_embeddings", static_cast<int64_t>(s.positions)}};
}

// Phi-3 with LongRoPE: both lists of factors are tensors.
Value longrope_scaling(GgufKeys& keys) {
  Value scaling{{"type", "longrope"}};
  for (const auto& [key, tensor] : {std::pair{"short_factor", "rope_factors_short.weight"},
                                    {"long_factor", "rope_factors_long.weight"}}) {
    if (!gguf_has(keys.file(), tensor)) {
      keys.fail(bad_input(keys.file().path + ": there is no tensor " + quote(tensor)));
      return scaling;
    }
    scaling[key] = Value(floats_of(keys.file(), tensor));
  }
  return scaling;
}

void read_yarn_keys(GgufKeys& keys, uint64_t original, Value& config) {
  Value& scaling = config["rope_scaling"];
  scaling["original_max_position_embeddings"] = original;
  for (const char* beta : {"beta_fast", "beta_slow"})
    if (const std::string key = "rope.scaling.yarn_" + std::string(beta); keys.find(key))
      scaling[beta] = keys.number(key, 0);
  // A tenth of the mscale of the checkpoint, whose decimals are few.
  const std::string tenth = "rope.scaling.yarn_log_multiplier";
  if (config.contains("kv_lora_rank") && keys.find(tenth))
    scaling["mscale"] = scaling["mscale_all_dim"] = std::round(keys.number(tenth, 0) * 1e6) / 1e5;
}

void read_rope_keys(GgufKeys& keys, Value& config, uint64_t head_dim) {
  const double theta = keys.number("rope.freq_base", 10000);
  config["rope_theta"] = theta;
  const std::string type = keys.text("rope.scaling.type");
  const double factor = keys.number("rope.scaling.factor", 1);
  const uint64_t original = keys.size("rope.scaling.original_context_length");
  keys.find("rope.scaling.finetuned");  // of the training; llama.cpp computes nothing with it
  if (gguf_has(keys.file(), "rope_freqs.weight")) {
    config["rope_scaling"] = llama3_scaling(keys, theta);
  } else if (gguf_has(keys.file(), "rope_factors_long.weight")) {
    config["rope_scaling"] = longrope_scaling(keys);
    config["original_max_position_embeddings"] = original;
    keys.find("rope.scaling.attn_factor");  // follows from the two lengths
  } else if (type == "linear" || type == "yarn") {
    config["rope_scaling"] = {{"rope_type", type}, {"factor", factor}};
    if (type == "yarn") read_yarn_keys(keys, original, config);
    if (config.get("model_type") == "gpt_oss") config["rope_scaling"]["truncate"] = false;
  } else if (!type.empty() && type != "none") {
    keys.refuse("rope.scaling.type", "= " + quote(type) + " is not covered");
  }
  const uint64_t rotated = keys.size("rope.dimension_count");
  // transformers' default is a quarter of a head for these.
  const bool whole_is_said = config.contains("full_attention_interval");
  if (rotated == 0 || (rotated == head_dim && !whole_is_said)) return;
  config["partial_rotary_factor"] = static_cast<double>(rotated) / static_cast<double>(head_dim);
}

void read_gguf_experts(GgufKeys& keys, const std::string& type, Value& config) {
  const uint64_t count = keys.size("expert_count"), used = keys.size("expert_used_count");
  if (count == 0) return;
  config[type == "mixtral" || type == "gpt_oss" ? "num_local_experts" : "num_experts"] = count;
  config["num_experts_per_tok"] = used;
  if (type == "mixtral") return;
  const uint64_t inner = keys.size("expert_feed_forward_length");
  if (inner) config[type == "gpt_oss" ? "intermediate_size" : "moe_intermediate_size"] = inner;
  if (type == "gpt_oss") return;
  if (config.get("intermediate_size") == 0) config["intermediate_size"] = inner;  // no layer has an MLP
  if (type != "qwen3_5_moe_text") config["norm_topk_prob"] = type != "qwen2_moe";
  if (type == "qwen3_moe") return;
  config["shared_expert_intermediate_size"] = keys.size("expert_shared_feed_forward_length", true);
}

// Layers of the gated delta rule.
void read_delta_keys(GgufKeys& keys, const std::string& type, Value& config) {
  const uint64_t heads = keys.size("ssm.time_step_rank", true), width = keys.size("ssm.inner_size", true);
  config["linear_conv_kernel_dim"] = keys.size("ssm.conv_kernel", true);
  config["linear_num_key_heads"] = keys.size("ssm.group_count", true);
  config["linear_key_head_dim"] = keys.size("ssm.state_size", true);
  config["linear_num_value_heads"] = heads;
  if (heads && width % heads)
    keys.fail(bad_input(keys.file().path + ": ssm.inner_size is no multiple of ssm.time_step_rank"));
  config["linear_value_head_dim"] = heads ? width / heads : 0;
  const uint64_t interval = keys.size("full_attention_interval");
  config["full_attention_interval"] = interval ? interval : 4;
  keys.find("rope.dimension_sections");  // of positions in pictures: a text has one
  // Layers that draft tokens come behind the others, and are not read.
  const uint64_t drafting = keys.size("nextn_predict_layers");
  config["num_hidden_layers"] = config.get("num_hidden_layers").to_uint64() - drafting;
  if (type == "qwen3_5_moe_text") config.erase("intermediate_size");
}

// The keys that only some architectures have.
void read_own_keys(GgufKeys& keys, const std::string& type, Value& config) {
  const auto number = [&](const char* key, const char* name) {
    if (keys.find(key)) config[name] = keys.number(key, 0);
  };
  if (type.starts_with("qwen3_next") || type.starts_with("qwen3_5")) read_delta_keys(keys, type, config);
  if (type == "granite") {
    number("attention.scale", "attention_multiplier");
    number("embedding_scale", "embedding_multiplier");
    number("residual_scale", "residual_multiplier");
    number("logit_scale", "logits_scaling");
  }
  if (type == "phi3" || type == "gpt_oss" || type.starts_with("gemma")) {
    const uint64_t window = keys.size("attention.sliding_window");
    if (window) config["sliding_window"] = window;
  }
  if (type == "gemma2" || type == "gemma3_text") {
    const uint64_t layers = config.get("num_hidden_layers").to_uint64();
    // The 27B models of both scale by the width of the layers; llama.cpp knows them by their depth.
    const bool by_width = layers == (type == "gemma2" ? 46u : 62u);
    config["query_pre_attn_scalar"] =
        by_width ? config.get("hidden_size").to_double() / config.get("num_attention_heads").to_double()
                 : config.get("head_dim").to_double();
    config["tie_word_embeddings"] = !gguf_has(keys.file(), "output.weight");
  }
  if (type == "gemma2") {
    number("attn_logit_softcapping", "attn_logit_softcapping");
    number("final_logit_softcapping", "final_logit_softcapping");
  }
  if (type == "gemma3_text") {
    number("final_logit_softcapping", "final_logit_softcapping");
    config["rope_local_base_freq"] = keys.number("rope.freq_base_swa", 10000);
    if (const uint64_t pattern = keys.size("attention.sliding_window_pattern"))
      config["sliding_window_pattern"] = pattern;
  }
}

// What binds the file: its parts, and the SHA-256 of everything before the tensors, which has the
// type, shape and place of each. The formats are there for people.
Value origin_of_file(const Gguf& g, const std::string& architecture) {
  Sha256 hash;
  for (size_t i = 0; i < g.maps.size(); ++i) hash.update(g.maps[i].bytes().data(), g.header_bytes[i]);
  std::map<std::string, std::string> clauses;
  for (const auto& [name, t] : g.tensors)
    if (const weights::Format* f = weights::find_format(t.type)) clauses[f->name] = f->clause;
  Value formats(Value::object);
  for (const auto& [name, clause] : clauses) formats[name] = clause;
  return {{"architecture", architecture},
          {"files", Value(g.files)},
          {"formats", std::move(formats)},
          {"header_sha256", to_hex(hash.finish())}};
}

// Ids of tokens that end an answer: what llama.cpp takes for such (its end-of-generation tokens).
std::vector<int64_t> end_tokens(const Gguf& g) {
  static constexpr std::string_view kEnds[] = {
      "<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>",    "<|call|>", "<|eom_id|>", "<end_of_turn>",
      "<turn|>",    "<EOT>",      "_<EOT>",  "<|endoftext|>", "[EOT]",    "[EOS]",      "<|end_of_text|>"};
  std::set<int64_t> ids;
  for (const char* key : {"eos", "eot", "eom"})
    if (const GgufValue* v = g.find("tokenizer.ggml." + std::string(key) + "_token_id"))
      if (const auto id = v->size()) ids.insert(static_cast<int64_t>(*id));
  const GgufValue *tokens = g.find("tokenizer.ggml.tokens"), *types = g.find("tokenizer.ggml.token_type");
  if (!tokens || !types) return {ids.begin(), ids.end()};
  const auto texts = tokens->strings();
  const auto kinds = types->numbers();
  constexpr double kControl = 3;
  for (size_t i = 0; kinds && i < std::min(texts.size(), kinds->size()); ++i)
    if ((*kinds)[i] == kControl && std::ranges::count(kEnds, texts[i])) ids.insert(static_cast<int64_t>(i));
  return {ids.begin(), ids.end()};
}

// Gemma 4: layers of two kinds, of which those without window have heads of another size.
void read_gemma4_keys(GgufKeys& keys, Value& config) {
  const Gguf& g = keys.file();
  const uint64_t layers = keys.size("block_count", true);
  const auto windows = keys.sizes("attention.sliding_window_pattern", layers);
  const auto heads = keys.sizes("attention.head_count_kv", layers);
  const auto inner = keys.sizes("feed_forward_length", layers);
  const uint64_t shared = keys.size("attention.shared_kv_layers");
  const uint64_t wide = keys.size("attention.key_length", true),
                 narrow = keys.size("attention.key_length_swa", true);
  if (windows.empty() || heads.empty() || inner.empty() || layers == 0 || shared >= layers)
    return keys.fail(bad_input(g.path + ": a key of gemma4 about its layers is missing or wrong"));
  Value types(Value::array);
  bool keys_are_values = false;
  for (uint64_t i = 0; i < layers; ++i) {
    const bool window = windows[i] != 0;
    types.add(window ? "sliding_attention" : "full_attention");
    const std::string layer = "blk." + std::to_string(i) + ".";
    if (!window && i + shared < layers && !gguf_has(g, (layer + "attn_v.weight").c_str()))
      keys_are_values = true;
    config[window ? "num_key_value_heads" : "num_global_key_value_heads"] = static_cast<int64_t>(heads[i]);
    if (i == 0) config["intermediate_size"] = static_cast<int64_t>(inner[0]);
    if (inner[i] != inner[0] && (inner[i] != 2 * inner[0] || i + shared < layers))
      keys.refuse("feed_forward_length", "has other values in some layers, which is not covered");
  }
  config["use_double_wide_mlp"] = inner.back() != inner.front();
  if (config.get("num_global_key_value_heads") == config.get("num_key_value_heads") || !keys_are_values)
    config.erase("num_global_key_value_heads");
  config["layer_types"] = types;
  config["attention_k_eq_v"] = keys_are_values;
  config["head_dim"] = narrow, config["global_head_dim"] = wide;
  config["num_kv_shared_layers"] = shared;
  config["sliding_window"] = keys.size("attention.sliding_window", true);
  config["hidden_size_per_layer_input"] = keys.size("embedding_length_per_layer_input");
  const auto table = g.tensors.find(std::string_view("per_layer_token_embd.weight"));
  if (table != g.tensors.end()) config["vocab_size_per_layer_input"] = table->second.shape[0];
  if (keys.find("final_logit_softcapping"))
    config["final_logit_softcapping"] = keys.number("final_logit_softcapping", 0);
  for (const auto& [key, size] : {std::pair{"attention.value_length", wide},
                                  {"attention.value_length_swa", narrow},
                                  {"rope.dimension_count", wide},
                                  {"rope.dimension_count_swa", narrow}})
    if (keys.find(key) && keys.size(key) != size)
      keys.refuse(key, "other than the size of a head is not covered");
  // Pairs of elements with a factor of 1 are rotated, others have a factor without end.
  Value global{{"rope_type", "proportional"}, {"rope_theta", keys.number("rope.freq_base", 1e6)}};
  const auto factors =
      gguf_has(g, "rope_freqs.weight") ? floats_of(g, "rope_freqs.weight") : std::vector<float>();
  const auto rotated = static_cast<size_t>(std::ranges::count(factors, 1.0f));
  const bool first = std::ranges::all_of(factors.begin(), factors.begin() + static_cast<ptrdiff_t>(rotated),
                                         [](float f) { return f == 1; });
  const bool rest = std::ranges::all_of(factors.begin() + static_cast<ptrdiff_t>(rotated), factors.end(),
                                        [](float f) { return f >= 1e30f; });
  if (factors.size() * 2 != wide || rotated == 0 || !first || !rest)
    keys.fail(not_covered(g.path + ": the tensor 'rope_freqs.weight' is not that of a part of each head"));
  global["partial_rotary_factor"] = wide ? 2.0 * static_cast<double>(rotated) / static_cast<double>(wide) : 1;
  config["rope_parameters"] = {
      {"full_attention", global},
      {"sliding_attention",
       {{"rope_type", "default"}, {"rope_theta", keys.number("rope.freq_base_swa", 1e4)}}}};
  if (const uint64_t count = keys.size("expert_count")) {
    config["enable_moe_block"] = true;
    config["num_experts"] = count, config["top_k_experts"] = keys.size("expert_used_count", true);
    config["moe_intermediate_size"] = keys.size("expert_feed_forward_length", true);
  }
  config["tie_word_embeddings"] = !gguf_has(g, "output.weight");
}

}  // namespace

Result<const GgufArchitecture*> find_gguf_architecture(const Gguf& g) {
  const GgufValue *type = g.find("general.type"), *name = g.find("general.architecture");
  if (type && type->string() && *type->string() != "model")
    return not_covered(g.path + ": general.type = " + quote(*type->string()) +
                       " is not covered; a whole model is");
  if (!name || !name->string()) return bad_input(g.path + ": there is no general.architecture");
  std::string known;
  for (const GgufArchitecture& a : kGgufArchitectures) {
    if (*name->string() == a.name) return &a;
    known += (known.empty() ? "" : ", ") + std::string(a.name);
  }
  return not_covered(g.path + ": the architecture " + quote(*name->string()) +
                     " is not covered in GGUF files; " + known +
                     " are. Pass the checkpoint that the file was made of");
}

Result<Value> gguf_config(const Gguf& g) {
  INVAR_TRY(const GgufArchitecture* architecture, find_gguf_architecture(g));
  GgufKeys keys(g, architecture->name);
  const bool mixtral = architecture->model_type == std::string("llama") && keys.size("expert_count") > 0;
  const bool latent = architecture->name == std::string_view("deepseek2");
  const GgufArchitecture family = latent ? latent_family(keys) : *architecture;
  const std::string type = mixtral ? "mixtral" : family.model_type;
  const auto table = g.tensors.find(std::string_view("token_embd.weight"));
  if (table == g.tensors.end() || table->second.shape.size() != 2)
    return bad_input(g.path + ": there is no tensor 'token_embd.weight' of two dimensions");
  const uint64_t hidden = keys.size("embedding_length", true),
                 heads = keys.size("attention.head_count", true);
  const bool two_kinds = type == "gemma4_text";  // of layers
  const uint64_t kv_heads = two_kinds ? 0 : keys.size("attention.head_count_kv");
  uint64_t head_dim = keys.size("attention.key_length");
  if (head_dim == 0 && heads) head_dim = hidden / heads;
  if (const uint64_t values = keys.size("attention.value_length"); values && values != head_dim && !latent)
    keys.refuse("attention.value_length", "differs from attention.key_length, which is not covered");
  Value config{
      {"architectures", json::list({mixtral ? "MixtralForCausalLM" : family.class_name})},
      {"model_type", type},
      {"vocab_size", table->second.shape[0]},
      {"hidden_size", hidden},
      {"intermediate_size", two_kinds ? 0 : keys.size("feed_forward_length", !type.starts_with("qwen3_"))},
      {"num_hidden_layers", keys.size("block_count", true)},
      {"num_attention_heads", heads},
      {"num_key_value_heads", kv_heads ? kv_heads : heads},
      {"head_dim", head_dim},
      {"max_position_embeddings", keys.size("context_length", true)},
      {"rms_norm_eps", keys.number("attention.layer_norm_rms_epsilon", 1e-5)},
      {"tie_word_embeddings", !gguf_has(g, "output.weight")}};
  keys.size("vocab_size");  // the table of the embedding has it
  for (const char* key : {"tensor_data_layout", "attention.causal"})
    if (keys.find(key) && std::string(key) == "attention.causal" && keys.find(key)->flag() != true)
      keys.refuse(key, "= false is not covered");
  const bool biased =
      std::ranges::any_of(g.tensors, [](const auto& t) { return t.first.ends_with(".attn_q.bias"); });
  if (biased && type != "qwen2" && type != "qwen2_moe") config["attention_bias"] = true;
  if (gguf_has(g, "blk.0.ffn_up.bias")) config["mlp_bias"] = true;
  if (two_kinds) {
    read_gemma4_keys(keys, config);
  } else if (latent) {
    read_latent_keys(keys, type, config);
    read_rope_keys(keys, config, keys.size("rope.dimension_count"));
  } else {
    read_gguf_experts(keys, type, config);
    read_own_keys(keys, type, config);
    read_rope_keys(keys, config, head_dim);
  }
  INVAR_CHECK_OK(keys.finish());
  if (const std::vector<int64_t> ends = end_tokens(g); !ends.empty()) config["eos_token_id"] = Value(ends);
  if (const GgufValue* bos = g.find("tokenizer.ggml.bos_token_id"); bos && bos->size())
    config["bos_token_id"] = *bos->size();
  config["gguf"] = origin_of_file(g, architecture->name);
  return json::sorted(std::move(config));
}

}  // namespace invar::checkpoint
