// Tests of reading config.json.
#include "checkpoint/config.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <tuple>

#include "base/file/file.h"
#include "checkpoint/families/family.h"
#include "checkpoint/testing.h"

namespace invar::checkpoint {
namespace {

using json::Value;

class ConfigTest : public FolderTest {
 protected:
  Result<Decoder> with(const char* patch) {
    put("config.json", tiny_config_with(patch));
    return read_config(folder_);
  }
};

TEST_F(ConfigTest, ReadsASmallOne) {
  auto c = with("{}");
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_EQ(c->head_dim, 4);
  EXPECT_EQ(c->kv_heads, 1);
  EXPECT_EQ(c->ropes.at(0), RopeParameters{});
  EXPECT_TRUE(c->tied);
  EXPECT_EQ(c->metadata.at("invar.bos_token_id"), "1");
  EXPECT_EQ(c->metadata.at("invar.eos_token_id"), "2,3");
  EXPECT_EQ(c->metadata.at("invar.max_position_embeddings"), "64");
  EXPECT_EQ(c->metadata.at("invar.config_sha256").size(), 64u);
}

// llama.13: what decides the bits is a parameter, and nothing else is.
TEST_F(ConfigTest, ParametersAreWhatDecidesTheBits) {
  const auto of = [&](const char* patch) {
    const auto c = with(patch);
    EXPECT_TRUE(c) << patch << c.error().message;
    return recipe_of(*c).parameters;
  };
  const onnx::Parameters plain = of("{}");
  EXPECT_EQ(plain.at("rms_norm_eps"), "0x3727c5ac");
  EXPECT_EQ(plain.at("rope_theta"), "0x40c3880000000000");
  EXPECT_EQ(plain.at("num_attention_heads"), "2");
  EXPECT_EQ(plain.at("tie_word_embeddings"), "true");
  EXPECT_EQ(plain.at("rope_type"), "default");
  EXPECT_FALSE(plain.contains("factor"));
  for (const char* patch : {R"({"max_position_embeddings":128})", R"({"bos_token_id":5})",
                            R"({"dtype":"float16"})", R"({"hidden_act":"silu"})", R"({"head_dim":null})"})
    EXPECT_EQ(of(patch), plain) << patch;
  for (const char* patch :
       {R"({"rms_norm_eps":1e-6})", R"({"rope_theta":10001})", R"({"head_dim":2})",
        R"({"intermediate_size":7})", R"({"attention_bias":true})", R"({"mlp_bias":true})",
        R"({"tie_word_embeddings":false})", R"({"rope_scaling":{"type":"linear","factor":2}})"})
    EXPECT_NE(of(patch), plain) << patch;
  const auto yarn = [&](const std::string& more) {
    return of((R"({"rope_scaling":{"rope_type":"yarn","factor":4)" + more + "}}").c_str());
  };
  for (const char* more :
       {R"(,"beta_fast":16)", R"(,"beta_slow":2)", R"(,"truncate":false)", R"(,"attention_factor":2)",
        R"(,"original_max_position_embeddings":32)", R"(,"mscale":0.7,"mscale_all_dim":0.5)"})
    EXPECT_NE(yarn(more), yarn("")) << more;
}

TEST_F(ConfigTest, Defaults) {
  auto c = with(
      R"({"num_key_value_heads":null,"rms_norm_eps":null,"max_position_embeddings":null,"tie_word_embeddings":null})");
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_EQ(c->kv_heads, 2);
  EXPECT_EQ(c->norm_epsilon, 1e-6f);
  EXPECT_EQ(c->max_positions, 2048);
  EXPECT_FALSE(c->tied);
  auto d = with(R"({"head_dim":6,"hidden_size":7})");
  ASSERT_TRUE(d) << d.error().message;
  EXPECT_EQ(d->head_dim, 6);
}

TEST_F(ConfigTest, BothSpellingsOfRope) {
  const RopeParameters linear{RopeParameters::linear, 500000, 2};
  const RopeParameters llama3{RopeParameters::llama3, 500000, 8, 1, 4, 8192};
  for (const char* patch :
       {R"({"rope_theta":500000.0,"rope_scaling":{"type":"linear","factor":2}})",
        R"({"rope_theta":500000,"rope_scaling":{"rope_type":"linear","factor":2.0}})",
        R"({"rope_parameters":{"rope_type":"linear","factor":2.0,"rope_theta":500000}})"}) {
    auto c = with(patch);
    ASSERT_TRUE(c) << c.error().message;
    EXPECT_EQ(c->ropes.at(0), linear) << patch;
    EXPECT_EQ(
        recipe_of(*c).parameters,
        recipe_of(*with(R"({"rope_scaling":{"type":"linear","factor":2},"rope_theta":5e5})")).parameters);
  }
  for (
      const char* patch :
      {R"({"rope_theta":500000.0,"rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4,"original_max_position_embeddings":8192}})",
       R"({"rope_parameters":{"rope_theta":500000.0,"rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4},"max_position_embeddings":8192})"}) {
    auto c = with(patch);
    ASSERT_TRUE(c) << c.error().message;
    EXPECT_EQ(c->ropes.at(0), llama3) << patch;
  }
  RopeParameters yarn{.type = RopeParameters::yarn, .factor = 4, .original_max_positions = 64};
  auto short_form = with(R"({"rope_scaling":{"type":"yarn","factor":4,"beta_fast":null}})");
  ASSERT_TRUE(short_form) << short_form.error().message;
  EXPECT_EQ(short_form->ropes.at(0), yarn);
  yarn = {.type = RopeParameters::yarn,
          .theta = 150000,
          .factor = 32,
          .original_max_positions = 4096,
          .beta_fast = 16,
          .beta_slow = 2,
          .attention_factor = 1.25,
          .mscale = 0.5,
          .mscale_all_dim = 2,
          .truncate = false};
  auto full = with(
      R"({"rope_parameters":{"rope_type":"yarn","rope_theta":150000,"factor":32,"beta_fast":16,"beta_slow":2,"attention_factor":1.25,
          "mscale":0.5,"mscale_all_dim":2,"truncate":false,"original_max_position_embeddings":4096}})");
  ASSERT_TRUE(full) << full.error().message;
  EXPECT_EQ(full->ropes.at(0), yarn);
  auto ratio =  // max_position_embeddings is 64
      with(R"({"rope_scaling":{"type":"yarn","factor":null,"original_max_position_embeddings":16}})");
  ASSERT_TRUE(ratio) << ratio.error().message;
  EXPECT_EQ(ratio->ropes.at(0).factor, 4);
  auto plain = with(R"({"rope_theta":1e6,"rope_scaling":null})");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->ropes.at(0).theta, 1e6);
}

