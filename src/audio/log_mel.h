// Samples -> the logarithms of their energies in bands of mel, which an encoder of speech reads
// (spec/speech.md).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace invar::audio {

inline constexpr int64_t kSpeechRate = 16000, kSamplesPerFrame = 160;

// [bands, frames] of the samples, which are cut or followed by zeros to frames *
// kSamplesPerFrame. At least 2 frames.
std::vector<float> log_mel(std::span<const float> samples, int64_t bands, int64_t frames);

}  // namespace invar::audio
