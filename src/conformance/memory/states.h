// The memory of a case's sequences between steps, for the conformance runner.
#pragma once
#include <optional>

#include "conformance/memory/guarded_block.h"

namespace invar::conformance {

// Slots, or pages in an order of their own. In the table of pages are those alone that a step
// needs.
class States {
 public:
  States(ops::KernelRef k, const ops::Call& call, int64_t batch, bool pages, Arena* arena)
      : batch_(batch), of_page_(pages ? page_bytes(k, call) : 0) {
    if (of_page_ == 0) {
      slot_bytes_ = (k.state_bytes(call, call.capacity) + 63) / 64 * 64;
      memory_.emplace(arena, static_cast<size_t>(batch) * slot_bytes_);
      return;
    }
    per_slot_ = pages_of(call.capacity);
    memory_.emplace(arena, static_cast<size_t>(batch * per_slot_) * stride());
    table_.emplace(arena, static_cast<size_t>(batch * per_slot_) * sizeof(std::byte*));
  }
  void set(ops::Call& call, const std::vector<ops::Sequence>& sequences, int64_t count) {
    if (!table_) {
      call.state = memory_->seen(), call.slot_bytes = slot_bytes_;
      return;
    }
    auto** const table = reinterpret_cast<std::byte**>(table_->data());
    std::fill_n(table, batch_ * per_slot_, nullptr);
    for (const ops::Sequence& s : sequences)
      for (int64_t i = 0; i < pages_of(s.past + count); ++i)
        table[s.slot * per_slot_ + i] =
            memory_->seen() + static_cast<size_t>((per_slot_ - 1 - i) * batch_ + s.slot) * stride();
    table_->send();
    call.pages = reinterpret_cast<std::byte* const*>(table_->seen());
    call.slot_pages = per_slot_, call.state = reinterpret_cast<void*>(kBefore);
  }
  bool intact() {
    memory_->fetch();
    bool others = true;
    for (int64_t i = 0; table_ && i < batch_ * per_slot_; ++i) {
      const std::byte* const page = memory_->data() + static_cast<size_t>(i) * stride();
      others &= std::all_of(page, page + kBefore, [](std::byte b) { return b == kPoison; });
    }
    return memory_->intact() && others;
  }

 private:
  static constexpr size_t kBefore = 64;  // bytes of other operations in a page
  static int64_t pages_of(int64_t positions) {
    return (positions + ops::kPagePositions - 1) / ops::kPagePositions;
  }
  // 0: the state is of fixed size.
  static size_t page_bytes(ops::KernelRef k, const ops::Call& call) {
    constexpr int64_t kMany = int64_t{1} << 20;  // more than a call has itself
    return k.state_bytes(call, kMany + ops::kPagePositions) - k.state_bytes(call, kMany);
  }
  size_t stride() const { return kBefore + (of_page_ + 63) / 64 * 64; }

  int64_t batch_, per_slot_ = 0;
  size_t of_page_, slot_bytes_ = 0;
  std::optional<GuardedBlock> memory_, table_;
};

}  // namespace invar::conformance
