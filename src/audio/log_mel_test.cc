// The tables and the front end against digests that tests/families/speech/log_mel.py computed with
// 60 digits.
#include "audio/log_mel.h"

#include <gtest/gtest.h>

#include <string>

#include "audio/tables.h"
#include "base/endian.h"
#include "base/hash/sha256.h"

namespace invar::audio {
namespace {

template <class T>
std::string digest(const std::vector<T>& numbers) {
  std::string bytes(numbers.size() * sizeof(T), '\0');
  copy_little_endian(bytes.data(), numbers.data(), bytes.size(), sizeof(T));
  return to_hex(sha256(bytes));
}

TEST(LogMel, NumbersAreNextToTheRealOnes) {
  EXPECT_EQ(digest(circle().cosines), "5b9e4aed480c36251543c7b0dc0f2b1715965d27458ffa03f26f373650790c97");
  EXPECT_EQ(digest(circle().sines), "234f0e78e8e20123ba88ac4b4105d37de28de1cff222e73aaf6b519de331621f");
  EXPECT_EQ(digest(mel_corners(80)), "da91af60f1f18834a6638dfd0868f0cd6293b51607a1163f4a4103ffff62ac60");
  EXPECT_EQ(digest(mel_corners(128)), "b65f60f25e3752d1b27f44bacd8134933b0a280239e96b62f21f32c9dfbea646");
}

// sound(3, 32000) of log_mel.py.
std::vector<float> sound() {
  std::vector<float> samples;
  uint64_t state = 7;
  int64_t phase = 0;
  for (int64_t i = 0; i < 32000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    phase = (phase + 40 + (i / 50) % 900 + 291) % 4096;
    const int64_t tone = std::abs(phase - 2048) - 1024, loud = (i / 1600) % 4;
    const int64_t value = tone * 6 * loud + static_cast<int64_t>(state >> 52) * loud - 2048 * loud;
    samples.push_back(static_cast<float>(value >> 1) * 0x1p-15f);
  }
  return samples;
}

TEST(LogMel, FeaturesAreThoseOfASecondReading) {
  const std::vector<float> features = log_mel(sound(), 80, 200);
  EXPECT_EQ(digest(features), "1934ee59f32230b036581d6215f6b3986b282ef43c533d0169e62d4d9e63ff03");
}

// Frames of nothing but padding are not summed, and have the features that sums of zeros give.
TEST(LogMel, PaddingIsZeros) {
  std::vector<float> samples = sound();
  samples.resize(3000);
  const std::vector<float> cut = log_mel(samples, 80, 100);
  samples.resize(16000, 0.0f);
  EXPECT_EQ(digest(log_mel(samples, 80, 100)), digest(cut));
  samples.resize(40000, 1.0f);  // behind the window
  EXPECT_EQ(digest(log_mel(samples, 80, 100)), digest(cut));
}

}  // namespace
}  // namespace invar::audio