// What the files of LLaVA 1.5, of Granite Vision and of Qwen2.5-Omni leave out.
TEST_F(ConfigTest, TextModelsOfLargerOnesLeaveSizesOut) {
  const auto whole = [&](const std::string& type, const std::string& name, const std::string& more) {
    put("config.json",
        R"({"model_type":")" + type + R"(","architectures":[")" + name + R"("],)" + more + "}");
    return read_config(folder_);
  };
  auto llava = whole("llava", "LlavaForConditionalGeneration",
                     R"("text_config":{"model_type":"llama","vocab_size":32064,"rms_norm_eps":1e-5})");
  ASSERT_TRUE(llava) << llava.error().message;
  EXPECT_EQ(std::tuple(llava->vocab_size, llava->hidden_size, llava->intermediate_size, llava->heads),
            std::tuple(32064, 4096, 11008, 32));
  EXPECT_EQ(llava->layers.size(), 32u);
  EXPECT_FALSE(llava->tied);
  auto granite = whole("llava_next", "LlavaNextForConditionalGeneration",
                       R"("text_config":{"model_type":"granite","hidden_size":2048,"num_hidden_layers":40,
                          "tie_word_embeddings":true},"tie_word_embeddings":false)");
  ASSERT_TRUE(granite) << granite.error().message;
  EXPECT_EQ(std::tuple(granite->family, granite->heads, granite->head_dim), std::tuple("granite", 32, 64));
  EXPECT_TRUE(granite->tied);
  const std::string thinker =
      R"("thinker_config":{"text_config":{"model_type":"qwen2_5_omni_text","rope_scaling":{"type":"default",
         "mrope_section":[16,24,24],"rope_theta":5000}}})";
  auto omni = whole("qwen2_5_omni", "Qwen2_5OmniModel", thinker);
  ASSERT_TRUE(omni) << omni.error().message;
  EXPECT_EQ(std::tuple(omni->heads, omni->kv_heads, omni->ropes.at(0).theta), std::tuple(28, 4, 5000.0));
  expect_error(whole("qwen2_5_omni", "Qwen2_5OmniModel", R"("text_config":{})"), Code::bad_input,
               {"config.json", "thinker_config"});
  expect_error(whole("llava", "LlavaForConditionalGeneration", R"("text_config":{"model_type":"t5"})"),
               Code::not_covered, {"text_config", "t5", "families.md"});
  expect_error(whole("gemma3", "Gemma3ForConditionalGeneration", R"("text_config":{"model_type":"llama"})"),
               Code::not_covered, {"text_config", "llama", "gemma3_text"});
}

