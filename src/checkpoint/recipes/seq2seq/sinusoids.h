// Tables of sinusoidal positions, the same on every machine.
#pragma once

#include <cstdint>
#include <vector>

namespace invar::checkpoint {

// [rows, size]: row p holds sin(p w_j) for all j, then cos(p w_j), w_j = 10000^(-2j / size);
// computed in binary64 and rounded once. Row 0 is position `first`.
std::vector<float> sinusoids(int64_t first, int64_t rows, int64_t size);
// The same as fairseq computes it: w_j = exp(-j ln(10000) / (size / 2 - 1)) and p w_j are binary32.
std::vector<float> sinusoids_of_binary32(int64_t first, int64_t rows, int64_t size);

}  // namespace invar::checkpoint
