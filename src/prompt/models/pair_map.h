// An open-addressing map from a pair of 32-bit numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace invar::prompt {

template <class V>
class PairMap {
 public:
  const V* find(uint32_t a, uint32_t b) const {
    if (slots_.empty()) return nullptr;
    const uint64_t key = join(a, b);
    for (size_t i = slot_of(key);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].key == key) return &slots_[i].value;
      if (slots_[i].key == kFree) return nullptr;
    }
  }

  void set(uint32_t a, uint32_t b, V value) {  // (2^32-1, 2^32-1) is not a valid pair
    if (2 * (count_ + 1) > slots_.size()) grow();
    count_ += insert(join(a, b), value);
  }
  size_t size() const { return count_; }
  // Calls f(a, b) for every pair, in no order.
  template <class F>
  void each(F&& f) const {
    for (const Slot& s : slots_)
      if (s.key != kFree) f(static_cast<uint32_t>(s.key >> 32), static_cast<uint32_t>(s.key));
  }

 private:
  static constexpr uint64_t kFree = ~0ull;
  struct Slot {
    uint64_t key = kFree;
    V value{};
  };
  static uint64_t join(uint32_t a, uint32_t b) { return static_cast<uint64_t>(a) << 32 | b; }
  size_t slot_of(uint64_t key) const {
    key ^= key >> 31;
    return (key * 0x9E3779B97F4A7C15u >> 20) & (slots_.size() - 1);
  }
  bool insert(uint64_t key, V value) {
    size_t i = slot_of(key);
    while (slots_[i].key != kFree && slots_[i].key != key) i = (i + 1) & (slots_.size() - 1);
    const bool added = slots_[i].key == kFree;
    slots_[i] = {key, value};
    return added;
  }
  void grow() {
    std::vector<Slot> old(slots_.empty() ? 16 : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& s : old)
      if (s.key != kFree) insert(s.key, s.value);
  }

  std::vector<Slot> slots_;
  size_t count_ = 0;
};

}  // namespace invar::prompt