TEST_F(ConfigTest, GenerationConfigGivesTheEndOfText) {
  put("generation_config.json", R"({"eos_token_id":7})");
  EXPECT_EQ(with("{}")->metadata.at("invar.eos_token_id"), "7");
  EXPECT_EQ(with("{}")->metadata.at("invar.bos_token_id"), "1");
  put("generation_config.json", R"({"eos_token_id":10})");
  expect_error(with("{}"), Code::bad_input, {"generation_config.json", "token id below 10"});
}

TEST_F(ConfigTest, RefusesByName) {
  struct {
    const char *patch, *name;
  } cases[] = {
      {R"({"architectures":["MistralForCausalLM"]})", "MistralForCausalLM"},
      {R"({"architectures":["LlamaForSequenceClassification"]})", "LlamaForSequenceClassification"},
      {R"({"model_type":"qwen2"})", "\"qwen2\""},
      {R"({"architectures":["GPT2LMHeadModel"],"vocab_size":null})", "GPT2LMHeadModel"},
      {R"({"model_type":null})", "model_type"},
      {R"({"hidden_act":"gelu"})", "'gelu'"},
      {R"({"torch_dtype":"float8_e4m3fn"})", "float8_e4m3fn"},
      {R"({"sliding_window":4096})", "'sliding_window' = 4096"},
      {R"({"quantization_config":{"quant_method":"awq"}})", "'quantization_config'"},
      {R"({"attn_logit_softcapping":50.0})", "'attn_logit_softcapping'"},
      {R"({"num_local_experts":8})", "'num_local_experts'"},
      {R"({"is_causal":false})", "'is_causal' = false"},
      {R"({"per_layer_config":{"0":{"num_key_value_heads":1}}})", "'per_layer_config'"},
      {R"({"partial_rotary_factor":0.5})", "'partial_rotary_factor'"},
      {R"({"rope_scaling":{"type":"dynamic","factor":2.0,"alpha":2.0}})", "'alpha'"},
      {R"({"rope_scaling":{"type":"longrope","short_factor":[1.0],"long_factor":[2.0]}})", "'longrope'"},
      {R"({"rope_parameters":{"rope_type":"proportional"}})", "'proportional'"},
      {R"({"rope_parameters":{"rope_type":"yarn","factor":2.0,"short_factor":[1.0]}})", "'short_factor'"},
      {R"({"rope_parameters":{"rope_type":"linear","factor":2.0,"mscale":1.0}})", "'mscale'"},
      {R"({"rope_parameters":{"rope_type":"default","partial_rotary_factor":0.5}})",
       "'partial_rotary_factor'"},
  };
  for (const auto& c : cases) expect_error(with(c.patch), Code::not_covered, {"config.json", c.name});
}

TEST_F(ConfigTest, HarmlessKeysPass) {
  auto c = with(
      R"({"_name_or_path":"x/y","attention_dropout":0.1,"use_cache":false,"pretraining_tp":2,"sliding_window":null,
                    "unsloth_version":"1","is_causal":true,"partial_rotary_factor":1.0,"auto_map":{},"dtype":"bfloat16"})");
  EXPECT_TRUE(c) << c.error().message;
}

