// The cost of a receipt that a stranger made is bounded.
#include <gtest/gtest.h>

#include "receipt/receipt.h"
#include "receipt/testing.h"

namespace invar::receipt {
namespace {

using testing::toy_receipt;

// Texts that a stranger made as wrong as they can be: the list of findings stays short.
TEST(Bounds, OfFindings) {
  const auto repeated = [](const std::string& item) {
    std::string all;
    for (int i = 0; i < 200000; ++i) all += (i ? "," : "") + item;
    return all;
  };
  const std::string start = "{\"schema\": \"invar-receipt 2\", ";
  const std::string digests = [] {
    std::string all;
    for (int i = 0; i < 100000; ++i) all += (i ? ",\"" : "\"") + std::to_string(i) + "\": 0";
    return all;
  }();
  for (const std::string& text :
       {start + "\"input\": {\"tokens\": [" + repeated("\"a\"") + "]}}",
        start + "\"input\": {\"bad_words_ids\": [" + repeated("[1.5]") + "]}}",
        start + "\"input\": {\"logit_bias\": [" + repeated("[1.5, 2]") + "]}}",
        start + "\"input\": {\"logit_bias\": [" + repeated("[1]") + "]}}",
        start + "\"model\": {\"tensors\": [" + repeated("0") + "]}}",
        start + "\"model\": {\"tensors\": [{" + digests + "}]}}", start + digests + "}",
        start + "\"input\": {" + digests + "}}", start + "\"digests\": {" + digests + "}}",
        start + "\"execution\": {" + digests + "}, \"execution_digests\": {" + digests + "}}",
        start + "\"signatures\": [" + repeated("{}") + "]}"}) {
    const auto checked = validate(text, "r.json");
    ASSERT_TRUE(checked) << checked.error().message;
    const auto& f = *checked;
    ASSERT_LE(f.size(), kMostFindings + 1) << text.substr(0, 80);
    EXPECT_TRUE(f.size() <= kMostFindings || f.back().field == "further fields") << f.back().field;
  }
  Receipt r = toy_receipt();
  r.prompt_tokens.assign(1000000, -1), r.stop_tokens.assign(100000, 5);
  r.sampling.processors.bad_words_ids.assign(100000, {7});
  const auto f = validate(print(r), "r.json");
  ASSERT_TRUE(f);
  EXPECT_EQ(f->size(), kMostFindings + 1);
}

// receipt.10 and receipt.21 for the settings of sampling.22 and sampling.23: one spelling of each.
TEST(Bounds, OfBiasAndPenalties) {
  const auto stated = [](auto change) {
    Receipt r = toy_receipt();
    change(r.sampling.processors);
    return testing::found(print(r));
  };
  using S = sample::Processors;
  for (const float wrong : {-0.0f, 2.0000002f, -3.0f, 0x1p-130f}) {
    EXPECT_EQ(stated([&](S& s) { s.frequency_penalty = wrong; }), "input.frequency_penalty");
    EXPECT_EQ(stated([&](S& s) { s.presence_penalty = wrong; }), "input.presence_penalty");
  }
  for (const float wrong : {0.0f, -0.0f, 100.00001f, -101.0f, 0x1p-130f})
    EXPECT_EQ(stated([&](S& s) { s.logit_bias = {{1, wrong}}; }), "input.logit_bias");
  EXPECT_EQ(stated([](S& s) { s.logit_bias = {{-1, 1}}; }), "input.logit_bias");
  EXPECT_EQ(stated([](S& s) { s.logit_bias = {{1, 1}, {1, 2}}; }), "input.logit_bias");
  EXPECT_EQ(stated([](S& s) { s.logit_bias = {{2, 1}, {1, 1}}; }), "input.logit_bias[1]");
  EXPECT_EQ(stated([](S& s) { s = {.logit_bias = {{1, -100}, {2, 100}}, .presence_penalty = -2}; }), "");
}

TEST(Bounds, CommitIsLittleEndianBinary32) {
  std::vector<float> row{1.0f, -0.0f};
  EXPECT_EQ(commit(row), sha256(std::string_view("\0\0\x80\x3f\0\0\0\x80", 8)));
}

TEST(Bounds, InvalidUtf8InAPathIsReplaced) {
  Receipt r = toy_receipt();
  r.model_name = "mod\xff";
  EXPECT_EQ(testing::found(print(r)), "");
}

// The same for the settings of sampling.28 to sampling.31.
TEST(Bounds, OfMasksAndStopTokens) {
  const auto stated = [](auto change) {
    Receipt r = toy_receipt();
    change(r, r.sampling.processors);
    return testing::found(print(r));
  };
  using S = sample::Processors;
  EXPECT_EQ(stated([](Receipt&, S& s) { s.allowed_token_ids = {4, 3}; }), "input.allowed_token_ids[1]");
  EXPECT_EQ(stated([](Receipt&, S& s) { s.allowed_token_ids = {-1}; }), "input.allowed_token_ids");
  EXPECT_EQ(stated([](Receipt& r, S&) { r.stop_token_ids = {4, 4}; }), "input.stop_token_ids[1]");
  EXPECT_EQ(stated([](Receipt&, S& s) { s.structured_outputs = R"({"grammar":1,"regex":"a"})"; }), "");
  for (const char* wrong : {"x", R"({"regex":"a"})", R"({"grammar":1, "regex":"a"})",
                            R"-({"grammar":1,"regex":"(?=a)"})-", R"({"grammar":2,"regex":"a"})"})
    EXPECT_EQ(stated([&](Receipt&, S& s) { s.structured_outputs = wrong; }), "input.structured_outputs");
}

}  // namespace
}  // namespace invar::receipt
