// Tests of formats of weights, of their integers, and of files that hold them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "num/convert/convert.h"
#include "weights/formats.h"
#include "weights/scales.h"
#include "weights/testing.h"
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

float scale_of(const Coding& c, const BlockCodes& x) {
  switch (c.scale) {
    case ScaleType::f16: return num::f32_from_f16(static_cast<uint16_t>(x.d));
    case ScaleType::bf16: return num::f32_from_bf16(static_cast<uint16_t>(x.d));
    case ScaleType::f32: return num::f32_from_bits(x.d);
    case ScaleType::e8m0: return std::ldexp(1.0f, static_cast<int>(x.d) - 127);
    case ScaleType::scaled_e4m3: return c.divided ? e4m3(x.d) / c.whole : e4m3(x.d) * c.whole;
  }
  return 0;
}
// Number i of a block as kernels make it.
float number_of(const Coding& c, const BlockCodes& x, int i) {
  const int g = i / c.group;
  float s = scale_of(c, x);
  if (c.has_groups) s *= static_cast<float>(x.s[g]) - 128.0f;
  float a = s * static_cast<float>(c.has_zeros ? -x.z : -c.zero);
  if (c.has_e)
    a = c.has_groups ? -(num::f32_from_f16(x.e) * static_cast<float>(x.m[g])) : num::f32_from_f16(x.e);
  const float y = c.codes == Codes::integers ? std::fma(static_cast<float>(x.q[i]), s, a)
                  : c.codes == Codes::e4m3   ? e4m3(x.q[i]) * s
                  : c.codes == Codes::e5m2   ? e5m2(x.q[i]) * s
                  : c.codes == Codes::nf4    ? kNf4[x.q[i]] * s
                  : c.codes == Codes::fp4    ? kFp4[x.q[i]] * s
                                             : e2m1(x.q[i]) * s;
  return c.rounding == Rounding::bf16  ? num::f32_from_bf16(num::bf16_from_f32(y))
         : c.rounding == Rounding::f16 ? num::f32_from_f16(num::f16_from_f32(y))
                                       : y;
}

TEST(Formats, CodesAreTheNumbers) {
  int coded = 0;
  for (const Format& f : formats()) {
    if (!f.coding) continue;
    ++coded;
    const std::vector<uint8_t> bytes = random_blocks(f, 4000, 1);
    for (size_t at = 0; at < bytes.size(); at += static_cast<size_t>(f.bytes)) {
      float numbers[kLargestBlock];
      BlockCodes x;
      f.unpack(bytes.data() + at, numbers), f.coding->read(bytes.data() + at, x);
      for (int i = 0; i < f.block; ++i) {
        ASSERT_LT(x.q[i], 1 << (f.coding->held ? f.coding->held : f.coding->bits)) << f.name;
        ASSERT_TRUE(!f.coding->of_iq4 || std::ranges::count(kIq4, x.q[i] - 128)) << f.name;
        ASSERT_EQ(number_of(*f.coding, x, i), numbers[i]) << f.name << ' ' << i;
      }
    }
  }
  EXPECT_EQ(coded, 13);
}

TEST(Matrices, CodesAreTheNumbers) {
  const auto all = testing::made_matrices(24, 384, 0);
  EXPECT_EQ(all.size(), 20u);
  for (const auto& [name, m, memory] : all) {
    const auto coding = m.coding();
    ASSERT_TRUE(coding) << name;
    std::vector<float> row(384);
    std::vector<uint8_t> elements(384 * element_bytes(m.element()));
    for (int64_t r = 0; r < m.rows; ++r) {
      m.numbers(r, 0, m.columns, row.data());
      ASSERT_EQ(m.elements(r, r + 1, elements.data()), -1) << name;
      for (int64_t at = 0; at < m.columns / m.block(); ++at) {
        BlockCodes x;
        m.read(r, at, x);
        for (int i = 0; i < m.block(); ++i) {
          const int64_t k = at * m.block() + i;
          const uint8_t* p = elements.data() + static_cast<size_t>(k) * element_bytes(m.element());
          const std::string_view type = m.element();
          const float number = type == "F32"    ? row[static_cast<size_t>(k)]
                               : type == "BF16" ? num::f32_from_bf16(static_cast<uint16_t>(p[0] | p[1] << 8))
                                                : num::f32_from_f16(static_cast<uint16_t>(p[0] | p[1] << 8));
          ASSERT_LT(x.q[i], 1 << m.bits) << name;
          if (coding->column_groups) m.read_group(r, m.group_of(k), x);
          ASSERT_EQ(number_of(*coding, x, i), number) << name << ' ' << r << ' ' << k;
        }
      }
    }
  }
}