TEST_F(ConfigTest, RefusesWrongValues) {
  struct {
    const char *patch, *reason;
  } cases[] = {
      {R"({"vocab_size":null})", "'vocab_size' is missing"},
      {R"({"vocab_size":0})", "'vocab_size' = 0"},
      {R"({"hidden_size":-8})", "'hidden_size' = -8"},
      {R"({"hidden_size":1e30})", "'hidden_size'"},
      {R"({"num_hidden_layers":"2"})", "'num_hidden_layers' = \"2\""},
      {R"({"num_hidden_layers":2000000000})", "absurdly large"},
      {R"({"hidden_size":7})", "not a multiple"},
      {R"({"head_dim":3})", "'head_dim' = 3 is odd"},
      {R"({"num_attention_heads":4,"num_key_value_heads":3})", "not a multiple of 'num_key_value_heads'"},
      {R"({"rms_norm_eps":0})", "'rms_norm_eps' = 0"},
      {R"({"rms_norm_eps":1e-60})", "'rms_norm_eps'"},
      {R"({"tie_word_embeddings":1})", "'tie_word_embeddings' = 1"},
      {R"({"rope_scaling":{"type":"linear"}})", "'factor' is missing"},
      {R"({"rope_scaling":{"type":"linear","factor":0}})", "'factor' = 0"},
      {R"({"rope_scaling":7})", "not an object"},
      {R"({"rope_scaling":{"type":"linear","factor":2},"rope_parameters":{"rope_type":"default"}})",
       "disagree"},
      {R"({"rope_theta":5000,"rope_parameters":{"rope_type":"default","rope_theta":10000}})",
       "'rope_theta' is given twice"},
      {R"({"rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":5,"high_freq_factor":4}})",
       "is below"},
      {R"({"rope_scaling":{"rope_type":"yarn"}})", "'factor' is missing"},
      {R"({"rope_scaling":{"rope_type":"yarn","factor":2,"beta_fast":0.5}})", "'beta_fast' is below"},
      {R"({"rope_scaling":{"rope_type":"yarn","factor":2,"truncate":1}})", "'truncate' = 1"},
      {R"({"rope_scaling":{"rope_type":"yarn","factor":2,"attention_factor":0}})", "'attention_factor' = 0"},
      {R"({"rope_theta":1,"rope_scaling":{"rope_type":"yarn","factor":2}})", "'rope_theta' must be above 1"},
      {R"({"eos_token_id":10})", "token id below 10"},
      {R"({"eos_token_id":"x"})", "token id below 10"},
  };
  for (const auto& c : cases) expect_error(with(c.patch), Code::bad_input, {"config.json", c.reason});
  put("config.json", "{\"vocab_size\":1,\"vocab_size\":2}");
  expect_error(read_config(folder_), Code::bad_input, {"'vocab_size' is given twice"});
  put("config.json", "{");
  expect_error(read_config(folder_), Code::bad_input, {"not well-formed JSON"});
  std::filesystem::remove(path("config.json"));
  expect_error(read_config(folder_), Code::bad_input, {"config.json", "No such file"});
}

// Lines of tests/families/NAME, each a JSON object.
std::vector<Value> lines_of(const std::string& name) {
  std::vector<Value> lines;
  std::istringstream text(*read_file(INVAR_SOURCE_DIR "/tests/families/" + name));
  for (std::string line; std::getline(text, line);) lines.push_back(json::read_or_null(line));
  return lines;
}

class FamilyConfigTest : public FolderTest {
 protected:
  FamilyConfigTest() {
    for (const Value& v : lines_of("vectors.jsonl")) cases_[v.get("name").text] = v.get("config");
  }
  Result<Decoder> read(const Value& config) {
    put("config.json", json::dump(config));
    return read_config(folder_);
  }
  // The recipe of a case with these keys beside or in the place of its own.
  Result<onnx::Parameters> recipe(const std::string& name, const Value& more = {}) {
    INVAR_TRY(const Decoder d, read(Value(cases_.at(name)).update(more)));
    return recipe_of(d).parameters;
  }
  std::map<std::string, Value> cases_;
};

// saved_configs.jsonl: what transformers makes of a file when it saves it, and of each family's
// defaults (tools/families/save_configs.py).
TEST_F(FamilyConfigTest, WhatTransformersSavesIsReadAsTheSame) {
  std::set<std::string> types;
  size_t cases = 0;
  for (const Value& line : lines_of("saved_configs.jsonl")) {
    const auto saved = read(line.get("config"));
    ASSERT_TRUE(saved) << json::dump(line) << saved.error().message;
    if (!line.contains("case")) {
      types.insert(line.get("family").text);
      continue;
    }
    ++cases;
    const std::string& name = line.get("case").text;
    const auto before = recipe(name);
    ASSERT_TRUE(before) << name << before.error().message;
    EXPECT_EQ(recipe_of(*saved).parameters, *before) << name;
  }
  // Those that transformers lacks, and those that it has within larger models alone.
  const std::set<std::string> lacks = {"kimi_k2", "mimo", "internlm2", "minicpm"},
                              within = {"glm4v_text", "mllama_text_model"};
  const auto is_saved = [&](const auto& c) { return !lacks.contains(c.second.get("model_type").text); };
  EXPECT_EQ(cases, static_cast<size_t>(std::ranges::count_if(cases_, is_saved)));
  for (const Family& family : families())
    EXPECT_TRUE(types.contains(family.model_type) || lacks.contains(family.model_type) ||
                within.contains(family.model_type))
        << family.model_type;
}

