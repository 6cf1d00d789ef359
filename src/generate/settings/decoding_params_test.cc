// Who decides how tokens are chosen: the caller, generation_config.json, transformers' defaults, in
// this order.
#include "generate/settings/decoding_params.h"

#include <gtest/gtest.h>

#include "base/file/file.h"
#include "base/file/temporary_file.h"
#include "generate/engine/generation_loop.h"
#include "generate/settings/settings_table.h"
#include "receipt/receipt.h"

namespace invar::generate {
namespace {

constexpr int64_t kContext = 512;  // of the shipped model

class DecodingParamsTest : public ::testing::Test {
 protected:
  DecodingParamsTest()
      : folder_(*TemporaryFolder::make(::testing::TempDir())),
        model_(*open_model({"shakespeare-4m", "", INVAR_SOURCE_DIR "/models/shakespeare-4m"})) {
    model_.folder = folder_.path();
  }
  void config(const std::string& text) {
    ASSERT_TRUE(write_file(folder_.path() + "/generation_config.json", text));
  }
  Result<DecodingParams> params(const SamplingOptions& o = {}) const { return decoding_params(model_, o); }
  Result<int64_t> length(int64_t prompt, const SamplingOptions& o = {}) const {
    INVAR_TRY(const DecodingParams d, params(o));
    return new_tokens(model_, d, prompt);
  }

