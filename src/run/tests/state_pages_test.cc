// Pages of keys and values on a device, which is the host's memory here.
#include "run/execute/state_pages.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "run/prepare/testing.h"

namespace invar::run {
namespace {

constexpr int64_t kOfPage = ops::kPagePositions;
constexpr size_t kNode = size_t{1} << 20, kPage = 3 * kNode;  // of three nodes

// A device with so much memory, whose copies are done at once.
class FakeGpu final : public NoGpu {
 public:
  explicit FakeGpu(uint64_t memory) : left(memory) {}
  Result<void*> allocate(uint64_t bytes, const std::string&) override {
    if (bytes > left) return bad_input("out of memory");
    left -= bytes;
    void* const memory = std::calloc(bytes, 1);
    size[memory] = bytes;
    return memory;
  }
  void free(void* memory) override {
    left += size.at(memory);
    size.erase(memory), std::free(memory);
  }
  uint64_t free_memory() const override { return left; }
  Result<void*> allocate_pinned(uint64_t bytes, const std::string&) override { return std::malloc(bytes); }
  void free_pinned(void* memory) override { std::free(memory); }
  Status upload(void* device, const void* host, size_t bytes) override {
    uploaded += bytes, std::memcpy(device, host, bytes);
    return {};
  }
  Status copy(void* to, const void* from, size_t bytes) override {
    std::memcpy(to, from, bytes);
    return {};
  }

