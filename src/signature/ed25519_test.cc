// The check of signatures that needs no library, against OpenSSL's.
#include "signature/ed25519.h"

#include <gtest/gtest.h>

#include <string>

namespace invar::signature {
namespace {

// Signatures as they are made, and each with one bit changed of R, of S, of the key or the message.
TEST(Ed25519, AnswersAsOpenSslDoes) {
  if (!can_sign()) GTEST_SKIP() << "no OpenSSL";
  int good = 0, bad = 0;
  for (int i = 0; i < 40; ++i) {
    const Digest random = sha256("seed " + std::to_string(i));
    const PrivateKey key = *key_of_seed(random);
    const std::string message(static_cast<size_t>(5 * i), 'm');
    const Signature made = *sign(key, message);
    EXPECT_TRUE(check_ed25519(key.public_key, made, message));
    for (size_t change = 0; change < 8; ++change) {
      PublicKey by = key.public_key;
      Signature changed = made;
      std::string text = message;
      const auto bit = static_cast<uint8_t>(1 << random[change] % 8);
      if (change < 3)
        changed[random[change + 8] % 32] ^= bit;
      else if (change < 5)
        changed[32 + random[change + 8] % 32] ^= bit;
      else if (change < 7)
        by[random[change + 8] % 32] ^= bit;
      else
        text += "x";
      const bool expected = *verify(by, changed, text);
      EXPECT_EQ(check_ed25519(by, changed, text), expected) << i << " " << change;
      ++(expected ? good : bad);
    }
  }
  EXPECT_EQ(good, 0);
  EXPECT_EQ(bad, 320);
}

// RFC 8032, 5.1.7: the same signature with S + the group's order is none.
TEST(Ed25519, AnSOfTheOrderOrMoreIsRefused) {
  const PublicKey key = *digest_from_hex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
  const std::string r = "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155";
  const Signature made =
      *signature_from_hex(r + "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b");
  EXPECT_TRUE(check_ed25519(key, made, ""));
  const Digest order = *digest_from_hex("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
  Signature more = made;
  int carry = 0;
  for (size_t i = 0; i < 32; ++i) {
    carry += made[32 + i] + order[i];
    more[32 + i] = static_cast<uint8_t>(carry), carry >>= 8;
  }
  EXPECT_EQ(carry, 0);
  EXPECT_FALSE(check_ed25519(key, more, ""));
}

// Some 32 bytes are the encoding of a point, the others are none: S = 0 and R = the point of order
// 1 hold for the keys whose multiple by the hash is that point, which are those of small order.
TEST(Ed25519, BytesThatAreNoPointAreNoKey) {
  Signature neutral{};
  neutral[0] = 1;
  PublicKey one{};
  one[0] = 1;
  EXPECT_TRUE(check_ed25519(one, neutral, "any message"));  // verify() refuses such keys
  one[31] = 0x80;                                           // x = 0 has no sign, and OpenSSL takes it
  EXPECT_TRUE(check_ed25519(one, neutral, "any message"));
  PublicKey two{};
  two[0] = 2;  // y = 2 is of no point
  EXPECT_FALSE(check_ed25519(two, neutral, "any message"));
  PublicKey beyond;
  beyond.fill(0xff);
  beyond[0] = 0xee, beyond[31] = 0x7f;  // p + 1: y = 1 in another spelling
  EXPECT_TRUE(check_ed25519(beyond, neutral, "any message"));
}

}  // namespace
}  // namespace invar::signature
