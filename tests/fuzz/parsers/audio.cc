// Fuzzes recordings: files of RIFF WAVE. What is read has a rate and a bounded number of samples.
#include "audio/recording.h"
#include "fuzz/parsers/parts.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace invar;
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  const auto read = audio::read_wav(file, "input");
  if (!read) return expect(read.error()), 0;
  if (read->rate < 1) defect("a recording without a rate");
  if (read->samples.size() > size) defect("more samples than bytes");
  return 0;
}
