#include "receipt/signatures/signatures.h"

#include <gtest/gtest.h>

#include "receipt/batch.h"
#include "receipt/seal.h"
#include "receipt/testing.h"

namespace invar::receipt {
namespace {

using testing::edited;
using testing::fields_of;
using testing::found;
using testing::toy_receipt;

std::string found_in_batch(const std::string& json, Batch* out = nullptr) {
  const auto f = validate_batch(json, "b.json", out);
  return f ? fields_of(*f) : f.error().message;
}

// The form needs no OpenSSL, so signatures that nobody made show it.
Receipt with_made_up(std::vector<KeySignature> signatures) {
  Receipt r = toy_receipt();
  r.signatures = std::move(signatures);
  return r;
}

TEST(Signatures, FormIsChecked) {
  const std::string one = print(with_made_up({{sha256("key"), {}}}));
  const std::string list = one.substr(one.find("[\n    {\"key\""));
  const std::string whole = list.substr(0, list.find("\n  ]") + 4), hex(128, '0');
  EXPECT_EQ(found(edited(one, whole, "[]")), "signatures");
  EXPECT_EQ(found(edited(one, whole, "{}")), "signatures");
  EXPECT_EQ(found(edited(one, whole, "[7]")), "signatures[0]");
  EXPECT_EQ(found(edited(one, hex, hex.substr(1))), "signatures[0].signature");
  EXPECT_EQ(found(edited(one, "\"key\": \"", "\"key\": \"0")), "signatures[0].key");
  EXPECT_EQ(found(edited(one, "{\"key\"", "{\"by\": 1, \"key\"")), "signatures[0].by");
  EXPECT_EQ(found(edited(one, ", \"signature\": \"" + hex + "\"", "")), "signatures[0].signature");
  EXPECT_EQ(found(print(with_made_up({{sha256("key"), {}}, {sha256("key"), {}}}))), "signatures[1].key");
  EXPECT_EQ(found(one), "signatures[0].signature");
}

TEST(Signatures, AreOfTheHashByTheKey) {
  if (!signature::can_sign()) {
    Receipt r = toy_receipt();
    EXPECT_EQ(sign(r, {}).error().code, Code::not_covered);
    return;
  }
  const auto key = *signature::key_of_seed(sha256("one")), other = *signature::key_of_seed(sha256("two"));
  Receipt r = toy_receipt(), back;
  const Digest hash = receipt_hash(r);
  ASSERT_TRUE(sign(r, key));
  ASSERT_TRUE(sign(r, other));
  ASSERT_TRUE(sign(r, key));
  ASSERT_EQ(r.signatures.size(), 2u);
  EXPECT_EQ(receipt_hash(r), hash);
  EXPECT_TRUE(*signature::verify(key.public_key, r.signatures[0].signature,
                                 "invar-receipt-signature 1\n" + to_hex(hash)));
  const std::string text = print(r);
  EXPECT_EQ(found(text, &back), "");
  EXPECT_EQ(print(back), text);
  std::string flipped = signature::to_hex(r.signatures[1].signature), right = flipped;
  flipped[9] = flipped[9] == '0' ? '1' : '0';
  EXPECT_EQ(found(edited(text, right, flipped)), "signatures[1].signature");
  EXPECT_EQ(found(edited(text, to_hex(key.public_key), to_hex(sha256("x")))), "signatures[0].signature");
  // The signature of one receipt below another.
  Receipt longer = toy_receipt(4);
  longer.signatures = r.signatures;
  EXPECT_EQ(found(print(longer)), "signatures[0].signature signatures[1].signature");
  // A receipt that was redacted keeps them.
  Receipt salted = toy_receipt();
  salted.salt = sha256("salt");
  ASSERT_TRUE(sign(salted, key));
  EXPECT_EQ(found(print(*redact(salted))), "");
}

Batch toy_batch() {
  return {{{"a.json", sha256("a")}, {"sub/b.json", sha256("b")}, {"c.json", sha256("a")}}, {}};
}

TEST(Batch, FormAndHashAreChecked) {
  const Batch b = toy_batch();
  const std::string text = print(b);
  Batch back;
  EXPECT_TRUE(is_batch(text));
  EXPECT_FALSE(is_batch(print(toy_receipt())));
  EXPECT_FALSE(is_batch("invar-receipt-batch"));
  EXPECT_EQ(found_in_batch(text, &back), "");
  EXPECT_EQ(print(back), text);
  const auto leaf = sha256("schema=\"invar-receipt-batch 1\"");
  const Digest leaves[] = {leaf, sha256("a"), sha256("b"), sha256("a")};
  EXPECT_EQ(batch_hash(b), merkle_root(leaves));
  const auto after = [&](const std::string& from, const std::string& to) {
    return found_in_batch(edited(text, from, to));
  };
  EXPECT_EQ(after(to_hex(sha256("b")), to_hex(sha256("d"))), "batch_hash");
  EXPECT_EQ(after("a.json", "z.json"), "");  // a label
  EXPECT_EQ(after("batch 1", "batch 2"), "schema");
  EXPECT_EQ(after("\"batch_hash\": \"", "\"batch_hash\": \"0"), "batch_hash");
  EXPECT_EQ(after("\"name\": \"a.json\", ", ""), "receipts[0].name");
  EXPECT_EQ(after("sub/b.json", "a.json"), "receipts[1].name");
  EXPECT_EQ(after("\"name\": \"a.json\"", "\"name\": 7"), "receipts[0].name");
  EXPECT_EQ(after("\"batch_hash\"", "\"x\": 1, \"batch_hash\""), "x");
  for (const char* name : {"/etc/passwd", "../a.json", "sub/../../a", "", "a//b", "./a", "a/", "x\\u0000y"})
    EXPECT_EQ(after("sub/b.json", name), "receipts[1].name") << name;
  EXPECT_EQ(found_in_batch(print(Batch{})), "receipts");
  EXPECT_EQ(found_in_batch("7"), "schema receipts batch_hash");
  EXPECT_EQ(found_in_batch("{"),
            "b.json:1:2: not JSON: the text ends here; expected a member's name in quotes");
}

TEST(Batch, ASignatureCoversItsReceipts) {
  if (!signature::can_sign()) return;  // Signatures.AreOfTheHashByTheKey has the refusal
  const auto key = *signature::key_of_seed(sha256("one"));
  Batch b = toy_batch(), back;
  ASSERT_TRUE(sign(b, key));
  EXPECT_EQ(found_in_batch(print(b), &back), "");
  EXPECT_EQ(print(back), print(b));
  Batch more = b;
  more.receipts.pop_back();
  EXPECT_EQ(found_in_batch(print(more)), "signatures[0].signature");
  // One kind of signature is none of the other.
  const auto f = [&] {
    std::vector<Finding> findings;
    check_signatures(b.signatures, kSignedReceipt, batch_hash(b), findings);
    return fields_of(findings);
  };
  EXPECT_EQ(f(), "signatures[0].signature");
}

}  // namespace
}  // namespace invar::receipt
