#include <gtest/gtest.h>

#include "base/file/file.h"
#include "base/file/temporary_file.h"
#include "generate/generate.h"

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
  const auto messages = read("\"A\"\n{\"messages\": []}");
  ASSERT_FALSE(messages);
  EXPECT_EQ(messages.error().code, Code::not_covered);
  EXPECT_NE(messages.error().message.find("p.jsonl:2: chat messages"), std::string::npos);
}

}  // namespace
}  // namespace invar::generate
