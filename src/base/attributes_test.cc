// The map of attributes, and the types of their names.
#include "base/attributes.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "base/attribute_types.h"

namespace invar {
namespace {

TEST(Attributes, KeepsNamesInOrder) {
  Attributes a{{"scale", F32Bits{0x3f000000}}, {"axis", int64_t{2}}};
  a["causal"] = int64_t{1};
  EXPECT_TRUE(a.emplace("", int64_t{7}));
  std::string names;
  for (const auto& [name, value] : a) names += name + ",";
  EXPECT_EQ(names, ",axis,causal,scale,");
  EXPECT_EQ(
      a,
      (Attributes{
          {"causal", int64_t{1}}, {"", int64_t{7}}, {"axis", int64_t{2}}, {"scale", F32Bits{0x3f000000}}}));
}

TEST(Attributes, FindsByTheWholeName) {
  const Attributes a{{"left", int64_t{1}}, {"leftmost", int64_t{2}}, {"lift", int64_t{3}}};
  EXPECT_EQ(a.i("left", 0), 1);
  EXPECT_EQ(a.i("lift", 0), 3);
  EXPECT_EQ(a.i("leftmost", 0), 2);
  for (const char* absent : {"", "lef", "loft", "leftmos", "right"}) {
    EXPECT_EQ(a.i(absent, -1), -1) << absent;
    EXPECT_FALSE(a.contains(absent)) << absent;
    EXPECT_THROW(a.at(absent), std::out_of_range) << absent;
  }
}

TEST(Attributes, OneValueAName) {
  Attributes a;
  EXPECT_TRUE(a.emplace("k", int64_t{1}));
  EXPECT_FALSE(a.emplace("k", int64_t{2}));
  EXPECT_EQ(a.i("k", 0), 1);
  a["k"] = F32Bits{0x40000000};
  EXPECT_EQ(a.f("k", 0), 2.0f);
  EXPECT_THROW(a.i("k", 0), std::bad_variant_access);
  a.erase(a.find("k"));
  EXPECT_TRUE(a.empty());
}

TEST(Attributes, HaveTheTypesOfTheirNames) {
  EXPECT_TRUE(has_attribute_types({}));
  EXPECT_TRUE(has_attribute_types(
      {{"axis", int64_t{1}}, {"epsilon", F32Bits{0}}, {"numerics", std::string("ieee")}}));
  EXPECT_TRUE(has_attribute_types({{"pads", std::vector<int64_t>{1}}, {"no operation has it", F32Bits{0}}}));
  EXPECT_FALSE(has_attribute_types({{"axis", std::string("1")}}));
  EXPECT_FALSE(has_attribute_types({{"axis", int64_t{1}}, {"epsilon", int64_t{0}}}));
  EXPECT_FALSE(has_attribute_types({{"pads", int64_t{1}}}));
}

}  // namespace
}  // namespace invar