  TemporaryFolder folder_;
  ModelFolder model_;
};

TEST_F(DecodingParamsTest, GreedyWhereNobodySaysAnything) {
  const auto d = params();
  ASSERT_TRUE(d);
  EXPECT_FALSE(d->params.do_sample);
  EXPECT_EQ(d->params.top_k, 0);
  EXPECT_EQ(*length(6), kMaxNewTokens);
}

TEST_F(DecodingParamsTest, TheCheckpointsDefaults) {
  config(R"({"do_sample": true, "temperature": 0.5, "top_p": 0.9, "max_new_tokens": 7})");
  const auto d = params();
  ASSERT_TRUE(d);
  EXPECT_TRUE(d->params.do_sample);
  EXPECT_EQ(d->params.temperature, 0.5f);
  EXPECT_EQ(d->params.top_p, 0.9f);
  EXPECT_EQ(d->params.top_k, kTopK);
  EXPECT_EQ(*length(6), 7);
  EXPECT_EQ(*length(kContext - 2), 2) << "what the checkpoint says is cut to the context";
}

TEST_F(DecodingParamsTest, TheCallerDecidesFirst) {
  config(R"({"do_sample": true, "temperature": 0.5, "top_k": 3, "max_length": 20})");
  SamplingOptions o;
  o.temperature = 2.0f, o.top_k = 0, o.seed = 9, o.max_new_tokens = 5;
  const auto d = params(o);
  ASSERT_TRUE(d);
  EXPECT_EQ(d->params.temperature, 2.0f);
  EXPECT_EQ(d->params.top_k, 0);
  EXPECT_EQ(d->params.seed, 9u);
  EXPECT_EQ(*length(6, o), 5);
  EXPECT_EQ(*length(6), 14) << "max_length is that of prompt and answer";
  EXPECT_EQ(length(20).error().code, Code::bad_input);
}

TEST_F(DecodingParamsTest, GreedyReadsNoSampling) {
  config(R"({"do_sample": true, "temperature": 0.5, "min_p": 0.1})");
  SamplingOptions o;
  o.do_sample = false;
  const auto d = params(o);
  ASSERT_TRUE(d);
  EXPECT_FALSE(d->params.do_sample);
  EXPECT_EQ(d->params.temperature, 1.0f);
}

TEST_F(DecodingParamsTest, RangesOfWhatIsNotUsed) {
  for (const char* text : {R"({"do_sample": false, "temperature": 0})", R"({"temperature": 0.0, "top_p": 0})",
                           R"({"do_sample": false, "top_p": 2, "min_p": -1, "epsilon_cutoff": 1})"}) {
    config(text);
    const auto d = params();
    ASSERT_TRUE(d) << text << d.error().message;
    EXPECT_FALSE(d->params.do_sample);
    EXPECT_EQ(d->params.temperature, 1.0f);
    SamplingOptions o;
    o.do_sample = true;
    ASSERT_FALSE(params(o)) << text;
    EXPECT_EQ(params(o).error().code, Code::bad_input);
    EXPECT_NE(params(o).error().message.find("generation_config.json: "), std::string::npos);
  }
  config(R"({"do_sample": true, "temperature": 0})");
  EXPECT_EQ(params().error().code, Code::bad_input);
  SamplingOptions o;
  o.temperature = 0.5f;
  EXPECT_TRUE(params(o)) << "the caller's is used";
}

TEST_F(DecodingParamsTest, ATemperatureOfZeroIsGreedy) {
  config(R"({"do_sample": true, "temperature": 0.5})");
  SamplingOptions o;
  o.temperature = 0.0f, o.top_p = 0.9f, o.seed = 7;
  for (const auto& p : {params(o)->params, *sampling_params(o)}) {
    EXPECT_FALSE(p.do_sample);
    EXPECT_EQ(p.temperature, 1.0f);
    EXPECT_EQ(p.top_p, 1.0f);
    EXPECT_EQ(p.seed, 0u);
  }
  o.do_sample = false;
  EXPECT_FALSE(params(o)->params.do_sample);
  o.do_sample = true;
  EXPECT_EQ(params(o).error().code, Code::bad_input);
  EXPECT_EQ(sampling_params(o).error().code, Code::bad_input);
  o.do_sample = false, o.temperature = -1.0f;
  EXPECT_EQ(params(o).error().code, Code::bad_input) << "the caller's ranges, used or not";
}

TEST_F(DecodingParamsTest, DrawingWhereOnlyTheCallerAsksForIt) {
  config(R"({"temperature": 0.5})");
  SamplingOptions o;
  o.do_sample = true;
  const auto d = params(o);
  ASSERT_TRUE(d);
  EXPECT_TRUE(d->params.do_sample);
  EXPECT_EQ(d->params.temperature, 0.5f);
  EXPECT_EQ(d->params.top_k, kTopK);
}

TEST_F(DecodingParamsTest, WhatOnlyMattersWhereTokensAreDrawn) {
  config(R"({"typical_p": 0.5})");
  EXPECT_TRUE(params());
  SamplingOptions o;
  o.top_k = 5;
  EXPECT_EQ(params(o).error().code, Code::not_covered);
}

TEST_F(DecodingParamsTest, SettingsOfTheCallerThenOfTheCheckpoint) {
  config(R"({"repetition_penalty": 1.1, "no_repeat_ngram_size": 3, "min_p": 0.1, "suppress_tokens": [9, 4, 9],
             "bad_words_ids": [[7, 2], [1], [5]], "stop_strings": ["b", "a"]})");
  SamplingOptions o;
  o.repetition_penalty = 1.5f;
  const auto d = params(o);
  ASSERT_TRUE(d);
  EXPECT_FALSE(d->params.do_sample);
  EXPECT_EQ(d->params.min_p, 0) << "nothing is drawn";
  const sample::Processors& p = d->params.processors;
  EXPECT_EQ(p.repetition_penalty, 1.5f);
  EXPECT_EQ(p.no_repeat_ngram_size, 3);
  EXPECT_EQ(p.suppress_tokens, (std::vector<int32_t>{4, 9}));
  EXPECT_EQ(p.bad_words_ids, (std::vector<std::vector<int32_t>>{{5}, {7, 2}})) << "1 is the stop token";
  EXPECT_EQ(d->stop_strings, (std::vector<std::string>{"a", "b"}));
  o.min_p = 0.2f;
  EXPECT_EQ(params(o)->params.min_p, 0.2f);
  EXPECT_TRUE(params(o)->params.do_sample);
}

TEST_F(DecodingParamsTest, WhatDependsOnThePrompt) {
  const auto of = [&](int64_t tokens, int64_t most, const SamplingOptions& o = {}) {
    return params_for(model_, *params(o), tokens, most);
  };
  config(R"({"min_length": 20, "forced_bos_token_id": 3})");
  EXPECT_EQ(of(6, 50)->processors.min_new_tokens, 14);
  EXPECT_EQ(of(6, 5)->processors.min_new_tokens, 5);
  EXPECT_EQ(of(30, 50)->processors.min_new_tokens, 0);
  EXPECT_EQ(of(6, 50)->processors.forced_bos_token_id, -1);
  EXPECT_EQ(of(1, 50)->processors.forced_bos_token_id, 3);
  config(R"({"min_length": 20, "min_new_tokens": 3})");
  EXPECT_EQ(of(6, 50)->processors.min_new_tokens, 3);
  SamplingOptions o;
  o.min_new_tokens = 8;
  EXPECT_EQ(of(6, 50, o)->processors.min_new_tokens, 8);
  EXPECT_EQ(of(6, 7, o).error().code, Code::bad_input);
  model_.stop_tokens = {};
  EXPECT_EQ(of(6, 50, o)->processors.min_new_tokens, 0) << "there is none to wait for";
}

TEST_F(DecodingParamsTest, NoGenerationConfig) {
  config(R"({"num_beams": 4})");
  EXPECT_EQ(params().error().code, Code::not_covered);
  SamplingOptions o;
  o.no_generation_config = true;
  EXPECT_TRUE(params(o));
}

TEST_F(DecodingParamsTest, WhatTheCallerAsksForHasToFit) {
  SamplingOptions o;
  o.max_new_tokens = kContext;
  EXPECT_EQ(length(6, o).error().code, Code::bad_input);
  EXPECT_EQ(length(kContext).error().code, Code::bad_input);
}

// A setting that changes something is in the receipt, under the name that the table gives it.
TEST(SettingsTableTest, ReceiptsNameSettingsAsTheTableDoes) {
  receipt::Receipt r;
  std::vector<std::string> names;
  const auto change = [](auto& value) {
    if constexpr (requires { value.emplace_back(); })
      value.emplace_back();
    else if constexpr (requires { value.append("x"); })
      value.append("x");
    else
      value = std::remove_reference_t<decltype(value)>(!value);
  };
  for_each_setting([&](const SettingRow& row, auto, auto member) {
    const auto change_of = [&](auto& params) {
      if constexpr (requires { params.*member; }) change(params.*member), names.push_back(row.name);
    };
    change_of(r.sampling), change_of(r.sampling.processors);
  });
  EXPECT_EQ(names.size(), 21u);
  const std::string text = receipt::print(r);
  for (const std::string& name : names)
    EXPECT_NE(text.find("\"" + name + "\": "), std::string::npos) << name << " in " << text;
}

}  // namespace
}  // namespace invar::generate
