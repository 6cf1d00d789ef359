#include "checkpoint/recipes/encoder/position_buckets.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace invar::checkpoint {

std::vector<int64_t> bucket_of_distance(int64_t buckets, int64_t farthest) {
  constexpr int64_t kLargest = 128;
  const int64_t half = buckets / 2, exact = half / 2;
  std::vector<int64_t> table;
  for (int64_t distance = -farthest; distance <= farthest; ++distance) {
    const int64_t n = std::abs(distance);
    int64_t bucket = n;
    if (n >= exact) {
      // The quotient is a whole number or far from one, so no library's logarithm decides.
      const double grown = std::log(static_cast<double>(n) / static_cast<double>(exact)) /
                           std::log(static_cast<double>(kLargest) / static_cast<double>(exact)) *
                           static_cast<double>(half - exact);
      bucket = std::min(exact + static_cast<int64_t>(std::floor(grown + 1e-9)), half - 1);
    }
    table.push_back(bucket + (distance > 0 ? half : 0));
  }
  return table;
}

}  // namespace invar::checkpoint
