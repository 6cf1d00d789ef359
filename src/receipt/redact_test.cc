// Salts, and receipts that do not show their prompt (receipt.27).
#include <gtest/gtest.h>

#include "receipt/fields/fields.h"
#include "receipt/seal.h"
#include "receipt/testing.h"

namespace invar::receipt {
namespace {

using testing::edited;
using testing::fields_of;
using testing::found;
using testing::toy_receipt;

Receipt salted() {
  Receipt r = toy_receipt();
  r.salt = sha256("a salt");
  return r;
}

TEST(Redact, ASaltChangesTheLeavesThatTellOfThePromptAlone) {
  const Receipt r = salted(), plain = toy_receipt();
  EXPECT_EQ(found(print(r)), "");
  for (const Field& f : fields(plain))
    EXPECT_EQ(leaf(f, r) != leaf(f, plain),
              f.path() == "input.prompt" || f.path() == "input.tokens" || f.path() == "output.logits")
        << f.path();
  const auto bytes = [](const Digest& d) { return std::string(d.begin(), d.end()); };
  for (const Field& f : fields(plain))
    if (f.path() == "input.tokens") {
      const Digest salt = sha256(bytes(r.salt) + "input.tokens");
      EXPECT_EQ(leaf(f, r), sha256("input.tokens=[0,7,5]" + bytes(salt)));
    }
}

TEST(Redact, KeepsTheHashAndShowsNothingOfThePrompt) {
  const Receipt r = salted();
  const auto redacted = redact(r);
  ASSERT_TRUE(redacted);
  const std::string text = print(*redacted);
  EXPECT_EQ(receipt_hash(*redacted), receipt_hash(r));
  Receipt back;
  EXPECT_EQ(found(text, &back), "");
  EXPECT_EQ(print(back), text);
  EXPECT_EQ(receipt_hash(back), receipt_hash(r));
  EXPECT_EQ(back.withheld.size(), 4u);
  for (const char* secret : {"ME\\\\O", "[0, 7, 5]"}) EXPECT_EQ(text.find(secret), text.npos) << secret;
  EXPECT_EQ(text.find(to_hex(r.salt)), text.npos);
  EXPECT_EQ(text.find(to_hex(r.logits[0])), text.npos);
  EXPECT_NE(text.find("\"prompt\": null"), text.npos);
}

TEST(Redact, TheMessagesOfAChatAreWithheldToo) {
  Receipt r = salted(), other = r;
  r.chat = "{\"messages\":[]}", other.chat = "{\"messages\":[{}]}";
  const auto redacted = redact(r);
  ASSERT_TRUE(redacted);
  const std::string text = print(*redacted);
  EXPECT_EQ(found(print(r)), "");
  EXPECT_EQ(found(text), "");
  EXPECT_EQ(receipt_hash(*redacted), receipt_hash(r));
  EXPECT_NE(receipt_hash(other), receipt_hash(r));
  EXPECT_EQ(redacted->withheld.size(), 5u);
  EXPECT_EQ(text.find("messages"), text.npos);
  EXPECT_EQ(found(edited(text, "\"chat\": null", "\"chat\": \"x\"")), "input.chat input.chat");
  for (const Field& f : fields(r))
    if (f.path() == "input.chat") {
      Receipt plain = r;
      plain.salt = {};
      EXPECT_NE(leaf(f, r), leaf(f, plain));
    }
}

TEST(Redact, AllOrNothingIsWithheld) {
  const std::string text = print(*redact(salted())), plain = print(toy_receipt());
  EXPECT_EQ(found(edited(text, "\"prompt\": null", "\"prompt\": \"x\"")), "input.prompt input.prompt");
  EXPECT_EQ(found(edited(text, "\"salt\": null", "\"salt\": \"" + to_hex(salted().salt) + "\"")),
            "input.salt");
  EXPECT_EQ(found(edited(text, ",\n    \"salt\": null", "")), "input.salt digests.input.salt receipt_hash");
  EXPECT_EQ(found(edited(text, "\"logits\": null", "\"logits\": []")), "output.logits output.logits");
  EXPECT_EQ(found(edited(text, "\"seed\": \"18446744073709551557\"", "\"seed\": null")), "input.seed");
  EXPECT_EQ(found(edited(plain, "\"tokens\": [0, 7, 5]", "\"tokens\": null")),
            "input.prompt output.logits input.salt");
  // The digest of a withheld field is all that is left of it.
  const std::string leaf_text = to_hex(redact(salted())->withheld.at("input.prompt"));
  EXPECT_EQ(found(edited(text, leaf_text, std::string(64, '0'))), "receipt_hash");
  EXPECT_EQ(found(edited(text, "\"" + leaf_text + "\"", "7")), "digests.input.prompt");
}

TEST(Redact, WhatCannotBeRedacted) {
  const auto unsalted = redact(toy_receipt()), twice = redact(*redact(salted()));
  ASSERT_FALSE(unsalted);
  EXPECT_NE(unsalted.error().message.find("the receipt has no salt"), std::string::npos);
  ASSERT_FALSE(twice);
  EXPECT_NE(twice.error().message.find("redacted already"), std::string::npos);
}

TEST(Redact, AChangedSaltIsFound) {
  const Receipt r = salted();
  Receipt other = r;
  other.salt[3] ^= 1;
  EXPECT_NE(receipt_hash(other), receipt_hash(r));
  EXPECT_EQ(found(edited(print(r), to_hex(r.salt), to_hex(other.salt))),
            "input.prompt input.tokens input.salt output.logits");
  EXPECT_EQ(found(edited(print(r), to_hex(r.salt), std::string(64, '0'))),
            "input.salt input.prompt input.tokens input.salt output.logits");
}

}  // namespace
}  // namespace invar::receipt
