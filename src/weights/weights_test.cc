// Tests of formats of weights, of their integers, and of files that hold them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "num/convert/convert.h"
#include "weights/formats.h"
#include "weights/weight_file.h"

namespace invar::weights {
namespace {

// Random blocks, whose halves are finite numbers.
std::vector<uint8_t> random_blocks(const Format& f, int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint8_t> bytes(static_cast<size_t>(count * f.bytes));
  for (int64_t i = 0; i < count; ++i)
    for (bool finite = false; !finite;) {
      uint8_t* const block = bytes.data() + i * f.bytes;
      for (int b = 0; b < f.bytes; ++b) block[b] = static_cast<uint8_t>(random());
      float numbers[kLargestBlock];
      f.unpack(block, numbers);
      finite = true;
      for (int k = 0; k < f.block; ++k) finite &= std::isfinite(numbers[k]);
    }
  return bytes;
}

TEST(Formats, IntegersAreTheNumbers) {
  int coded = 0;
  for (const Format& f : formats()) {
    if (!f.coding) continue;
    ++coded;
    const Coding& c = *f.coding;
    const std::vector<uint8_t> bytes = random_blocks(f, 4000, 1);
    for (size_t at = 0; at < bytes.size(); at += static_cast<size_t>(f.bytes)) {
      float numbers[kLargestBlock];
      BlockIntegers x;
      f.unpack(bytes.data() + at, numbers), c.read(bytes.data() + at, x);
      for (int i = 0; i < f.block; ++i) {
        const int g = i / c.group;
        float s = num::f32_from_f16(x.d);
        if (c.has_groups) s *= static_cast<float>(x.s[g]) - 128.0f;
        float a = s * static_cast<float>(-c.zero);
        if (c.has_e) a = c.has_groups ? -(num::f32_from_f16(x.e) * x.m[g]) : num::f32_from_f16(x.e);
        ASSERT_LT(x.q[i], 1 << c.bits) << f.name;
        ASSERT_EQ(std::fma(static_cast<float>(x.q[i]), s, a), numbers[i]) << f.name << ' ' << i;
      }
    }
  }
  EXPECT_EQ(coded, 12);
}

class WeightFileTest : public ::testing::Test {
 protected:
  WeightFileTest()
      : folder_(std::filesystem::temp_directory_path() /
                ("invar-weights-" + std::to_string(std::random_device()()))) {
    std::filesystem::create_directories(folder_);
  }
  ~WeightFileTest() override { std::filesystem::remove_all(folder_); }
  std::string put(const std::string& name, std::string_view content) {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return (folder_ / name).string();
  }
  std::filesystem::path folder_;
};

std::string_view text_of(const std::vector<uint8_t>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST_F(WeightFileTest, RangesOfAnIndexAreNumbers) {
  const Format &k = *find_format("Q4_K"), &q = *find_format("Q8_0");
  const auto first = random_blocks(k, 8 * 2, 2), second = random_blocks(q, 3, 3);
  put("m.gguf", "xx" + std::string(text_of(first)) + std::string(text_of(second)));
  // Eight rows of 512 numbers in two heads, then a hole, then a row of 96.
  const std::vector<PackedTensor> tensors = {{0, 16384, "Q4_K", "m.gguf", 2, 8, 512, 4, "a\x20name"},
                                             {20000, 384, "Q8_0", "m.gguf", 2 + first.size(), 1, 96, 0, "b"}};
  const std::string path = put(std::string(kIndexFile), print_index(tensors));
  const auto file = WeightFile::open(path);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE(file->is_packed());
  EXPECT_EQ(file->size(), 20384u);
  EXPECT_EQ(file->sources(), (std::vector<std::string>{"m.gguf"}));
  std::vector<float> all(4096 + 96);
  for (int row = 0; row < 8; ++row) {
    const int stored = row / 4 * 4 + row % 4 % 2 * 2 + row % 4 / 2;
    for (int b = 0; b < 2; ++b)
      k.unpack(first.data() + (stored * 2 + b) * k.bytes, all.data() + row * 512 + b * 256);
  }
  for (int b = 0; b < 3; ++b) q.unpack(second.data() + b * q.bytes, all.data() + 4096 + b * 32);
  const auto read = [&](uint64_t offset, uint64_t length) {
    std::vector<float> out(length / 4);
    const Status done = file->copy(offset, length, reinterpret_cast<std::byte*>(out.data()));
    EXPECT_TRUE(done) << done.error().message;
    return out;
  };
  EXPECT_EQ(read(0, 16384), std::vector<float>(all.begin(), all.begin() + 4096));
  EXPECT_EQ(read(20000, 384), std::vector<float>(all.begin() + 4096, all.end()));
  EXPECT_EQ(read(2044, 8), std::vector<float>(all.begin() + 511, all.begin() + 513));
  EXPECT_FALSE(file->copy(16380, 8, reinterpret_cast<std::byte*>(all.data())));  // into the hole
  EXPECT_EQ(*file->sha256(20000, 384), sha256(all.data() + 4096, 384));
  // Whole rows, and no others.
  ASSERT_TRUE(file->rows(2048, 4096));
  EXPECT_EQ(file->rows(2048, 4096)->rows, 2);
  EXPECT_EQ(file->rows(2048, 4096)->row(0), file->rows(0, 16384)->row(1));
  EXPECT_FALSE(file->rows(2048, 100) || file->rows(4, 2048) || file->rows(16384, 4));
  // With the digests of blocks beside it, a tensor that has changed is found all the same.
  const Digest wanted = *file->sha256(20000, 384);
  const WeightFile::Checked checked[] = {{20000, 384, wanted}, {0, 4, wanted}};
  ASSERT_TRUE(file->write_checked(checked));
  EXPECT_EQ(*WeightFile::open(path)->checked_sha256(20000, 384, wanted), wanted);
  EXPECT_EQ(*WeightFile::open(path)->checked_sha256(0, 16384, wanted), *file->sha256(0, 16384));
  std::string other = "xx" + std::string(text_of(first)) + std::string(text_of(second));
  other[other.size() - 1] ^= 1;
  put("other.gguf", other);
  std::string lines = print_index(tensors);
  for (size_t at; (at = lines.find("\tm.gguf")) != lines.npos;) lines.replace(at, 7, "\tother.gguf");
  put(std::string(kIndexFile), lines);
  EXPECT_NE(*WeightFile::open(path)->checked_sha256(20000, 384, wanted), wanted);
  DigestCache cache;
  const Digest digest = sha256(all.data(), 16384);
  file->remember(cache, 0, 16384, digest);
  const auto bytes = WeightFile::open((folder_ / "m.gguf").string());
  EXPECT_FALSE(bytes->is_known(cache, 2, 16384, digest));
}

TEST_F(WeightFileTest, RefusesWhatIsNoIndex) {
  const auto blocks = random_blocks(*find_format("Q4_0"), 4, 4);
  put("m.gguf", text_of(blocks));
  const std::string good = "0\t512\tQ4_0\t0\t2\t64\t0\tm.gguf\tname\n";
  const auto error = [&](const std::string& lines) {
    const auto file = WeightFile::open(put(std::string(kIndexFile), lines));
    return file ? "" : file.error().message;
  };
  const std::string head = "invar packed weights 1\n";
  EXPECT_EQ(error(head + good), "");
  const std::pair<std::string, std::string> wrong[] = {
      {"", "txt:1: this is no index"},
      {"invar packed weights 2\n" + good, "txt:1: "},
      {head + good + good, "txt:3: "},
      {head + good.substr(0, good.size() - 1), "txt:2: "},
      {head + "0\t512\tQ4_0\t0\t2\t64\t0\t../m.gguf\tname\n", "txt:2: "},
      {head + "0\t512\tQ4_0\t0\t2\t64\t0\t..\tname\n", "txt:2: "},
      {head + "0\t512\tQ4_0\t0\t2\t64\t0\tm.gguf\tname\tmore\n", "txt:2: "},
      {head + "0\t512\tQ9_9\t0\t2\t64\t0\tm.gguf\tname\n", "txt:2: "},
      {head + "0\t511\tQ4_0\t0\t2\t64\t0\tm.gguf\tname\n", "txt:2: "},
      {head + "0\t512\tQ4_0\t0\t2\t64\t3\tm.gguf\tname\n", "txt:2: "},
      {head + "-1\t512\tQ4_0\t0\t2\t64\t0\tm.gguf\tname\n", "txt:2: "},
      {head + "0\t528\tQ4_0\t0\t2\t66\t0\tm.gguf\tname\n", "txt:2: "},
      {head + "0\t0\tQ4_0\t0\t4294967296\t4294967296\t0\tm.gguf\tname\n", "txt:2: "},
      {head + "0\t512\tQ4_0\t1\t2\t64\t0\tm.gguf\tname\n", "72 bytes, but name should lie at offset 1"},
      {head + "0\t512\tQ4_0\t0\t2\t64\t0\tother.gguf\tname\n", "other.gguf"}};
  for (const auto& [lines, reason] : wrong)
    EXPECT_NE(error(lines).find(reason), std::string::npos) << lines << error(lines);
}

}  // namespace
}  // namespace invar::weights
