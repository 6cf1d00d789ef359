// Reads and validates config.json of Llama checkpoints (spec/llama.md llama.1 to llama.3).
#include "checkpoint/config.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

#include "base/file/file.h"
#include "base/hash/sha256.h"
#include "checkpoint/architecture.h"
#include "checkpoint/files/json.h"
#include "onnx/error_text.h"

namespace invar::checkpoint {
namespace {

using nlohmann::json;

// Keys that change the results of architectures that support them. LlamaForCausalLM ignores most of
// them, but a checkpoint that sets one was trained with arithmetic that this recipe does not have.
// Only neutral values are accepted. Keys that are neither here nor read below are ignored, as in
// transformers. tools/docs/check_counts.py compares the list with spec/checkpoint.md onnx.4.
struct UnsupportedKey {
  const char* key;
  json neutral;  // besides null, false and empty containers
};
const std::vector<UnsupportedKey>& unsupported_keys() {
  static const std::vector<UnsupportedKey> keys = {{"quantization_config", {}},
                                                   {"compression_config", {}},
                                                   {"auto_map", {}},
                                                   {"pruned_heads", {}},
                                                   {"is_encoder_decoder", {}},
                                                   {"add_cross_attention", {}},
                                                   {"chunk_size_feed_forward", 0},
                                                   {"sliding_window", {}},
                                                   {"use_sliding_window", {}},
                                                   {"layer_types", {}},
                                                   {"attention_chunk_size", {}},
                                                   {"no_rope_layers", {}},
                                                   {"partial_rotary_factor", 1.0},
                                                   {"rotary_pct", 1.0},
                                                   {"rope_interleaved", {}},
                                                   {"rotary_dim", {}},
                                                   {"rope_local_base_freq", {}},
                                                   {"attn_logit_softcapping", {}},
                                                   {"final_logit_softcapping", {}},
                                                   {"attn_temperature_tuning", {}},
                                                   {"query_pre_attn_scalar", {}},
                                                   {"attention_multiplier", {}},
                                                   {"embedding_multiplier", 1.0},
                                                   {"residual_multiplier", 1.0},
                                                   {"logits_scaling", 1.0},
                                                   {"logit_scale", 1.0},
                                                   {"scale_emb", 1.0},
                                                   {"scale_depth", {}},
                                                   {"dim_model_base", {}},
                                                   {"clip_qkv", {}},
                                                   {"use_qk_norm", {}},
                                                   {"qk_layernorm", {}},
                                                   {"qk_norm", {}},
                                                   {"parallel_attn", {}},
                                                   {"use_parallel_residual", {}},
                                                   {"alibi", {}},
                                                   {"qkv_bias", {}},
                                                   {"use_bias", {}},
                                                   {"bias", {}},
                                                   {"num_experts", {}},
                                                   {"num_local_experts", {}},
                                                   {"n_routed_experts", {}},
                                                   {"kv_lora_rank", {}},
                                                   {"q_lora_rank", {}},
                                                   {"num_nextn_predict_layers", 0},
                                                   {"block_configs", {}},
                                                   {"use_post_norm", {}},
                                                   {"use_mem_rope", {}},
                                                   {"tie_encoder_decoder", {}},
                                                   {"attn_implementation_kwargs", {}},
                                                   {"sparse_attention", {}},
                                                   {"per_layer_config", {}},
                                                   {"attribute_map", {}},
                                                   {"transformers_weights", {}},
                                                   {"text_config", {}},
                                                   {"text_encoder", {}},
                                                   {"decoder", {}},
                                                   {"generator", {}},
                                                   {"kv_sharing_modes", {}},
                                                   {"mlp_layer_types", {}},
                                                   {"num_mtp_layers", 0},
                                                   {"mtp_layer_types", {}},
                                                   {"mtp_mlp_layer_types", {}},
                                                   {"mtp_per_layer_config", {}}};
  return keys;
}

bool is_neutral(const json& value, const json& neutral) {
  if (value.is_null() || value == false || ((value.is_array() || value.is_object()) && value.empty()))
    return true;
  return !neutral.is_null() && value == neutral;
}

// Reads typed and range-checked values of one JSON object. Keeps the first error.
class ObjectReader {
 public:
  ObjectReader(const json& object, std::string where) : object_(object), where_(std::move(where)) {}

