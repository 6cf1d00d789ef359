// Fuzzes recordings: files of RIFF WAVE and FLAC. What is read has a bounded number of samples.
#include "audio/recording.h"
#include "fuzz/parsers/parts.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace invar;
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  constexpr size_t kMost = 1 << 20;
  const auto read = audio::recording_of(file, "input", kMost);
  if (!read) return expect(read.error()), 0;
  if (read->samples.size() > kMost) defect("more samples than the limit");
  if (file.starts_with("fLaC")) return 0;  // equal samples take no bytes
  if (read->rate < 1) defect("a recording without a rate");
  if (read->samples.size() > size) defect("more samples than bytes");
  return 0;
}