TEST_F(FamilyConfigTest, AValueThatSaysWhatTheFamilyDoesIsNoRefusal) {
  const struct {
    const char *name, *more;
  } same[] = {
      {"hunyuan", R"({"use_qk_norm": true, "num_experts": 1})"},
      {"qwen3", R"({"use_qk_norm": true, "qk_layernorm": true, "use_parallel_residual": false})"},
      {"llama", R"({"num_local_experts": 1, "num_experts": 0, "n_routed_experts": 0, "alibi": false})"},
      {"llama", R"({"layer_types": ["full_attention", "full_attention"], "partial_rotary_factor": 1.0})"},
      {"gpt_neox", R"({"partial_rotary_factor": 0.5, "rotary_pct": 0.5})"},
      {"qwen2", R"({"sliding_window": 0})"},
      {"qwen2_moe", R"({"sliding_window": 0})"},
      {"qwen3", R"({"sliding_window": 0})"},
      {"qwen3_moe", R"({"sliding_window": 0})"},
      {"mistral-window", R"({"layer_types": ["sliding_attention", "sliding_attention"]})"},
      {"mistral-window", R"({"use_sliding_window": true})"},
      {"granite", R"({"attn_logit_softcapping": null, "num_local_experts": 0})"},
      {"gpt_neox", R"({"parallel_attn": true})"},
      {"mixtral", R"({"mlp_layer_types": ["sparse", "sparse"]})"},
      {"deepseek_v3", R"({"model_type": "kimi_k2"})"},
  };
  for (const auto& [name, more] : same) {
    auto before = recipe(name), after = recipe(name, json::read_or_null(more));
    ASSERT_TRUE(after) << name << more << after.error().message;
    before->erase("family"), after->erase("family");  // kimi_k2 is deepseek_v3
    EXPECT_EQ(*after, *before) << name << more;
  }
  const auto yarn = [&](const char* more) {
    Value rope =
        json::read_or_null(R"({"type": "yarn", "factor": 4, "original_max_position_embeddings": 32})");
    rope.update(json::read_or_null(more));
    return recipe("qwen2", {{"rope_scaling", rope}});
  };
  for (const char* more : {R"({"finetuned": true})", R"({"mscale_all_dim": 0})", R"({"mscale": 0.0})",
                           R"({"mscale": 0.7, "mscale_all_dim": 0})"}) {
    const auto after = yarn(more);
    ASSERT_TRUE(after) << more << after.error().message;
    const auto before =
        yarn(std::string_view(more).find("0.7") == std::string_view::npos ? "{}" : R"({"mscale": 0.7})");
    EXPECT_EQ(*after, *before) << more;
  }
  EXPECT_TRUE(yarn(R"({"beta_fast": 4, "beta_slow": 4})"));
}

// Other values of these keys say something that the recipe does not do.
TEST_F(FamilyConfigTest, AValueThatSaysSomethingElseIsRefused) {
  const struct {
    const char *name, *more, *key;
  } other[] = {
      {"llama", R"({"use_qk_norm": true})", "use_qk_norm"},
      {"llama", R"({"num_experts": 2})", "num_experts"},
      {"llama", R"({"layer_types": ["full_attention", "sliding_attention"]})", "layer_types"},
      {"llama", R"({"sliding_window": 4096})", "sliding_window"},
      {"gpt_neox", R"({"partial_rotary_factor": 0.25})", "partial_rotary_factor"},
      {"gpt_neox-in-sequence", R"({"parallel_attn": true})", "parallel_attn"},
      {"qwen2", R"({"alibi": true})", "alibi"},
      {"deepseek_v3", R"({"model_type": "kimi_k4"})", "\"kimi_k2\", \"sarvam_mla\" are"},
  };
  for (const auto& [name, more, key] : other)
    expect_error(read(Value(cases_.at(name)).update(json::read_or_null(more))), Code::not_covered, {key});
}

}  // namespace
}  // namespace invar::checkpoint
