// Memory of a session: aligned for every vector width. On the host it is zero at the start and taken when it is first
// touched; on a GPU its contents are undefined.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "device/device.h"
#include "base/status.h"

namespace invar::run {

// How a block's memory goes back.
struct Free {
  std::shared_ptr<Device> device;  // null: the host's
  bool pinned = false;
  void operator()(void* p) const {
    if (!device)
      std::free(p);
    else if (pinned)
      device->give_pinned(p);
    else
      device->give(p);
  }
};

class Block {
 public:
  static constexpr size_t kAlign = 64;
  static constexpr size_t kHuge = size_t{2} << 20;  // bytes of a page that stands for 512
  static constexpr size_t round_up(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

  // Systems promise more than they have and end the process when it is touched; so never ask for more than
  // there is.
  static uint64_t physical_memory() {
    const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
    const uint64_t bytes =
        pages > 0 && page > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page) : 0;
    return bytes ? std::min<uint64_t>(bytes, SIZE_MAX - kHuge) : SIZE_MAX - kHuge;
  }

  Block() = default;
  static Result<Block> make(uint64_t bytes, const char* purpose, const std::shared_ptr<Device>& device = {}) {
    Block b;
    if (bytes == 0) return b;
    if (device) {
      INVAR_TRY(void* const memory, device->take(bytes, purpose));
      b.raw_ = Owned(memory, Free{device, false});
      b.data_ = static_cast<std::byte*>(memory), b.size_ = static_cast<size_t>(bytes);
      return b;
    }
    const size_t align = bytes >= 2 * kHuge ? kHuge : kAlign;
    if (bytes <= physical_memory()) b.raw_.reset(std::calloc(static_cast<size_t>(bytes) + align, 1));
    if (!b.raw_)
      return bad_input("out of memory: " + std::to_string(bytes) + " bytes for " + purpose +
                       "; choose fewer sequences, a smaller capacity or chunk");
    b.size_ = static_cast<size_t>(bytes);
    auto* start = static_cast<std::byte*>(b.raw_.get());
    const size_t past = reinterpret_cast<uintptr_t>(start) % align;
    b.data_ = start + (past ? align - past : 0);
    if (align == kHuge) wish_huge(b.data_, b.size_ / kHuge * kHuge);
    return b;
  }
  // Host memory that a GPU's copies take at full speed.
  static Result<Block> make_pinned(uint64_t bytes, const char* purpose,
                                   const std::shared_ptr<Device>& device) {
    INVAR_TRY(void* const memory, device->take_pinned(bytes, purpose));
    Block b;
    b.raw_ = Owned(memory, Free{device, true});
    b.data_ = static_cast<std::byte*>(memory), b.size_ = static_cast<size_t>(bytes);
    return b;
  }
  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  static void wish_huge([[maybe_unused]] void* at, [[maybe_unused]] size_t bytes) {
#if defined(MADV_HUGEPAGE)
    ::madvise(at, bytes, MADV_HUGEPAGE);  // where the system refuses, pages are small
#endif
  }
  using Owned = std::unique_ptr<void, Free>;
  Owned raw_;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace invar::run
