// Numbers of the log-mel front end, each the binary64 number next to a real one (spec/speech.md
// speech.3).
#pragma once

#include <cstdint>
#include <vector>

namespace invar::audio {

// cos and sin of 2 pi n / 400, n from 0 to 399.
struct Circle {
  std::vector<double> cosines, sines;
};
const Circle& circle();
// The corners of the bands in hertz, bands + 2.
std::vector<double> mel_corners(int64_t bands);

}  // namespace invar::audio
