#include "base/attributes.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace invar {
namespace {

TEST(Attrs, KeepsNamesInOrder) {
  Attrs a{{"scale", F32Bits{0x3f000000}}, {"axis", int64_t{2}}};
  a["causal"] = int64_t{1};
  EXPECT_TRUE(a.emplace("", int64_t{7}));
  std::string names;
  for (const auto& [name, value] : a) names += name + ",";
  EXPECT_EQ(names, ",axis,causal,scale,");
  EXPECT_EQ(
      a,
      (Attrs{
          {"causal", int64_t{1}}, {"", int64_t{7}}, {"axis", int64_t{2}}, {"scale", F32Bits{0x3f000000}}}));
}

TEST(Attrs, FindsByTheWholeName) {
  const Attrs a{{"left", int64_t{1}}, {"leftmost", int64_t{2}}, {"lift", int64_t{3}}};
  EXPECT_EQ(a.i("left", 0), 1);
  EXPECT_EQ(a.i("lift", 0), 3);
  EXPECT_EQ(a.i("leftmost", 0), 2);
  for (const char* absent : {"", "lef", "loft", "leftmos", "right"}) {
    EXPECT_EQ(a.i(absent, -1), -1) << absent;
    EXPECT_FALSE(a.contains(absent)) << absent;
    EXPECT_THROW(a.at(absent), std::out_of_range) << absent;
  }
}

TEST(Attrs, OneValueAName) {
  Attrs a;
  EXPECT_TRUE(a.emplace("k", int64_t{1}));
  EXPECT_FALSE(a.emplace("k", int64_t{2}));
  EXPECT_EQ(a.i("k", 0), 1);
  a["k"] = F32Bits{0x40000000};
  EXPECT_EQ(a.f("k", 0), 2.0f);
  EXPECT_THROW(a.i("k", 0), std::bad_variant_access);
  a.erase(a.find("k"));
  EXPECT_TRUE(a.empty());
}

}  // namespace
}  // namespace invar