  const json* find(const char* key) const {  // null counts as absent, as in transformers
    auto it = object_.find(key);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }
  int64_t size(const char* key, int64_t fallback) {  // fallback 0: required
    const json* v = find(key);
    if (!v && fallback) return fallback;
    // Below 2^31, so that no product of two sizes overflows.
    if (v && v->is_number_unsigned() && v->get<uint64_t>() >= 1 && v->get<uint64_t>() < (1u << 31))
      return v->get<int64_t>();
    fail(bad_input(where_ + ": " + onnx::quote(key) +
                   (v ? " = " + short_text(*v) + " is not a size from 1 to 2^31 - 1" : " is missing")));
    return 1;
  }
  bool flag(const char* key) {
    const json* v = find(key);
    if (!v) return false;
    if (!v->is_boolean())
      fail(bad_input(where_ + ": " + onnx::quote(key) + " = " + short_text(*v) +
                     " is neither true nor false"));
    return v->is_boolean() && v->get<bool>();
  }
  double positive(const char* key, double fallback) {  // fallback 0: required
    const json* v = find(key);
    if (!v && fallback != 0) return fallback;
    const double value = v && v->is_number() ? v->get<double>() : 0;
    const auto rounded = static_cast<float>(value);
    if (rounded > 0 && std::isfinite(rounded)) return value;
    fail(bad_input(where_ + ": " + onnx::quote(key) +
                   (v ? " = " + short_text(*v) + " is not a positive number" : " is missing")));
    return 1;
  }
  double optional(const char* key) { return find(key) ? positive(key, 0) : 0; }  // 0: absent
  std::string text(const char* key, const char* fallback) {
    const json* v = find(key);
    if (!v) return fallback;
    if (v->is_string()) return v->get<std::string>();
    fail(bad_input(where_ + ": " + onnx::quote(key) + " = " + short_text(*v) + " is not a string"));
    return fallback;
  }
  void refuse(const std::string& what) { fail(not_covered(where_ + ": " + what)); }
  void fail(Error error) {
    if (status_) status_ = std::move(error);
  }
  const Status& status() const { return status_; }

