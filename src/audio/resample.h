// Samples of any rate -> 16,000 a second (spec/speech.md speech.10).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace invar::audio {

// Whether samples of the rate can be converted.
bool is_convertible(int64_t rate);
std::vector<float> resampled(std::span<const float> samples, int64_t rate);

}  // namespace invar::audio
