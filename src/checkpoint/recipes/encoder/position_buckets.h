// Buckets of distances between tokens, as T5 and MPNet have them (spec/encoder.md encoder.6).
#pragma once

#include <cstdint>
#include <vector>

namespace invar::checkpoint {

// The bucket of each distance, key minus query, from -farthest to farthest. Half of the buckets are
// of keys behind the query. Of each half the first half are of one distance each, the others grow
// up to a distance of 128, and the last one has all that is farther.
std::vector<int64_t> bucket_of_distance(int64_t buckets, int64_t farthest);

}  // namespace invar::checkpoint
