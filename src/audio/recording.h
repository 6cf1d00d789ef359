// An audio file -> its samples (spec/speech.md speech.1).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash/sha256.h"
#include "base/status.h"

namespace invar::audio {

// One channel: of several the mean.
inline constexpr size_t kMostSamples = size_t{1} << 29;  // 9 hours of speech
struct Recording {
  int64_t rate = 0;  // samples a second
  std::vector<float> samples;
  Digest digest = {};  // digest_of(), once they are what a model hears
};
// RIFF WAVE: whole numbers of 8, 16, 24 or 32 bits, or binary32 and binary64. Errors begin with
// `name`; not_covered: another format, which they name.
Result<Recording> read_wav(std::string_view file, const std::string& name, size_t most = kMostSamples);
Result<Recording> read_flac(std::string_view file, const std::string& name, size_t most = kMostSamples);
// Either of them. Other formats are refused with the way to one of them, and more than `most`
// samples.
Result<Recording> recording_of(std::string_view file, const std::string& name, size_t most = kMostSamples);
Result<Recording> read_recording(const std::string& path);
// not_covered: there are more than `most`.
Error too_many_samples(const std::string& name, size_t most);
// Of the samples as little-endian binary32.
Digest digest_of(const Recording&);

}  // namespace invar::audio
