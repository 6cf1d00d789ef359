// Who decides how tokens are chosen: the caller, generation_config.json, transformers' defaults, in
// this order.
#include "generate/model/decoding_params.h"

#include <gtest/gtest.h>

#include "base/file/file.h"
#include "base/file/temporary_file.h"

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
  config(R"({"min_p": 0.1})");
  EXPECT_TRUE(params());
  SamplingOptions o;
  o.top_k = 5;
  EXPECT_EQ(params(o).error().code, Code::not_covered);
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

}  // namespace
}  // namespace invar::generate
