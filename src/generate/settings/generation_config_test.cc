// generation_config.json alone; tests/cli/test_generation_config.py goes through every key and
// value.
#include "generate/settings/generation_config.h"

#include <gtest/gtest.h>

#include "base/file/file.h"
#include "base/file/temporary_file.h"

namespace invar::generate {
namespace {

class GenerationConfigTest : public ::testing::Test {
 protected:
  Result<GenerationConfig> read(const std::string& text) {
    EXPECT_TRUE(write_file(folder_.path() + "/generation_config.json", text));
    return read_generation_config(folder_.path());
  }
  TemporaryFolder folder_ = *TemporaryFolder::make(::testing::TempDir());
};

TEST_F(GenerationConfigTest, AnAbsentFileSaysNothing) {
  const auto c = read_generation_config(folder_.path());
  ASSERT_TRUE(c);
  EXPECT_FALSE(c->do_sample || c->temperature || c->top_k || c->top_p || c->max_length || c->max_new_tokens);
  EXPECT_TRUE(c->drawing);
  EXPECT_FALSE(*read_stop_tokens(folder_.path()));
}

TEST_F(GenerationConfigTest, ValuesAreReadOnceToBinary32) {
  const auto c = read(R"({"do_sample": false, "temperature": 0.1, "top_k": 0, "top_p": null})");
  ASSERT_TRUE(c);
  EXPECT_EQ(c->do_sample, false);
  EXPECT_EQ(c->temperature, 0.1f);
  EXPECT_EQ(c->top_k, 0);
  EXPECT_FALSE(c->top_p);
}

TEST_F(GenerationConfigTest, NothingIsIgnoredInSilence) {
  EXPECT_EQ(read(R"({"num_beams": 4})").error().code, Code::not_covered);
  EXPECT_TRUE(read(R"({"num_beams": 1, "suppress_tokens": [], "use_cache": true})"));
  EXPECT_EQ(read(R"({"temprature": 1})").error().code, Code::not_covered);
  EXPECT_EQ(read(R"({"top_k": 1, "top_k": 1})").error().code, Code::bad_input);
  EXPECT_EQ(read(R"({"repetition_penalty": 0})").error().code, Code::bad_input);
  EXPECT_EQ(read(R"([])").error().code, Code::bad_input);
  const auto drawing = read(R"({"typical_p": 0.5})");
  ASSERT_TRUE(drawing);
  EXPECT_EQ(drawing->drawing.error().code, Code::not_covered);
}

TEST_F(GenerationConfigTest, Lists) {
  const auto c = read(R"({"bad_words_ids": [[3], [1, 2]], "forced_eos_token_id": 7, "suppress_tokens": [5, 4],
                          "stop_strings": "a"})");
  ASSERT_TRUE(c);
  EXPECT_EQ(c->bad_words_ids, (std::vector<std::vector<int32_t>>{{3}, {1, 2}}));
  EXPECT_EQ(c->forced_eos_token_id, (std::vector<int32_t>{7}));
  EXPECT_EQ(c->suppress_tokens, (std::vector<int32_t>{5, 4}));
  EXPECT_EQ(c->stop_strings, (std::vector<std::string>{"a"}));
  EXPECT_EQ(read(R"({"stop_strings": ["a", "b"]})")->stop_strings->size(), 2u);
  for (const char* wrong :
       {R"({"bad_words_ids": [3]})", R"({"bad_words_ids": [[]]})", R"({"bad_words_ids": 3})",
        R"({"suppress_tokens": 5})", R"({"suppress_tokens": [-1]})", R"({"stop_strings": [""]})",
        R"({"stop_strings": [5]})", R"({"forced_bos_token_id": [1]})", R"({"remove_invalid_values": 1})",
        R"({"repetition_penalty": 0})"})
    EXPECT_EQ(read(wrong).error().code, Code::bad_input) << wrong;
}

TEST_F(GenerationConfigTest, ConfigJsonIsAskedWhereThereIsNoFile) {
  const auto config = [&](const std::string& text) {
    EXPECT_TRUE(write_file(folder_.path() + "/config.json", text));
    return read_generation_config(folder_.path());
  };
  EXPECT_EQ(config(R"({"repetition_penalty": 1.1})").error().code, Code::not_covered);
  EXPECT_EQ(config(R"({"max_new_tokens": 5})").error().code, Code::not_covered);
  EXPECT_EQ(config(R"({"min_p": 0.1})")->drawing.error().code, Code::not_covered);
  EXPECT_TRUE(config(R"({"repetition_penalty": 1.0, "max_new_tokens": null, "hidden_size": 8})"));
  EXPECT_TRUE(config(R"({"repetition_penalty": 1.1})").error().message.find("config.json") !=
              std::string::npos);
  EXPECT_TRUE(write_file(folder_.path() + "/generation_config.json", "{}"));
  EXPECT_TRUE(read_generation_config(folder_.path()));
}

TEST_F(GenerationConfigTest, StopTokens) {
  const auto stop = [&](const std::string& text) {
    EXPECT_TRUE(write_file(folder_.path() + "/generation_config.json", text));
    return read_stop_tokens(folder_.path());
  };
  EXPECT_EQ(*stop(R"({"eos_token_id": 3})"), (std::vector<int32_t>{3}));
  EXPECT_EQ(*stop(R"({"eos_token_id": [3, 1]})"), (std::vector<int32_t>{3, 1}));
  EXPECT_EQ(*stop(R"({"eos_token_id": null})"), std::nullopt);
  EXPECT_EQ(stop(R"({"eos_token_id": [-1]})").error().code, Code::bad_input);
}

}  // namespace
}  // namespace invar::generate
