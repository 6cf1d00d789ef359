// WAV files as strangers write them.
#include <gtest/gtest.h>

#include "audio/recording.h"

namespace invar::audio {
namespace {

std::string little(uint64_t value, int bytes) {
  std::string s;
  for (int i = 0; i < bytes; ++i) s += static_cast<char>(value >> (8 * i));
  return s;
}
std::string chunk(const std::string& kind, const std::string& content) {
  return kind + little(content.size(), 4) + content + (content.size() % 2 ? std::string(1, '\0') : "");
}
std::string format(int kind, int channels, int bits) {
  return chunk("fmt ", little(kind, 2) + little(channels, 2) + little(16000, 4) + little(0, 4) +
                           little(0, 2) + little(bits, 2));
}
std::string wav(const std::string& chunks) {
  return "RIFF" + little(4 + chunks.size(), 4) + "WAVE" + chunks;
}
std::vector<float> samples(const std::string& file) {
  const auto read = read_wav(file, "a.wav");
  return read ? read->samples : std::vector<float>{-9};
}
std::string refusal(const std::string& file) {
  const auto read = read_wav(file, "a.wav");
  return read ? "" : read.error().message;
}

TEST(Wav, EveryKindOfSample) {
  EXPECT_EQ(samples(wav(format(1, 1, 8) + chunk("data", "\x80\x81\xff"))),
            (std::vector<float>{0, 0x1p-7f, 127 * 0x1p-7f}));
  EXPECT_EQ(samples(wav(format(1, 1, 16) + chunk("data", little(0x8000, 2) + little(3, 2)))),
            (std::vector<float>{-1, 3 * 0x1p-15f}));
  EXPECT_EQ(samples(wav(format(1, 1, 24) + chunk("data", little(0x800000, 3) + little(5, 3)))),
            (std::vector<float>{-1, 5 * 0x1p-23f}));
  EXPECT_EQ(samples(wav(format(1, 1, 32) + chunk("data", little(0x7fffffff, 4) + little(1, 4)))),
            (std::vector<float>{1, 0x1p-31f}));
  EXPECT_EQ(samples(wav(format(3, 1, 32) + chunk("data", little(0x3f000000, 4)))), std::vector<float>{0.5f});
  EXPECT_EQ(samples(wav(format(3, 1, 64) + chunk("data", little(0x3fe0000000000001, 8)))),
            std::vector<float>{0.5f});
  // The mean of channels; a part of a frame at the end is none.
  EXPECT_EQ(samples(wav(format(1, 2, 16) + chunk("data", little(3, 2) + little(4, 2) + "x"))),
            std::vector<float>{3.5f * 0x1p-15f});
}

TEST(Wav, ChunksOfOthersAndOpenEnds) {
  const std::string data = chunk("data", little(7, 2)), list = chunk("LIST", "odd");
  EXPECT_EQ(samples(wav(list + format(1, 1, 16) + list + data + list)), std::vector<float>{7 * 0x1p-15f});
  EXPECT_EQ(samples(wav(format(1, 1, 16) + "data\xff\xff\xff\xff" + little(7, 2))),
            std::vector<float>{7 * 0x1p-15f});
  std::string extensible = little(0xfffe, 2) + little(1, 2) + little(16000, 4) + little(0, 6) +
                           little(16, 2) + little(22, 2) + little(16, 2) + little(0, 4) + little(1, 2) +
                           std::string(14, 'g');
  EXPECT_EQ(samples(wav(chunk("fmt ", extensible) + data)), std::vector<float>{7 * 0x1p-15f});
}

TEST(Wav, RefusalsNameWhatIsWrong) {
  const std::string data = chunk("data", little(7, 2));
  EXPECT_EQ(refusal("RIFX"), "a.wav: not a WAV file");
  EXPECT_EQ(refusal(wav("")), "a.wav: this WAV file has no samples (no chunk 'data')");
  EXPECT_EQ(refusal(wav(data)), "a.wav: this WAV file has samples before it says what they are");
  EXPECT_EQ(refusal(wav(chunk("fmt ", "short"))), "a.wav: the chunk 'fmt ' of this WAV file is cut off");
  EXPECT_EQ(refusal(wav(format(1, 0, 16) + data)),
            "a.wav: a WAV file with 0 channels and 16000 samples a second");
  EXPECT_NE(refusal(wav(format(7, 1, 8) + data)).find("format 7 with 8 bits is not covered"),
            std::string::npos);
  EXPECT_EQ(refusal(wav(format(1, 1, 16) + "data" + little(9, 4) + "xy")),
            "a.wav: the file ends after 2 of 9 bytes of samples: it is cut off");
  EXPECT_NE(
      refusal(wav(format(3, 1, 32) + chunk("data", little(0x7fc00000, 4)))).find("sample 0 is no number"),
      std::string::npos);
}

}  // namespace
}  // namespace invar::audio
