// Owned memory of a program on the host or on a GPU, aligned for every vector width. On the host it
// is zero at first, and the system provides a page when it is first touched; on a GPU its contents
// are undefined at first.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/status.h"
#include "device/device.h"

namespace invar {

struct Deallocator {
  std::shared_ptr<Device> device;  // null: the host's
  bool pinned = false;
  void operator()(void* p) const {
    if (!device)
      std::free(p);
    else if (pinned)
      device->free_pinned(p);
    else
      device->free(p);
  }
};

class Allocation {
 public:
  static constexpr size_t kAlign = 64;
  static constexpr size_t kHugePage = size_t{2} << 20;  // bytes
  static constexpr size_t round_up(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

  // Systems overcommit: they promise more memory than they have, and end the process when it
  // touches it. So make() never asks for more than this.
  static uint64_t physical_memory() {
    const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
    const uint64_t bytes =
        pages > 0 && page > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page) : 0;
    return bytes ? std::min<uint64_t>(bytes, SIZE_MAX - kHugePage) : SIZE_MAX - kHugePage;
  }

  Allocation() = default;
  static Result<Allocation> make(uint64_t bytes, const char* purpose,
                                 const std::shared_ptr<Device>& device = {}) {
    Allocation b;
    if (bytes == 0) return b;
    if (device) {
      INVAR_TRY(void* const memory, device->allocate(bytes, purpose));
      b.raw_ = Owned(memory, Deallocator{device, false});
      b.data_ = static_cast<std::byte*>(memory), b.size_ = static_cast<size_t>(bytes);
      return b;
    }
    const size_t align = bytes >= 2 * kHugePage ? kHugePage : kAlign;
    if (bytes <= physical_memory()) b.raw_.reset(std::calloc(static_cast<size_t>(bytes) + align, 1));
    if (!b.raw_)
      return bad_input("out of memory: " + std::to_string(bytes) + " bytes for " + purpose +
                       "; choose fewer sequences, a smaller capacity or chunk");
    b.size_ = static_cast<size_t>(bytes);
    auto* start = static_cast<std::byte*>(b.raw_.get());
    const size_t past = reinterpret_cast<uintptr_t>(start) % align;
    b.data_ = start + (past ? align - past : 0);
    if (align == kHugePage) advise_huge_pages(b.data_, b.size_ / kHugePage * kHugePage);
    return b;
  }
  // Pinned host memory, which a GPU copies at full speed.
  static Result<Allocation> make_pinned(uint64_t bytes, const char* purpose,
                                        const std::shared_ptr<Device>& device) {
    INVAR_TRY(void* const memory, device->allocate_pinned(bytes, purpose));
    Allocation b;
    b.raw_ = Owned(memory, Deallocator{device, true});
    b.data_ = static_cast<std::byte*>(memory), b.size_ = static_cast<size_t>(bytes);
    return b;
  }
  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  static void advise_huge_pages([[maybe_unused]] void* at, [[maybe_unused]] size_t bytes) {
#if defined(MADV_HUGEPAGE)
    ::madvise(at, bytes, MADV_HUGEPAGE);  // if the system refuses, pages are small
#endif
  }
  using Owned = std::unique_ptr<void, Deallocator>;
  Owned raw_;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace invar
