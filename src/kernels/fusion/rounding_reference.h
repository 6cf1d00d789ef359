// The oracle of RoundedRows (kernels/gpu_kernel.h): what a kernel that writes them leaves in
// memory.
#pragma once

#include <cstring>
#include <vector>

#include "kernels/gpu_kernel.h"
#include "num/convert/convert.h"
#include "num/exact16/reference.h"

namespace invar::ops::reference {

// Rows of k elements in memory that was filled with one byte. Blocks first, then scales.
class RoundedMemory {
 public:
  RoundedMemory(int64_t rows, int64_t k, int height, uint8_t fill)
      : rows_(rows), k_(k), layout_{nullptr, nullptr, (rows + height - 1) / height, (k + 127) / 128, height} {
    bytes_.assign(blocks_bytes() + static_cast<size_t>(layout_.tiles * height) * sizeof(int32_t), fill);
  }
  size_t size() const { return bytes_.size(); }
  const uint8_t* data() const { return bytes_.data(); }
  // The rows that a kernel is given to write, in memory of size() bytes.
  RoundedRows at(void* memory) const {
    RoundedRows to = layout_;
    to.blocks = static_cast<uint8_t*>(memory);
    to.scales = reinterpret_cast<int32_t*>(to.blocks + blocks_bytes());
    return to;
  }
  void round(const float* rows) {
    const RoundedRows to = at(bytes_.data());
    for (int64_t r = rows_; r < to.tiles * to.height; ++r) std::memset(to.scales + r, 0, sizeof *to.scales);
    for (int64_t r = 0; r < rows_; ++r) {
      const float* const x = rows + r * k_;
      const int32_t e = num::reference::exact16_row_scale(k_, [x](int64_t i) { return x[i]; });
      std::memcpy(to.scales + r, &e, sizeof e);
      for (int64_t i = 0; i < to.chunks * 128; ++i) {
        const bool zero = i >= k_ || e == num::kExact16NoIntegers;
        const int64_t q = zero ? 0 : num::reference::exact16_integer(x[i], e), high = (q + 128) >> 8;
        const int64_t row = r % to.height, plane = to.height * 128;
        uint8_t* const block = to.blocks + (r / to.height * to.chunks + i / 128) * 2 * plane;
        uint8_t* const at = block + row * 128 + ((i % 128 / 16) ^ (row & 7)) * 16 + i % 16;
        at[0] = static_cast<uint8_t>(high), at[plane] = static_cast<uint8_t>(q);
      }
    }
  }

 private:
  size_t blocks_bytes() const {
    return static_cast<size_t>(layout_.tiles * layout_.chunks * layout_.height * 256);
  }
  int64_t rows_, k_;
  RoundedRows layout_;
  std::vector<uint8_t> bytes_;
};

}  // namespace invar::ops::reference
