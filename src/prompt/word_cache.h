// Words seen before, and their tokens: most words of a text come again.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "prompt/models/model.h"

namespace invar::prompt {

// Changes speed only. Its size is bounded: it starts anew when it is full, and words that share a
// slot replace each other.
class WordCache {
 public:
  Status encode(const Model& model, std::string_view word, std::vector<int32_t>& out,
                Model::Scratch& scratch) {
    if (word.size() > kLongest) return model.encode(word, out, scratch);
    const uint64_t hash = hash_of(word);
    Slot& slot = slots_[hash & (kSlots - 1)];
    if (slot.hash == hash && slot.length == word.size() && same(slot.word, word)) {
      out.insert(out.end(), ids_.begin() + slot.first, ids_.begin() + slot.first + slot.count);
      return {};
    }
    const size_t first = out.size();
    INVAR_CHECK_OK(model.encode(word, out, scratch));
    const size_t count = out.size() - first;
    if (text_.size() + word.size() > kMostText || ids_.size() + count > kMostIds) clear();
    slot = {hash, static_cast<uint32_t>(text_.size()), static_cast<uint32_t>(ids_.size()),
            static_cast<uint16_t>(word.size()), static_cast<uint16_t>(count)};
    text_.append(word);
    ids_.insert(ids_.end(), out.begin() + static_cast<ptrdiff_t>(first), out.end());
    return {};
  }

 private:
  static constexpr size_t kLongest = 128, kSlots = 1 << 15, kMostText = 1 << 20, kMostIds = 1 << 19;
  struct Slot {
    uint64_t hash = 0;
    uint32_t word = 0, first = 0;
    uint16_t length = 0, count = 0;  // length 0: free; no word is empty
  };

  bool same(uint32_t at, std::string_view word) const {
    return std::memcmp(text_.data() + at, word.data(), word.size()) == 0;
  }
  void clear() {
    slots_.assign(kSlots, {});
    text_.clear(), ids_.clear();
  }
  static uint64_t hash_of(std::string_view s) {
    uint64_t h = s.size();
    const char* p = s.data();
    size_t n = s.size();
    for (; n >= 8; p += 8, n -= 8) {
      uint64_t word;
      std::memcpy(&word, p, 8);
      h = (std::rotl(h, 23) ^ word) * 0x9E3779B97F4A7C15u;
    }
    uint64_t word = 0;
    std::memcpy(&word, p, n);
    h = (std::rotl(h, 23) ^ word) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 29;
  }

  std::vector<Slot> slots_ = std::vector<Slot>(kSlots);
  std::string text_;
  std::vector<int32_t> ids_;
};

}  // namespace invar::prompt
