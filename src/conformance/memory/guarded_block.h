// Guarded memory on the host or a GPU, for the conformance runner.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "conformance/give_up.h"
#include "conformance/runner.h"

namespace invar::conformance {

constexpr size_t kGuard = 256;
constexpr std::byte kPoison{0xff};  // as floats: NaN, which shows if it is read
inline std::atomic<bool> allocates_apart = false;

// GPU memory for one run at a time of this thread.
class Arena {
 public:
  explicit Arena(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~Arena() { clear(); }
  Device& device() const { return *device_; }
  void clear() {
    for (auto& [memory, size] : pieces_) device_->free(memory);
    pieces_.clear();
  }
  // Frees what the previous run took. What needed several pieces gets one as large next time.
  void reset() {
    used_ = 0;
    if (allocates_apart) clear();
    if (pieces_.size() < 2) return;
    size_t all = 0;
    for (const auto& piece : pieces_) all += piece.second;
    clear();
    take(all), used_ = 0;
  }
  std::byte* take(size_t bytes) {
    if (!allocates_apart) bytes = (bytes + 255) / 256 * 256;
    if (allocates_apart || pieces_.empty() || used_ + bytes > pieces_.back().second) {
      const size_t size = allocates_apart ? bytes : std::max<size_t>(bytes, size_t{64} << 20);
      auto memory = device_->allocate(size, "a test");
      if (!memory) give_up(memory.error());
      pieces_.emplace_back(*memory, size);
      used_ = 0;
    }
    used_ += bytes;
    return static_cast<std::byte*>(pieces_.back().first) + used_ - bytes;
  }

 private:
  std::shared_ptr<Device> device_;
  std::vector<std::pair<void*, size_t>> pieces_;
  size_t used_ = 0;
};

// Memory between two guards, `skew` bytes past a multiple of 64. With an arena the kernel sees a
// copy on the GPU: send() uploads it, fetch() downloads it.
class GuardedBlock {
 public:
  // from: what it holds; null: what may not be read.
  explicit GuardedBlock(Arena* arena, size_t bytes, size_t skew = 0, const void* from = nullptr)
      : size_(bytes), raw_(bytes + 2 * kGuard + 64 + skew % 64, kPoison), arena_(arena) {
    auto at = reinterpret_cast<uintptr_t>(raw_.data()) + kGuard;
    data_ = raw_.data() + kGuard + (64 - at % 64) % 64 + skew % 64;
    std::fill(data_ - kGuard, data_, std::byte{0xa5});
    std::fill(data_ + size_, data_ + size_ + kGuard, std::byte{0xa5});
    if (from && size_) std::memcpy(data_, from, size_);
    if (arena_ && guard_) seen_ = arena_->take(size_ + 2 * kGuard + 64) + kGuard + skew % 64;
    if (arena_ && !guard_) seen_ = arena_->take(skew % 64 + size_) + skew % 64;
    send();
  }
  GuardedBlock(GuardedBlock&&) = default;
  std::byte* data() const { return data_; }
  std::byte* seen() const { return arena_ ? seen_ : data_; }
  size_t size() const { return size_; }
  void send() {
    throw_on_error(arena_ ? arena_->device().upload(seen_ - guard_, data_ - guard_, size_ + 2 * guard_)
                          : Status());
  }
  void fetch() {
    if (!arena_) return;
    throw_on_error(arena_->device().download(data_ - guard_, seen_ - guard_, size_ + 2 * guard_));
    throw_on_error(arena_->device().wait());
  }
  bool intact() const {
    auto guard = [](const std::byte* p) {
      return std::all_of(p, p + kGuard, [](std::byte b) { return b == std::byte{0xa5}; });
    };
    return guard(data_ - kGuard) && guard(data_ + size_);
  }

 private:
  static void throw_on_error(const Status& status) {
    if (!status) give_up(status.error());
  }
  size_t size_;
  Bytes raw_;
  std::byte* data_;
  Arena* arena_;
  size_t guard_ = allocates_apart ? 0 : kGuard;  // of those on the GPU
  std::byte* seen_ = nullptr;
};

}  // namespace invar::conformance
