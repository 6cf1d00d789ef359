#include <gtest/gtest.h>

#include "base/file/file.h"
#include "base/file/temporary_file.h"
#include "generate/requests/request.h"

namespace invar::generate {
namespace {

class PromptFileTest : public ::testing::Test {
 protected:
  Result<std::vector<Prompt>> read(const std::string& text) {
    const std::string path = folder_.path() + "/p.jsonl";
    EXPECT_TRUE(write_file(path, text));
    return read_prompt_file(path, "out/r.json");
  }
  TemporaryFolder folder_ = *TemporaryFolder::make(::testing::TempDir());
};

TEST_F(PromptFileTest, OnePromptKeepsTheReceiptsName) {
  const auto prompts = read("\xef\xbb\xbf\"A\\n\"\n\n  \r\n");
  ASSERT_TRUE(prompts);
  ASSERT_EQ(prompts->size(), 1u);
  EXPECT_EQ((*prompts)[0].text, "A\n");
  EXPECT_EQ((*prompts)[0].receipt_path, "out/r.json");
}

TEST_F(PromptFileTest, ReceiptsOfSeveralAreNumbered) {
  const auto prompts = read("\"A\"\n{\"prompt\": \"B\"}");
  ASSERT_TRUE(prompts);
  ASSERT_EQ(prompts->size(), 2u);
  EXPECT_EQ((*prompts)[1].text, "B");
  EXPECT_EQ((*prompts)[1].receipt_path, "out/r.2.json");
}

TEST_F(PromptFileTest, RefusalsNameTheLine) {
  EXPECT_EQ(read("").error().code, Code::bad_input);
  EXPECT_EQ(read("7").error().code, Code::bad_input);
  EXPECT_EQ(read("{\"prompt\": \"A\", \"seed\": 1}").error().code, Code::bad_input);
}

TEST_F(PromptFileTest, ABadLineDoesNotStopTheOthers) {
  const auto prompts = read("\"A\"\n{\"messages\": [{}]}\n{\n\"B\"\n[{}]");
  ASSERT_TRUE(prompts);
  ASSERT_EQ(prompts->size(), 5u);
  EXPECT_TRUE((*prompts)[4].chat.starts_with("{\"messages\":[{}],"));
  EXPECT_FALSE((*prompts)[0].problem);
  EXPECT_NE((*prompts)[1].chat.find("{\"messages\":[{}],\"date\":\"2"), std::string::npos);
  EXPECT_NE((*prompts)[2].problem->message.find("p.jsonl:3:1:2: not JSON"), std::string::npos);
  EXPECT_EQ((*prompts)[3].text, "B");
  EXPECT_EQ((*prompts)[3].receipt_path, "out/r.4.json");
}

TEST_F(PromptFileTest, OptionsJoinTheMessages) {
  ChatOptions options;
  options.tools = "[{}]", options.system = "S", options.enable_thinking = false,
  options.date = "2026-01-02T03:04:05";
  EXPECT_EQ(*chat_input("[{\"role\": \"user\"}]", "m.json", options),
            "{\"messages\":[{\"role\":\"system\",\"content\":\"S\"},{\"role\":\"user\"}],\"tools\":[{}],"
            "\"variables\":{\"enable_thinking\":false},\"date\":\"2026-01-02T03:04:05\"}");
  options.tools = "{}", options.tools_file = "t.json";
  EXPECT_EQ(chat_input("[{}]", "m.json", options).error().message, "t.json: a list of tools is needed");
  EXPECT_EQ(chat_input("7", "m.json", {}).error().code, Code::bad_input);
}

}  // namespace
}  // namespace invar::generate