 private:
  const json& object_;
  std::string where_;
  Status status_;
};

Status check_arithmetic(ObjectReader& top) {
  const std::string act = top.text("hidden_act", "silu");
  if (act != "silu") top.refuse("hidden_act " + onnx::quote(act) + " is not covered; only 'silu' is");
  for (const char* key : {"dtype", "torch_dtype"}) {
    // Weights keep their stored type. The key is checked because other types need another recipe.
    const std::string dtype = top.text(key, "float32");
    if (dtype != "float32" && dtype != "bfloat16" && dtype != "float16" && dtype != "auto")
      top.refuse(onnx::quote(key) + " = " + onnx::quote(dtype) +
                 " is not covered; float32, bfloat16 and float16 are");
  }
  if (top.find("is_causal") && !top.flag("is_causal")) top.refuse("'is_causal' = false is not covered");
  for (const UnsupportedKey& k : unsupported_keys())
    if (const json* v = top.find(k.key); v && !is_neutral(*v, k.neutral))
      top.refuse(onnx::quote(k.key) + " = " + short_text(*v) + " is not covered");
  return top.status();
}

// A number that may be inside of the rope object (new format) or beside it (old format). If it is
// in both, the values must agree.
double nested_or_top_level(ObjectReader& top, ObjectReader& inner, const char* key, double fallback) {
  if (!inner.find(key)) return top.positive(key, fallback);
  const double value = inner.positive(key, fallback);
  if (top.find(key) && top.positive(key, fallback) != value)
    top.fail(
        bad_input(std::string("config.json: ") + onnx::quote(key) + " is given twice with different values"));
  return value;
}

Status read_rope(ObjectReader& top, const std::string& where, int64_t max_positions, RopeParameters& rope) {
  const json* older = top.find("rope_scaling");
  const json* newer = top.find("rope_parameters");
  if (older && newer && *older != *newer)
    return bad_input(where + ": 'rope_scaling' and 'rope_parameters' disagree");
  static const json none = json::object();
  const json& object = older ? *older : newer ? *newer : none;
  if (!object.is_object())
    return bad_input(where + ": " + (older ? "'rope_scaling'" : "'rope_parameters'") + " is not an object");
  static const std::set<std::string> known_keys = {"rope_type",
                                                   "type",
                                                   "rope_theta",
                                                   "factor",
                                                   "low_freq_factor",
                                                   "high_freq_factor",
                                                   "original_max_position_embeddings",
                                                   "partial_rotary_factor"};
  static const std::set<std::string> yarn_keys = {"attention_factor", "beta_fast",      "beta_slow",
                                                  "mscale",           "mscale_all_dim", "truncate"};
  ObjectReader inner(object, where + ": rope");
  const std::string type = inner.text("rope_type", inner.text("type", "default").c_str());
  if (type == "linear")
    rope.type = RopeParameters::linear;
  else if (type == "llama3")
    rope.type = RopeParameters::llama3;
  else if (type == "yarn")
    rope.type = RopeParameters::yarn;
  else if (type == "dynamic" || type == "longrope")
    inner.refuse("type " + onnx::quote(type) +
                 " is not covered: its angles depend on how long the sequence becomes");
  else if (type != "default")
    inner.refuse("type " + onnx::quote(type) + " is not covered; default, linear, llama3 and yarn are");
  const bool yarn = rope.type == RopeParameters::yarn;
  for (const auto& [key, value] : object.items())
    if (!known_keys.contains(key) && !(yarn && yarn_keys.contains(key)) && !value.is_null())
      inner.refuse(onnx::quote(key) + " = " + short_text(value) + " is not covered");
  if (inner.positive("partial_rotary_factor", 1) != 1)
    inner.refuse("'partial_rotary_factor' other than 1 is not covered");

  rope.theta = nested_or_top_level(top, inner, "rope_theta", 10000);
  if (rope.type != RopeParameters::standard) rope.factor = inner.positive("factor", 0);
  if (yarn || rope.type == RopeParameters::llama3)
    rope.original_max_positions = nested_or_top_level(top, inner, "original_max_position_embeddings",
                                                      static_cast<double>(max_positions));
  if (yarn) {
    rope.beta_fast = inner.positive("beta_fast", rope.beta_fast);
    rope.beta_slow = inner.positive("beta_slow", rope.beta_slow);
    rope.attention_factor = inner.optional("attention_factor");
    rope.mscale = inner.optional("mscale");
    rope.mscale_all_dim = inner.optional("mscale_all_dim");
    rope.truncate = !inner.find("truncate") || inner.flag("truncate");
    if (rope.beta_fast <= rope.beta_slow)
      inner.fail(bad_input(where + ": rope: 'beta_fast' must be above 'beta_slow'"));
    if (rope.theta <= 1) inner.fail(bad_input(where + ": rope: 'rope_theta' must be above 1 for yarn"));
  }
  if (rope.type == RopeParameters::llama3) {
    rope.low_freq_factor = inner.positive("low_freq_factor", 0);
    rope.high_freq_factor = inner.positive("high_freq_factor", 0);
    if (rope.high_freq_factor <= rope.low_freq_factor)
      inner.fail(bad_input(where + ": rope: 'high_freq_factor' must be above 'low_freq_factor'"));
  }
  return inner.status() ? top.status() : inner.status();
}

// Formats a token id or a list of token ids as "1,2"; absent as "".
Result<std::string> token_ids(const json* value, const char* key, const std::string& where, int64_t vocab) {
  if (!value) return std::string();
  const json list = value->is_array() ? *value : json::array({*value});
  std::string out;
  for (const json& id : list) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() >= vocab)
      return bad_input(where + ": " + onnx::quote(key) + " = " + short_text(*value) +
                       " is not a token id below " + std::to_string(vocab));
    out += (out.empty() ? "" : ",") + std::to_string(id.get<int64_t>());
  }
  return out;
}

Status read_special_tokens(const json& top, const std::string& folder, LlamaConfig& config) {
  json generation = json::object();
  const std::string path = folder + "/generation_config.json";
  std::error_code error;
  if (std::filesystem::exists(path, error)) {
    INVAR_TRY(std::string text, read_file(path));
    INVAR_TRY(generation, parse_json(text, path));
  }
  for (const char* key : {"bos_token_id", "eos_token_id"}) {
    const ObjectReader first(generation, path), second(top, folder + "/config.json");
    const bool generated = first.find(key) != nullptr;
    INVAR_TRY(std::string ids, token_ids(generated ? first.find(key) : second.find(key), key,
                                         generated ? path : folder + "/config.json", config.vocab_size));
    if (!ids.empty()) config.metadata[std::string("invar.") + key] = ids;
  }
  return {};
}

}  // namespace