// Kernels round a number once: what they would round otherwise is unpacked.
TEST(Matrices, WhatKernelsDoNotRead) {
  const auto all = testing::made_matrices(16, 128, 0);
  const auto named = [&](std::string_view name) {
    return std::ranges::find(all, name, &testing::MadeMatrix::name)->matrix;
  };
  PackedMatrix m = named("fp8 blocks");
  EXPECT_TRUE(m.coding());
  m.columns = m.row_bytes = 120;
  EXPECT_FALSE(m.coding()) << "a part of a block";
  m = named("gptq 4"), m.parts[kScales].type = PartType::f32;
  EXPECT_FALSE(m.coding()) << "the product of a zero and a scale is rounded";
  std::vector<uint8_t> groups(4 * 128);
  m = named("gptq 4 by act-order"), m.parts[kColumnGroups].bytes = groups.data();
  EXPECT_TRUE(m.coding());
  groups[4 * 100] = static_cast<uint8_t>(m.across());
  EXPECT_FALSE(m.coding()) << "a group that is not there";
  m = named("nf4");
  const std::vector<uint8_t> table(64, 1);
  m.parts[kTable].bytes = table.data();
  EXPECT_FALSE(m.coding()) << "another table than those of bitsandbytes";
  m = named("nf4"), m.scale_columns = 200;
  EXPECT_FALSE(m.coding()) << "a scale of two rows";
  const std::vector<uint8_t> tiny = {0, 0, 0, 1};
  m = named("fp8 blocks"), m.parts[kScales].bytes = tiny.data();
  EXPECT_FALSE(m.coding()) << "a scale whose products are subnormal";
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

// Two stacks of two matrices [3, 64], whose rows in turns are the columns of a tensor [2, 64, 6].
TEST_F(WeightFileTest, StacksInTurnsAreNumbers) {
  const Format& f = *find_format("Q5_0");
  const std::vector<uint8_t> stacks[] = {random_blocks(f, 12, 5), random_blocks(f, 12, 6)};
  put("a.gguf", text_of(stacks[0])), put("b.gguf", "xyz" + std::string(text_of(stacks[1])));
  const PackedTensor tensor{0, 3072, "Q5_0", "a.gguf", 0, 12, 64, 0, "gates", nullptr, 2, "b.gguf", 3};
  const auto file = WeightFile::open(put(std::string(kIndexFile), print_index({&tensor, 1})));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->sources(), (std::vector<std::string>{"a.gguf", "b.gguf"}));
  std::vector<float> all(768), wanted(768);
  ASSERT_TRUE(file->copy(0, 3072, reinterpret_cast<std::byte*>(all.data())));
  for (int e = 0; e < 2; ++e)
    for (int j = 0; j < 6; ++j)
      for (int b = 0; b < 2; ++b) {
        float block[kLargestBlock];
        f.unpack(stacks[j % 2].data() + ((e * 3 + j / 2) * 2 + b) * f.bytes, block);
        for (int i = 0; i < 32; ++i) wanted[static_cast<size_t>((e * 64 + b * 32 + i) * 6 + j)] = block[i];
      }
  EXPECT_EQ(all, wanted);
  const auto second = file->rows(1536, 1536);
  ASSERT_TRUE(second && second->turned);
  EXPECT_EQ(second->row(1), file->rows(0, 3072)->row(7));
  EXPECT_FALSE(file->rows(24, 24));
}

TEST_F(WeightFileTest, MatricesInPartsAreNumbers) {
  std::string bytes = "xx";
  std::vector<PackedTensor> tensors;
  std::vector<std::vector<uint8_t>> numbers;
  uint64_t offset = 0;
  for (auto& [name, m, memory] : testing::made_matrices(32, 128, 2)) {
    for (MatrixPart& part : m.parts) {
      if (part.type == PartType::none) continue;
      part.file = "m.safetensors", part.at = bytes.size();
      bytes.append(reinterpret_cast<const char*>(part.bytes), part.length);
    }
    const uint64_t length = 32 * 128 * element_bytes(m.element());
    ASSERT_EQ(m.elements(0, 2 * 128, numbers.emplace_back(length).data()), -1);
    tensors.push_back({offset, length, "", "", 0, 32, 128, 0, name, std::make_shared<const PackedMatrix>(m)});
    offset += length + 64;
  }
  put("m.safetensors", bytes);
  const std::string text = print_index(tensors), path = put(std::string(kIndexFile), text);
  const auto file = WeightFile::open(path);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->sources(), (std::vector<std::string>{"m.safetensors"}));
  DigestCache cache;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto& [at, length] = std::pair(tensors[i].offset, tensors[i].length);
    std::vector<uint8_t> all(length), part(100);
    ASSERT_TRUE(file->copy(at, length, reinterpret_cast<std::byte*>(all.data())));
    EXPECT_EQ(all, numbers[i]) << tensors[i].name;
    file->release(at, length);
    ASSERT_TRUE(file->copy(at + 1000, 100, reinterpret_cast<std::byte*>(part.data())));
    EXPECT_TRUE(std::equal(part.begin(), part.end(), numbers[i].begin() + 1000)) << tensors[i].name;
    // Turned: whole matrices, of 16 columns.
    const auto rows = file->rows(at + length / 2, length / 2);
    ASSERT_TRUE(rows && rows->turned && rows->matrix);
    EXPECT_EQ(std::pair(rows->rows, rows->first), std::pair(int64_t{16}, int64_t{16}));
    EXPECT_FALSE(file->rows(at, length / 4));
    const Digest digest = sha256(numbers[i].data(), length);
    const WeightFile::Checked checked[] = {{at, length, digest}};
    ASSERT_TRUE(file->write_checked(checked));
    EXPECT_EQ(*WeightFile::open(path)->checked_sha256(at, length, digest), digest);
  }
  // A line that was changed is refused or has other numbers; none is trusted.
  const auto parsed = parse_index(text, path);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(print_index(*parsed), text);
  std::mt19937_64 random(1);
  for (int i = 0; i < 400; ++i) {
    std::string other = text;
    other[random() % other.size()] = "0123456789\t\n/"[random() % 13];
    const auto opened = WeightFile::open(put(std::string(kIndexFile), other));
    const auto lines = parse_index(other, path);
    for (size_t j = 0; opened && j < lines->size(); ++j) {
      const PackedTensor& t = (*lines)[j];
      ASSERT_LT(t.length, uint64_t{1} << 24) << other;  // no more numbers than the files have
      std::vector<std::byte> all(t.length);
      (void)opened->copy(t.offset, t.length, all.data());
    }
  }
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
