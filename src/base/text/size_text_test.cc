#include "base/text/size_text.h"

#include <gtest/gtest.h>

namespace invar {
namespace {

TEST(SizeText, ThreeDigitsAndAUnit) {
  EXPECT_EQ(size_text(0), "0 B");
  EXPECT_EQ(size_text(999), "999 B");
  EXPECT_EQ(size_text(1000), "1.00 kB");
  EXPECT_EQ(size_text(8'427'072), "8.42 MB");
  EXPECT_EQ(size_text(99'999'999'999), "99.9 GB");
  EXPECT_EQ(size_text(UINT64_MAX), "18446744 TB");
}

TEST(SizeText, WhatPeopleWrite) {
  EXPECT_EQ(parse_size("0"), 0u);
  EXPECT_EQ(parse_size("20GB"), 20'000'000'000u);
  EXPECT_EQ(parse_size("7kB"), 7'000u);
  EXPECT_EQ(parse_size("7B"), 7u);
  for (const char* wrong :
       {"", "GB", "1.5GB", "-1", "+1", "1 GB", "1gb", "01", "99999999999999999999", "99999999TB"})
    EXPECT_FALSE(parse_size(wrong)) << wrong;
}

}  // namespace
}  // namespace invar
