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

}  // namespace
}  // namespace invar::receipt
