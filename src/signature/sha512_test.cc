// SHA-512 against digests of Python's hashlib.
#include "signature/sha512.h"

#include <gtest/gtest.h>

#include <string>

namespace invar::signature {
namespace {

TEST(Sha512, EndsOfEveryLength) {
  const struct {
    int length;
    std::string_view begin;  // of the digest of the bytes (7 i + length) mod 256
  } cases[] = {
      {0, "cf83e1357eefb8bdf1542850d66d8007"},   {3, "8853167ab14c043919981a6409307ef6"},
      {111, "df79e18538ec82120d0eb59f92ade93f"}, {112, "d7377bc7047400daa33483946a6e2ec4"},
      {119, "1efae71e30c3bdc6cde724788736a100"}, {120, "ad2a8e4e76a1d9eeca549852ed03e8bd"},
      {127, "82b7fc0e1e5d1bb8e56e25cef83ba120"}, {128, "eb5119a4c3e176a3e0cb2bf8a6237bdc"},
      {129, "06e68bf71185b1fda1d64bc8dc221aea"}, {300, "686b9399e4547d585be6b0a5f45307bb"},
  };
  for (const auto& c : cases) {
    std::string text;
    for (int i = 0; i < c.length; ++i) text += static_cast<char>((7 * i + c.length) % 256);
    std::string hex;
    for (size_t i = 0; i < 16; ++i) {
      hex += "0123456789abcdef"[sha512(text)[i] >> 4];
      hex += "0123456789abcdef"[sha512(text)[i] & 15];
    }
    EXPECT_EQ(hex, c.begin) << c.length;
  }
}

}  // namespace
}  // namespace invar::signature
