#include "signature/signature.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/file/file.h"
#include "signature/key_file.h"

namespace invar::signature {
namespace {

std::string bytes_of(std::string_view hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    out += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return out;
}

// RFC 8032, section 7.1: TEST 1, TEST 2, TEST 3 and TEST SHA(abc).
struct Vector {
  const char *seed, *key, *message, *signature;
};
constexpr Vector kVectors[] = {
    {"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
     "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
     "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f"
     "059"
     "5bbe24655141438e7a100b"},
    {"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
     "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
     "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2ea"
     "eb4"
     "302aeeb00d291612bb0c00"},
    {"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
     "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
     "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e"
     "971"
     "6ed28dc027beceea1ec40a"},
    {"833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
     "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
     "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d442"
     "3643"
     "ce80e2a9ac94fa54ca49f",
     "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e0303dca179"
     "c13"
     "8ac17ad9bef1177331a704"},
};

TEST(Signature, VectorsOfRfc8032) {
  for (const Vector& v : kVectors) {
    const auto key = key_of_seed(*digest_from_hex(v.seed));
    if (!can_sign()) {
      ASSERT_FALSE(key);
      EXPECT_EQ(key.error().code, Code::not_covered);
      EXPECT_NE(key.error().message.find("no OpenSSL"), std::string::npos);
      continue;
    }
    ASSERT_TRUE(key);
    EXPECT_EQ(invar::to_hex(key->public_key), v.key);
    const std::string message = bytes_of(v.message);
    const auto made = sign(*key, message);
    ASSERT_TRUE(made);
    EXPECT_EQ(to_hex(*made), v.signature);
    EXPECT_TRUE(*verify(key->public_key, *made, message));
    EXPECT_FALSE(*verify(key->public_key, *made, message + "x"));
    Signature other = *made;
    other[7] ^= 1;
    EXPECT_FALSE(*verify(key->public_key, other, message));
    EXPECT_FALSE(*verify(Digest{}, *made, message));
    // RFC 8032 5.1.7: S is below the group's order, or the signature would have a second form.
    for (size_t i = 32; i < 64; ++i) other[i] = 0xff;
    EXPECT_FALSE(*verify(key->public_key, other, message));
  }
}

// S = 0 and R = the point of order 1 hold for every message under that point as the key.
TEST(Signature, KeysOfSmallOrderSignNothing) {
  for (uint8_t sign : {0x00, 0x80}) {
    PublicKey key{};
    Signature forged{};
    key[0] = forged[0] = 1, key[31] = forged[31] = sign;
    EXPECT_FALSE(*verify(key, forged, "any message"));
  }
}

TEST(Signature, Hexadecimal) {
  const auto s = signature_from_hex(kVectors[0].signature);
  ASSERT_TRUE(s);
  EXPECT_EQ(to_hex(*s), kVectors[0].signature);
  EXPECT_FALSE(signature_from_hex(std::string(127, '0')));
  EXPECT_FALSE(signature_from_hex(std::string(127, '0') + "A"));
}

// `openssl genpkey -algorithm ed25519` and `openssl pkey -pubout` write these for the key of RFC
// 8032's TEST 1.
constexpr char kPrivatePem[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
    "-----END PRIVATE KEY-----\n";
constexpr char kPublicPem[] =
    "-----BEGIN PUBLIC KEY-----\n"
    "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n"
    "-----END PUBLIC KEY-----\n";

TEST(KeyFile, FormsOfOpenSsl) {
  const Digest seed = *digest_from_hex(kVectors[0].seed), key = *digest_from_hex(kVectors[0].key);
  EXPECT_EQ(private_pem(seed), kPrivatePem);
  EXPECT_EQ(public_pem(key), kPublicPem);
  EXPECT_EQ(*seed_from_pem(kPrivatePem, "k"), seed);
  EXPECT_EQ(*public_key_from_pem("a comment\n" + std::string(kPublicPem) + "\r\n", "k"), key);
}

TEST(KeyFile, WhatIsNoKeyIsNamed) {
  const auto why = [](const std::string& text, bool is_private = true) {
    const auto key = is_private ? seed_from_pem(text, "k.pem") : public_key_from_pem(text, "k.pem");
    if (key) return std::string("no error");
    EXPECT_EQ(key.error().code, Code::bad_input);
    EXPECT_EQ(key.error().message.find('\n'), std::string::npos);
    return key.error().message;
  };
  const auto part = [&](const std::string& text, const std::string& expected, bool is_private = true) {
    const std::string said = why(text, is_private);
    EXPECT_NE(said.find(expected), std::string::npos) << said;
  };
  const std::string pem = kPrivatePem;
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = pem;
    return changed.replace(changed.find(from), from.size(), to);
  };
  part("", "k.pem: not a key: no line \"-----BEGIN PRIVATE KEY-----\"");
  part(kPublicPem, "a public key, where a private one is needed");
  part(kPrivatePem, "a private key, where a public one is needed", false);
  part("-----BEGIN ENCRYPTED PRIVATE KEY-----\n", "the key is encrypted");
  part("-----BEGIN RSA PRIVATE KEY-----\n", "\"RSA PRIVATE KEY\", where \"PRIVATE KEY\" is needed");
  part("-----BEGIN OPENSSH PRIVATE KEY-----\n", "\"OPENSSH PRIVATE KEY\"");
  part("-----BEGIN CERTIFICATE-----\n", "\"CERTIFICATE\", where \"PUBLIC KEY\" is needed", false);
  part(pem.substr(0, pem.find("-----END")), "its last line is missing");
  part(with("END PRIVATE", "END PUBLIC"), "k.pem:3: not a key: \"-----END PRIVATE KEY-----\" is missing");
  part(pem + "x", "k.pem:4: not a key: something stands behind");
  part(with("MC4C", "MC4"), "no base64");
  part(with("MC4C", "MC4?"), "no base64");
  part(with("MC4C", "MC4CMC4C"), "not an Ed25519 key");
  part(with("VwBC", "WwBC"), "not an Ed25519 key");  // 1.3.101.110 is X25519
}

TEST(KeyFile, APairIsWrittenOnceAndForItsOwner) {
  namespace fs = std::filesystem;
  std::string folder = (fs::temp_directory_path() / "invar-keys-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const PrivateKey key{*digest_from_hex(kVectors[0].seed), *digest_from_hex(kVectors[0].key)};
  const std::string path = folder + "/k";
  ASSERT_TRUE(write_key_pair(path, key));
  struct stat there;
  ASSERT_EQ(::stat(path.c_str(), &there), 0);
  EXPECT_EQ(there.st_mode & 0777, 0600u);
  EXPECT_EQ(*read_file(path), kPrivatePem);
  EXPECT_EQ(*read_public_key(path + ".pub"), key.public_key);
  EXPECT_EQ(*read_public_key(kVectors[0].key), key.public_key);
  EXPECT_FALSE(write_key_pair(path, key));
  fs::remove(path);
  // PATH.pub is there still: a keygen that was killed may have left it.
  EXPECT_NE(write_key_pair(path, key).error().message.find("remove it if no private key belongs to it"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(path));
  fs::remove(path + ".pub");
  ASSERT_TRUE(write_key_pair(path, key));
  if (can_sign()) {
    EXPECT_EQ(read_private_key(path)->public_key, key.public_key);
  }
  ::chmod(path.c_str(), 0640);
  const auto loose = read_private_key(path);
  ASSERT_FALSE(loose);
  EXPECT_NE(loose.error().message.find("others may read this private key (mode 0640): chmod 600"),
            std::string::npos);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace invar::signature
