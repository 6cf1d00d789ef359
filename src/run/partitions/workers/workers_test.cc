// Messages between processes: packets, and who may work together.
#include <gtest/gtest.h>

#include "run/partitions/workers/transport.h"

namespace invar::run {
namespace {

TEST(Packet, WhatWasPutComesInItsOrder) {
  Packet p;
  p.put(int64_t{-7});
  p.put(std::string_view("text"));
  p.put(std::vector<int>{3, -1});
  p.put(std::vector<std::string>{"a", ""});
  Packet q({p.bytes().begin(), p.bytes().end()});
  EXPECT_EQ(q.number(), -7);
  EXPECT_EQ(q.text(), "text");
  EXPECT_EQ(q.numbers(), (std::vector<int>{3, -1}));
  EXPECT_EQ(q.texts(), (std::vector<std::string>{"a", ""}));
  EXPECT_TRUE(q.ok());
  EXPECT_EQ(q.number(), 0);
  EXPECT_FALSE(q.ok());
}

TEST(Packet, ALengthBeyondItsEndIsNoRead) {
  Packet p;
  p.put(int64_t{1} << 60);
  Packet q({p.bytes().begin(), p.bytes().end()});
  EXPECT_TRUE(q.data().empty());
  EXPECT_FALSE(q.ok());
  Packet negative;
  negative.put(int64_t{-1});
  Packet r({negative.bytes().begin(), negative.bytes().end()});
  EXPECT_TRUE(r.text().empty());
  EXPECT_FALSE(r.ok());
}

TEST(Workers, AnotherVersionOrNumericsIsNamed) {
  const Hello own = own_hello();
  EXPECT_EQ(mismatch(own, own), "");
  Hello other = own;
  other.numerics = "invar-0";
  EXPECT_EQ(mismatch(own, other), "has numerics invar-0, and the run has invar-1: install the same on both");
  other.version = "0.0.9";
  EXPECT_EQ(mismatch(own, other),
            "has Invar 0.0.9, and the run has " + own.version + ": install the same on both");
}

}  // namespace
}  // namespace invar::run
