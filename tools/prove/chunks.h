// All 2^32 inputs of a function in 256 chunks of 2^24: computed, hashed and, for a proof, compared
// with the oracle. And a few of every binade, for emulators.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/hash/sha256.h"
#include "probe.h"

namespace invar::prove {

constexpr int kChunks = 256;
// One more "chunk": 2^19 inputs, every 8191st from 00000000 on.
constexpr int kSpread = kChunks;
constexpr uint32_t kSpreadInputs = 1u << 19, kSpreadStep = 8191;

using Function1 = std::function<void(const float* x, float* y, int n)>;

struct ChunkResult {
  Digest digest;        // SHA-256 of the outputs, little-endian, NaN as 7fc00000
  bool proved = false;  // compared with the oracle
  int64_t wrong = 0;
  int64_t judged = 0;  // inputs that the filter left to MPFR
};

// With prove, prints the first wrong inputs.
ChunkResult run_chunk(const Function1& map, const std::string& function, int chunk, bool prove);

// Chunks first ... last, on `threads` threads, with a progress bar on a terminal. What is in
// `state` is taken from there, what is new is appended to it (empty: keep nothing), so that a run
// can be interrupted.
std::map<int, ChunkResult> run_chunks(const Function1& map, const std::string& function,
                                      const std::string& isa, const std::vector<int>& chunks, bool prove,
                                      int threads, const std::string& state);

}  // namespace invar::prove