  uint64_t left;
  std::map<void*, uint64_t> size;
  size_t uploaded = 0;
};

struct Pages {
  explicit Pages(uint64_t memory) : gpu(std::make_shared<FakeGpu>(memory)) {}
  Status reset(int64_t sequences, int64_t capacity, bool whole = false) {
    const std::vector<size_t> nodes(3, kNode);
    return of.reset(nodes, sequences, capacity, {gpu, whole}, "a test");
  }
  // Where node `node` has the positions of a page of a sequence, as a kernel finds it.
  std::byte* at(int64_t sequence, int64_t index, size_t node) const {
    return of.table()[sequence * of.per_sequence() + index] + of.offset(node);
  }
  std::shared_ptr<FakeGpu> gpu;
  StatePages of;
};

TEST(StatePagesTest, KernelsOfADeviceFindWhatIsTaken) {
  Pages p(uint64_t{1} << 30);
  ASSERT_TRUE(p.reset(3, 4 * kOfPage));
  ASSERT_TRUE(p.of.take(1, 0, kOfPage + 1));
  ASSERT_TRUE(p.of.take(2, 0, 1));
  ASSERT_TRUE(p.of.publish());
  std::map<std::byte*, int> places;
  for (const auto& [sequence, index] : {std::pair{1, 0}, {1, 1}, {2, 0}})
    for (size_t node = 0; node < 3; ++node) {
      std::byte* const place = p.at(sequence, index, node);
      EXPECT_EQ(++places[place], 1);
      std::memset(place, 1, kNode);  // memory of the device
    }
  const size_t before = p.gpu->uploaded;
  ASSERT_TRUE(p.of.take(2, 1, 2));
  ASSERT_TRUE(p.of.publish());
  EXPECT_EQ(p.gpu->uploaded, before);  // no other page
  ASSERT_TRUE(p.of.take(2, 2, kOfPage + 1));
  ASSERT_TRUE(p.of.publish());
  EXPECT_EQ(p.gpu->uploaded, before + sizeof(std::byte*));
}

TEST(StatePagesTest, ASharedPageIsCopiedBeforeItIsWritten) {
  Pages p(uint64_t{1} << 30);
  ASSERT_TRUE(p.reset(2, 2 * kOfPage));
  ASSERT_TRUE(p.of.take(0, 0, kOfPage));
  const int64_t page = p.of.share(0, 0);
  p.of.append(1, {&page, 1});
  ASSERT_TRUE(p.of.publish());
  ASSERT_EQ(p.at(0, 0, 2), p.at(1, 0, 2));
  std::memset(p.at(0, 0, 2), 7, kNode);
  EXPECT_EQ(p.of.used(), 1);
  ASSERT_TRUE(p.of.take(1, kOfPage - 1, kOfPage));
  ASSERT_TRUE(p.of.publish());
  ASSERT_NE(p.at(0, 0, 2), p.at(1, 0, 2));
  EXPECT_EQ(std::memcmp(p.at(0, 0, 2), p.at(1, 0, 2), kNode), 0);
  EXPECT_EQ(p.of.used(), 2);
  p.of.give_back(0, 0), p.of.give_back(1, 0);
  EXPECT_EQ(p.of.used(), 1);  // of share()
  p.of.drop(page);
  EXPECT_EQ(p.of.used(), 0);
}

TEST(StatePagesTest, OneSequenceHasItsMemoryAndOthersTakeIt) {
  Pages p(uint64_t{1} << 30);
  ASSERT_TRUE(p.reset(100, 2 * kOfPage));
  EXPECT_EQ(p.of.bytes(), 2 * kPage);
  EXPECT_EQ(p.of.most(), 200);
  ASSERT_TRUE(p.of.has_room(3));
  EXPECT_GE(p.of.bytes(), 3 * kPage);  // it is there
  EXPECT_LT(p.of.bytes(), 100 * kPage);
  for (int64_t s = 0; s < 100; ++s) ASSERT_TRUE(p.of.take(s, 0, 2 * kOfPage)) << s;
  EXPECT_EQ(p.of.bytes(), 200 * kPage);
  EXPECT_FALSE(p.of.has_room(1));
}

TEST(StatePagesTest, WhereMemoryEndsPagesAreFewer) {
  Pages p(100 * kPage);
  ASSERT_TRUE(p.reset(100, 2 * kOfPage));
  EXPECT_EQ(p.of.most(), 2 + 88);  // nine tenths of what is left beside the table
  p.gpu->left = 30 * kPage;        // somebody else has the rest
  EXPECT_TRUE(p.of.has_room(20));
  EXPECT_FALSE(p.of.has_room(40));
  EXPECT_EQ(p.of.most(), 32);
  for (int64_t s = 0; s < 16; ++s) ASSERT_TRUE(p.of.take(s, 0, 2 * kOfPage)) << s;
  const Status more = p.of.take(16, 0, 1);
  ASSERT_FALSE(more);
  EXPECT_EQ(p.of.taken(16), 0);
  EXPECT_EQ(more.error().message, "the memory of keys and values has 32 pages, and all are in use");
  p.of.give_back(3, kOfPage);
  EXPECT_TRUE(p.of.has_room(1));
  EXPECT_TRUE(p.of.take(16, 0, 1));
}

TEST(StatePagesTest, TooLittleMemoryIsRefused) {
  Pages p(3 * kPage);
  EXPECT_FALSE(p.reset(1, 4 * kOfPage));
  EXPECT_FALSE(p.reset(2, 2 * kOfPage, true));  // whole
  EXPECT_EQ(p.gpu->left, 3 * kPage);
  ASSERT_TRUE(p.reset(2, 2 * kOfPage));
  ASSERT_TRUE(p.reset(2, kOfPage, true));
  EXPECT_EQ(p.of.bytes(), 2 * kPage);
}

// Stages whose pages have different sizes number them alike, whatever memory they find.
TEST(StatePagesTest, NumbersDoNotDependOnMemory) {
  Pages p(uint64_t{1} << 30);
  StatePages host;
  ASSERT_TRUE(p.reset(8, 4 * kOfPage));
  ASSERT_TRUE(host.reset({100}, 8, 4 * kOfPage, {}, "a test"));
  uint32_t random = 1;
  const auto below = [&](uint32_t n) { return (random = random * 1664525 + 1013904223) / 65536 % n; };
  std::vector<int64_t> kept;
  for (int turn = 0; turn < 3000; ++turn) {
    const int64_t sequence = below(8), taken = host.taken(sequence);
    ASSERT_EQ(p.of.taken(sequence), taken);
    switch (below(4)) {
      case 0: {
        const int64_t past = below(4 * kOfPage), end = past + 1 + below(3 * kOfPage);
        const int64_t needed = host.needed(sequence, past, end);
        EXPECT_EQ(p.of.needed(sequence, past, end), needed);
        if (!p.of.has_room(needed)) break;
        for (StatePages* pages : {&p.of, &host}) ASSERT_TRUE(pages->take(sequence, past, end));
        EXPECT_EQ(host.needed(sequence, past, end), 0);
        break;
      }
      case 1:
        if (taken == 0) break;
        kept.push_back(host.share(sequence, taken - 1));
        EXPECT_EQ(p.of.share(sequence, taken - 1), kept.back());
        break;
      case 2:
        if (kept.empty() || taken == 4) break;
        for (StatePages* pages : {&p.of, &host})
          pages->append(sequence, {&kept[static_cast<size_t>(turn) % kept.size()], 1});
        break;
      default:
        for (StatePages* pages : {&p.of, &host}) pages->give_back(sequence, (taken - 1) * kOfPage);
        if (kept.size() < 10) break;
        for (StatePages* pages : {&p.of, &host}) pages->drop(kept.back());
        kept.pop_back();
    }
    EXPECT_EQ(p.of.used(), host.used());
  }
}

}  // namespace
}  // namespace invar::run
