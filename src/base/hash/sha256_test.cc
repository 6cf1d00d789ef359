// SHA-256 against published vectors and other implementations, on every code path.
#include "base/hash/sha256.h"
#include "base/hash/hash_groups.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/hash/sha256_blocks.h"

namespace invar {
namespace {

// FIPS 180-4 examples and NIST CAVP SHA256ShortMsg.
TEST(Sha256, PublishedVectors) {
  EXPECT_EQ(to_hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(to_hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(to_hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(to_hex(sha256("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopq"
                          "klmnopqrlmnopqrsmnopqrstnopqrstu")),
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(to_hex(sha256("\xd3")), "28969cdfa74a12c82f3bad960b0b000aca2ac329deea5c2328ebc6f2ba9802c1");
  EXPECT_EQ(to_hex(sha256(std::string(1000000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

std::string noise(size_t n) {
  std::string s(n, 0);
  uint32_t x = 1;
  for (char& c : s) x = x * 1664525 + 1013904223, c = static_cast<char>(x >> 24);
  return s;
}

TEST(Sha256, AnySplitGivesTheSameDigest) {
  std::string text = noise(300);
  for (size_t n = 0; n <= text.size(); ++n) {
    std::string_view part(text.data(), n);
    Digest whole = sha256(part);
    for (size_t cut :
         {n / 2, n / 3, n > 0 ? n - 1 : 0, size_t{0}, std::min<size_t>(n, 64), std::min<size_t>(n, 55)})
      ASSERT_EQ(Sha256().update(part.substr(0, cut)).update(part.substr(cut)).finish(), whole)
          << n << " " << cut;
  }
}

// Each length has another padding. The expected digest covers all their digests and comes from
// another implementation, Python's hashlib.
TEST(Sha256, EveryLengthTo300) {
  std::string text = noise(300);
  Sha256 all;
  for (size_t n = 0; n <= 300; ++n) {
    Digest d = sha256(text.data(), n);
    all.update(d.data(), d.size());
  }
  EXPECT_EQ(to_hex(all.finish()), "b02275d18a1de3f8dc11a8f5a6bdc8006b6de6e4dba31bee48c075f6a88ffafa");
}

TEST(Sha256, NativeBlocksEqualPortableBlocks) {
  Sha256Blocks native = sha256_blocks_native();
  if (!native) GTEST_SKIP() << "this processor has no SHA-256 instructions";
  std::string text = noise(64 * 40);
  for (size_t blocks = 0; blocks <= 40; ++blocks)
    for (size_t shift : {0, 1, 7}) {
      if (64 * blocks + shift > text.size()) continue;
      uint32_t a[8], b[8];
      for (int i = 0; i < 8; ++i) a[i] = b[i] = 0x9e3779b9u * (i + 1 + blocks);
      auto* p = reinterpret_cast<const uint8_t*>(text.data()) + shift;
      native(a, p, blocks);
      sha256_blocks_portable(b, p, blocks);
      ASSERT_EQ(0, std::memcmp(a, b, sizeof a)) << blocks << " blocks";
    }
}

// A message longer than 2^32 bits would overflow a 32-bit length: 600 MiB of zeros, only with the
// fast path.
TEST(Sha256, LongMessage) {
  if (INVAR_EMULATED || !sha256_blocks_native()) GTEST_SKIP() << "slow without SHA-256 instructions";
  std::vector<char> zeros(1 << 20);
  Sha256 h;
  for (int i = 0; i < 600; ++i) h.update(zeros.data(), zeros.size());
  EXPECT_EQ(to_hex(h.finish()), "987523e7780392e283b404990c4e84e580bc75c451138b0c86c4f81c296eeebe");
}

TEST(Sha256, TwoMessagesAtOnce) {
  std::vector<std::byte> text(1000);
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<std::byte>(i * 37 + i / 7);
  const std::span all(text);
  for (const size_t a : {0, 1, 55, 56, 63, 64, 65, 119, 120, 128, 500, 999})
    for (const size_t b : {0, 3, 56, 64, 191, 640, 1000}) {
      const auto [first, second] = sha256_of_two(all.first(a), all.last(b));
      EXPECT_EQ(first, sha256(text.data(), a)) << a << " " << b;
      EXPECT_EQ(second, sha256(text.data() + text.size() - b, b)) << a << " " << b;
    }
}

TEST(Sha256, LanesEqualPortableBlocks) {
  const Sha256LaneBlocks lanes = sha256_lane_blocks_native();
  if (!lanes) GTEST_SKIP() << "this processor has no AVX-512";
  const std::string text = noise(64 * 40 + 16 * 5);
  for (size_t blocks = 1; blocks <= 40; ++blocks) {
    uint32_t a[kSha256Lanes][8], b[kSha256Lanes][8];
    const uint8_t* data[kSha256Lanes];
    for (size_t i = 0; i < kSha256Lanes; ++i) {
      data[i] = reinterpret_cast<const uint8_t*>(text.data()) + 5 * i;
      for (size_t j = 0; j < 8; ++j)
        a[i][j] = b[i][j] = 0x9e3779b9u * static_cast<uint32_t>(8 * i + j + 100 * blocks);
    }
    lanes(a, data, blocks);
    for (size_t i = 0; i < kSha256Lanes; ++i) sha256_blocks_portable(b[i], data[i], blocks);
    ASSERT_EQ(0, std::memcmp(a, b, sizeof a)) << blocks << " blocks";
  }
}

// Messages of other lengths and other counts, in lanes, in pairs and alone.
TEST(Sha256, ManyMessagesAtOnce) {
  const std::string text = noise(3000);
  const auto bytes = std::as_bytes(std::span(text));
  for (size_t count = 0; count <= 40; ++count)
    for (const size_t shortest : {0, 1, 55, 63, 64, 200, 1024}) {
      std::vector<std::span<const std::byte>> messages;
      for (size_t i = 0; i < count; ++i) messages.push_back(bytes.subspan(i * 3, shortest + i * i % 130));
      std::vector<Digest> digests(count);
      sha256_of_many(messages, digests);
      for (size_t i = 0; i < count; ++i)
        ASSERT_EQ(digests[i], sha256(messages[i].data(), messages[i].size())) << count << " " << i;
    }
}

// Every message once; a group is of about one length, and no more than a thread's share.
TEST(HashGroups, EveryMessageOnce) {
  const auto shown = [](std::vector<uint64_t> lengths, int threads, size_t lanes = 0) {
    std::string s;
    for (const HashGroup& group : hash_groups(lengths, threads, lanes)) {
      for (size_t i = 0; i < group.size(); ++i) s += (i ? "+" : "") + std::to_string(group[i]);
      s += " ";
    }
    return s;
  };
  EXPECT_EQ(shown({}, 4), "");
  EXPECT_EQ(shown({7}, 1), "0 ");
  EXPECT_EQ(shown({7, 7}, 1), "0+1 ");
  EXPECT_EQ(shown({7, 7}, 2), "0 1 ");
  EXPECT_EQ(shown({1, 9, 5, 4, 2}, 1), "1+2 3+4 0 ");
  EXPECT_EQ(shown({1, 9, 5, 4, 2}, 2), "1 2+3 4+0 ");
  EXPECT_EQ(shown({0, 0, 0}, 1), "0+1 2 ");
  EXPECT_EQ(shown({9, 9, 9, 9, 9}, 1, 4), "0+1+2+3 4 ");
  EXPECT_EQ(shown({9, 9, 9, 9, 9}, 2, 4), "0+1+2+3 4 ");       // 36 of 22 * 5 / 2
  EXPECT_EQ(shown({9, 9, 9, 9, 9}, 5, 4), "0 1 2 3 4 ");       // no pair within a share
  EXPECT_EQ(shown({99, 9, 9, 9, 1}, 1, 4), "0 1+2+3 4 ");      // too short for the lanes before
  EXPECT_EQ(shown({9, 9, 1, 1, 1, 1}, 1, 4), "0+1 2+3+4+5 ");  // two are no more than half of the lanes
}

TEST(Merkle, Shapes) {
  std::vector<Digest> d;
  for (char c : std::string("abcde")) d.push_back(sha256(&c, 1));
  auto leaf = [&](const Digest& x) { return Sha256().update("\0", 1).update(x.data(), 32).finish(); };
  auto node = [&](const Digest& l, const Digest& r) {
    return Sha256().update("\1", 1).update(l.data(), 32).update(r.data(), 32).finish();
  };
  auto root = [&](size_t n) { return merkle_root(std::span(d).first(n)); };
  EXPECT_EQ(root(0), sha256(""));
  EXPECT_EQ(root(1), leaf(d[0]));
  EXPECT_EQ(root(2), node(leaf(d[0]), leaf(d[1])));
  EXPECT_EQ(root(3), node(node(leaf(d[0]), leaf(d[1])), leaf(d[2])));
  EXPECT_EQ(root(5), node(node(node(leaf(d[0]), leaf(d[1])), node(leaf(d[2]), leaf(d[3]))), leaf(d[4])));
  EXPECT_EQ(to_hex(root(5)),
            "4dc1abc938a0141a3c7cd1fed88948c35c4452e7e8aff9b1503eb5100a2c77b3");  // by Python hashlib
}

TEST(Hex, RoundTripAndRefusals) {
  std::string good = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  ASSERT_TRUE(digest_from_hex(good));
  EXPECT_EQ(to_hex(*digest_from_hex(good)), good);
  EXPECT_FALSE(digest_from_hex(good.substr(1)));
  EXPECT_FALSE(digest_from_hex(good + "0"));
  for (char c : std::string("Ag /:`\0", 7)) {
    std::string bad = good;
    bad[5] = c;
    EXPECT_FALSE(digest_from_hex(bad)) << c;
  }
}

}  // namespace
}  // namespace invar
