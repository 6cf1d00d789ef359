#include "base/hash/sha1.h"

#include <gtest/gtest.h>

namespace invar {
namespace {

std::string sha1(std::string_view text) {
  return Sha1().update(text).finish();
}

TEST(Sha1, ExamplesOfFips180) {
  EXPECT_EQ(sha1("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(sha1("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  EXPECT_EQ(sha1(std::string(1'000'000, 'a')), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

// `git hash-object` of an empty file, and of "hello\n".
TEST(Sha1, NamesOfGit) {
  EXPECT_EQ(sha1(std::string("blob 0\0", 7)), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  EXPECT_EQ(sha1(std::string("blob 6\0hello\n", 13)), "ce013625030ba8dba906f756967f9e9ca394464a");
}

TEST(Sha1, PiecesGiveTheWhole) {
  const std::string text(200, 'x');
  for (size_t n = 0; n <= text.size(); ++n) {
    const std::string_view whole = std::string_view(text).substr(0, n);
    Sha1 pieces;
    for (size_t at = 0; at < n; at += 7) pieces.update(whole.substr(at, 7));
    EXPECT_EQ(pieces.finish(), sha1(whole)) << n;
  }
}

}  // namespace
}  // namespace invar
