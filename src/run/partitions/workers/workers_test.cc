// Messages between processes: packets, and who may work together.
#include <gtest/gtest.h>
#include <sys/socket.h>

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

std::pair<std::unique_ptr<Relay>, std::unique_ptr<Relay>> relays() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  return {std::make_unique<Relay>(ends[0]), std::make_unique<Relay>(ends[1])};
}

std::vector<std::byte> bytes_of(size_t n, uint8_t first) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(first + i * 7);
  return bytes;
}

TEST(Relay, MessagesOfASubjectComeInTheirOrderWhole) {
  auto [a, b] = relays();
  // More than the system keeps on the way, so that both ends take turns.
  const auto large = bytes_of(size_t{8} << 20, 3), small = bytes_of(5, 9);
  a->put({1, 2}, large), a->put({2, 1}, small), a->put({1, 2}, {}), a->put({1, 2}, small);
  EXPECT_FALSE(a->is_idle());
  while (!b->arrived({2, 1})) a->wait(std::chrono::microseconds(100)), a->is_idle();
  EXPECT_EQ(b->take({2, 1}), small);
  while (!a->is_idle()) b->arrived({1, 2});
  EXPECT_EQ(b->arrived({1, 2}), large.size());
  EXPECT_EQ(b->take({1, 2}), large);
  EXPECT_EQ(b->take({1, 2}), std::vector<std::byte>());
  EXPECT_EQ(b->take_any(), std::pair(Relay::Subject(1, 2), small));
  EXPECT_FALSE(b->take({1, 2}));
}

TEST(Relay, WhatWasSentBeforeTheEndCanBeTaken) {
  auto [a, b] = relays();
  const auto data = bytes_of(1000, 1);
  a->put({3, 1}, data), a->put({0, Relay::kEnd}, {});
  a->finish();
  EXPECT_EQ(b->take_any(), std::pair(Relay::Subject(3, 1), data));  // the end comes last
  EXPECT_EQ(b->take_any()->first, Relay::Subject(0, Relay::kEnd));
  EXPECT_FALSE(b->is_open());
  b->put({1, 1}, data);  // nobody is there: nothing happens
  EXPECT_FALSE(b->take_any());
}

}  // namespace
}  // namespace invar::run