onnx::Parameters parameters_of(const LlamaConfig& c) {
  using onnx::parameter;
  onnx::Parameters p = {{"attention_bias", parameter(c.attention_bias)},
                        {"head_dim", parameter(c.head_dim)},
                        {"hidden_size", parameter(c.hidden_size)},
                        {"intermediate_size", parameter(c.intermediate_size)},
                        {"mlp_bias", parameter(c.mlp_bias)},
                        {"num_attention_heads", parameter(c.heads)},
                        {"num_hidden_layers", parameter(c.layers)},
                        {"num_key_value_heads", parameter(c.kv_heads)},
                        {"rms_norm_eps", parameter(c.rms_norm_eps)},
                        {"rope_theta", parameter(c.rope.theta)},
                        {"tie_word_embeddings", parameter(c.tied)},
                        {"vocab_size", parameter(c.vocab_size)}};
  static constexpr const char* kTypes[] = {"default", "linear", "llama3", "yarn"};
  p["rope_type"] = kTypes[c.rope.type];
  if (c.rope.type != RopeParameters::standard) p["factor"] = parameter(c.rope.factor);
  if (c.rope.type == RopeParameters::llama3) {
    p["high_freq_factor"] = parameter(c.rope.high_freq_factor);
    p["low_freq_factor"] = parameter(c.rope.low_freq_factor);
  }
  if (c.rope.type == RopeParameters::yarn) {
    p["attention_factor"] = parameter(attention_factor(c.rope));  // what mscale and others make of it
    p["beta_fast"] = parameter(c.rope.beta_fast);
    p["beta_slow"] = parameter(c.rope.beta_slow);
    p["truncate"] = parameter(c.rope.truncate);
  }
  if (c.rope.type == RopeParameters::llama3 || c.rope.type == RopeParameters::yarn)
    p["original_max_position_embeddings"] = parameter(c.rope.original_max_positions);
  return p;
}

Result<LlamaConfig> read_config(const std::string& folder) {
  const std::string path = folder + "/config.json";
  INVAR_TRY(std::string text, read_file(path));
  INVAR_TRY(json object, parse_json(text, path));
  ObjectReader top(object, path);
  INVAR_CHECK_OK(check_architecture(object, path));
  INVAR_CHECK_OK(check_arithmetic(top));

  LlamaConfig c;
  c.vocab_size = top.size("vocab_size", 0);
  c.hidden_size = top.size("hidden_size", 0);
  c.intermediate_size = top.size("intermediate_size", 0);
  c.layers = top.size("num_hidden_layers", 0);
  c.heads = top.size("num_attention_heads", 0);
  c.kv_heads = top.size("num_key_value_heads", c.heads);
  c.max_positions = top.size("max_position_embeddings", 2048);
  c.rms_norm_eps = static_cast<float>(top.positive("rms_norm_eps", 1e-6));
  c.tied = top.flag("tie_word_embeddings");
  c.attention_bias = top.flag("attention_bias");
  c.mlp_bias = top.flag("mlp_bias");
  INVAR_CHECK_OK(top.status());
  if (c.hidden_size % c.heads != 0 && !top.find("head_dim"))
    return bad_input(
        path + ": 'hidden_size' is not a multiple of 'num_attention_heads', and there is no 'head_dim'");
  c.head_dim = top.size("head_dim", std::max<int64_t>(c.hidden_size / c.heads, 1));
  INVAR_CHECK_OK(top.status());
  if (c.heads % c.kv_heads != 0)
    return bad_input(path + ": 'num_attention_heads' is not a multiple of 'num_key_value_heads'");
  if (c.head_dim % 2 != 0)
    return bad_input(path + ": 'head_dim' = " + std::to_string(c.head_dim) +
                     " is odd; rotary embedding needs pairs");
  if (c.layers > 100000 || c.head_dim > 65536)
    return bad_input(path + ": 'num_hidden_layers' or 'head_dim' is absurdly large");
  INVAR_CHECK_OK(read_rope(top, path, c.max_positions, c.rope));
  INVAR_CHECK_OK(read_special_tokens(object, folder, c));
  c.metadata["invar.model_type"] = "llama";
  c.metadata["invar.vocab_size"] = std::to_string(c.vocab_size);
  c.metadata["invar.max_position_embeddings"] = std::to_string(c.max_positions);
  c.metadata["invar.config_sha256"] = to_hex(sha256(text));
  onnx::add_recipe({"llama-1", parameters_of(c)}, c.metadata);
  return c;
}

}  // namespace invar::checkpoint
