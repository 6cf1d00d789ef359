// formats.8: reading a bf16 or f16 weight is bit-equal to cast followed by the same operation on
// f32, and trans_b to the transposed operand. contraction.1: a row does not depend on the other
// rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>

#include "device/device.h"
#include "kernels/blocks/block_readers.h"
#include "kernels/testing.h"
#include "num/convert/convert.h"
#include "ops/matmul/tiles.h"
#include "weights/formats.h"
#include "weights/testing.h"

namespace invar::ops {
namespace {

constexpr int64_t kM = 5, kK = 513, kN = 37;

std::vector<uint16_t> bits(int64_t n) {  // every bit pattern that is finite in either format, subnormals too
  std::vector<uint16_t> v;
  for (int64_t i = 0; i < n; ++i) {
    auto u = static_cast<uint16_t>(static_cast<uint64_t>(i) * 40503 >> 3);
    v.push_back((u & 0x7c00) == 0x7c00 ? u & 0x83ff : u);
  }
  return v;
}

class Matmul : public ::testing::Test {
 protected:
  Matmul() : a(kM * kK) {
    for (int64_t i = 0; i < kM * kK; ++i) a[i] = static_cast<float>(i * 7919 % 2003 - 1001) / 64;
  }
  std::vector<float> product(const CpuKernel& k, View b, int64_t trans, int64_t from = 0, int64_t rows = kM) {
    std::vector<float> y(rows * kN);
    View in[] = {testing::view(a, DType::f32, {rows, kK}), b}, out = testing::view(y, DType::f32, {rows, kN});
    in[0].data = a.data() + from * kK;
    testing::run(k, in, {&out, 1}, Attributes{{"trans_b", trans}});
    return y;
  }
  static bool same(const std::vector<float>& x, const std::vector<float>& y) {
    return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
  }
  std::vector<float> a;
};

TEST_F(Matmul, WidensAsCastDoes) {
  auto stored = bits(kK * kN);
  for (std::string_view isa : isas())
    for (DType dtype : {DType::bf16, DType::f16}) {
      const CpuKernel *matmul = find_cpu_kernel("matmul", isa), *cast = find_cpu_kernel("cast", isa);
      ASSERT_TRUE(matmul && cast) << isa;
      std::vector<float> wide(kK * kN);
      View b = testing::view(stored, dtype, {kK, kN}), w = testing::view(wide, DType::f32, {kK, kN});
      testing::run(*cast, {&b, 1}, {&w, 1});
      EXPECT_TRUE(same(product(*matmul, b, 0), product(*matmul, w, 0))) << isa << ' ' << name_of(dtype);
    }
}

TEST_F(Matmul, TransposesAsData) {
  auto stored = bits(kK * kN);
  std::vector<uint16_t> turned(kK * kN);
  for (int64_t k = 0; k < kK; ++k)
    for (int64_t n = 0; n < kN; ++n) turned[n * kK + k] = stored[k * kN + n];
  for (std::string_view isa : isas()) {
    const CpuKernel* matmul = find_cpu_kernel("matmul", isa);
    View b = testing::view(stored, DType::bf16, {kK, kN}), t = testing::view(turned, DType::bf16, {kN, kK});
    EXPECT_TRUE(same(product(*matmul, b, 0), product(*matmul, t, 1))) << isa;
  }
}

TEST_F(Matmul, RowsAreIndependent) {
  auto stored = bits(kK * kN);
  View b = testing::view(stored, DType::bf16, {kK, kN});
  for (std::string_view isa : isas()) {
    const CpuKernel* matmul = find_cpu_kernel("matmul", isa);
    std::vector<float> all = product(*matmul, b, 0), one_by_one;
    for (int64_t r = 0; r < kM; ++r)
      for (float y : product(*matmul, b, 0, r, 1)) one_by_one.push_back(y);
    EXPECT_TRUE(same(all, one_by_one)) << isa;
  }
}

// matmul_nbits.2: dequantizing first gives the same bits. Scales cover all exponents, so that every
// dequantization method is used.
TEST(MatmulNbits, IsMatmulOfDequantised) {
  constexpr int64_t kRows = 2, kDeep = 300, kColumns = 21, kBlock = 32, kGroups = 10;
  std::vector<float> a(kRows * kDeep), scales(kColumns * kGroups), wide(kColumns * kDeep);
  std::vector<uint8_t> q(kColumns * kGroups * kBlock), zeros(kColumns * kGroups);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = static_cast<float>(static_cast<int>(i * 7919 % 2003) - 1001) / 64;
  for (size_t i = 0; i < q.size(); ++i) q[i] = static_cast<uint8_t>(i * 40503 >> 4);
  for (size_t i = 0; i < zeros.size(); ++i) zeros[i] = static_cast<uint8_t>(i * 2654435761u >> 7);
  for (int64_t bits : {4, 8})
    for (uint32_t mask : {0xffffffffu, 0xffffe000u})  // scales of 24 bits and of 11
      for (uint32_t exponents : {8u, 128u}) {         // about 1, and down to subnormal
        for (uint32_t i = 0; i < scales.size(); ++i) {
          const uint32_t exponent = 127 - i * 7 % exponents;
          scales[i] = std::bit_cast<float>(((i * 2654435761u & 0x807fffffu) | exponent << 23) & mask);
        }
        std::vector<uint8_t> packed(q), packed_zeros(zeros);
        if (bits == 4) {
          packed.assign(q.size() / 2, 0), packed_zeros.assign(zeros.size() / 2, 0);
          for (size_t i = 0; i < q.size(); ++i)
            packed[i / 2] |= static_cast<uint8_t>((q[i] & 15) << i % 2 * 4);
          for (size_t i = 0; i < zeros.size(); ++i)
            packed_zeros[i / 2] |= static_cast<uint8_t>((zeros[i] & 15) << i % 2 * 4);
        }
        const int of = bits == 4 ? 15 : 255;
        for (int64_t j = 0; j < kColumns; ++j)
          for (int64_t k = 0; k < kDeep; ++k) {
            const auto g = static_cast<size_t>(j * kGroups + k / kBlock);
            const int d = (q[static_cast<size_t>(j * kGroups * kBlock + k)] & of) - (zeros[g] & of);
            wide[static_cast<size_t>(j * kDeep + k)] = num::canonicalize(static_cast<float>(d) * scales[g]);
          }
        for (std::string_view isa : isas()) {
          const CpuKernel *matmul = find_cpu_kernel("matmul", isa),
                          *nbits = find_cpu_kernel("matmul_nbits", isa);
          std::vector<float> expected(kRows * kColumns), y(kRows * kColumns, 1.0f);
          View out = testing::view(expected, DType::f32, {kRows, kColumns});
          View in[] = {testing::view(a, DType::f32, {kRows, kDeep}),
                       testing::view(wide, DType::f32, {kColumns, kDeep})};
          testing::run(*matmul, in, {&out, 1}, Attributes{{"trans_b", int64_t{1}}});
          out = testing::view(y, DType::f32, {kRows, kColumns});
          View from[] = {in[0], testing::view(packed, DType::u8, {kColumns, kGroups, kBlock * bits / 8}),
                         testing::view(scales, DType::f32, {kColumns, kGroups}),
                         testing::view(packed_zeros, DType::u8, {kColumns, kGroups * bits / 8})};
          testing::run(*nbits, from, {&out, 1},
                       Attributes{{"trans_b", int64_t{1}}, {"bits", bits}, {"block", kBlock}});
          EXPECT_EQ(std::memcmp(y.data(), expected.data(), y.size() * sizeof(float)), 0)
              << isa << ' ' << bits << ' ' << mask << ' ' << exponents;
        }
      }
}

// Products with blocks of a format equal those with their numbers.
TEST(MatmulOfBlocks, AreThoseOfTheNumbers) {
  constexpr int64_t kColumns = 37, kGroups = 2, kMost = 40;
  std::vector<float> a(kMost * 768);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i * 7919 % 2003) / 64 - 15.6f;
  const Attributes attrs{{"trans_b", int64_t{1}}};
  for (const weights::Format& f : weights::formats()) {
    if (!f.unpack) continue;
    const int64_t k = f.block == 256 ? 768 : 288, rows = kGroups * kColumns;
    std::vector<uint8_t> bytes(static_cast<size_t>(rows * k / f.block * f.bytes));
    std::vector<float> numbers(static_cast<size_t>(rows * k));
    uint64_t seed = 1;
    for (int64_t b = 0; b < rows * k / f.block; ++b)
      for (bool finite = false; !finite;) {
        uint8_t* const block = bytes.data() + b * f.bytes;
        for (int i = 0; i < f.bytes; ++i)
          block[i] = static_cast<uint8_t>((seed = seed * 6364136223846793005u + 1442695040888963407u) >> 56);
        f.unpack(block, numbers.data() + b * f.block);
        finite = std::all_of(numbers.begin() + b * f.block, numbers.begin() + (b + 1) * f.block,
                             [](float x) { return std::abs(x) < 1e30f; });
      }
    const weights::PackedRows blocks{&f, bytes.data(), k, k / f.block * f.bytes, rows, 0, 0};
    for (std::string_view isa : isas()) {
      const CpuKernel &matmul = *find_cpu_kernel("matmul", isa),
                      &grouped = *find_cpu_kernel("grouped_matmul", isa);
      const CpuKernel& gather = *find_cpu_kernel("gather", isa);
      if (isa == "reference") continue;
      const auto product = [&](const CpuKernel& kernel, std::vector<View> in, int64_t m, View b) {
        const int i = static_cast<int>(in.size());
        std::vector<std::max_align_t> memory(kernel.pack_bytes(b, i, attrs) / sizeof(std::max_align_t) + 5);
        void* const to = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
        kernel.pack(b, i, attrs, to), b.data = to, b.packed = true;
        in.push_back(b);
        std::vector<float> y(static_cast<size_t>(m * kColumns));
        View out = testing::view(y, DType::f32, {m, kColumns});
        testing::run(kernel, in, {&out, 1}, attrs);
        return y;
      };
      View plain = testing::view(numbers, DType::f32, {kColumns, k}), packed = plain;
      EXPECT_TRUE(reads_blocks(matmul, plain, 1, attrs) && !reads_blocks(matmul, plain, 0, attrs));
      packed.data = const_cast<weights::PackedRows*>(&blocks), packed.packed = true;
      for (const int64_t m : {1, 2, 3, 4, 7, 40}) {
        const View x = testing::view(a, DType::f32, {m, k});
        const auto expected = product(matmul, {x}, m, plain);
        EXPECT_EQ(std::memcmp(product(matmul, {x}, m, packed).data(), expected.data(), expected.size() * 4),
                  0)
            << isa << ' ' << f.name << ' ' << m;
      }
      View stack = testing::view(numbers, DType::f32, {kGroups, kColumns, k}), coded = stack;
      coded.data = packed.data, coded.packed = true;
      EXPECT_TRUE(reads_blocks(grouped, stack, 2, attrs));
      std::vector<int64_t> index = {1, 0, 1, 1, -2};
      const std::vector<View> in = {testing::view(a, DType::f32, {5, k}),
                                    testing::view(index, DType::i64, {5})};
      const auto expected = product(grouped, in, 5, stack);
      EXPECT_EQ(std::memcmp(product(grouped, in, 5, coded).data(), expected.data(), expected.size() * 4), 0)
          << isa << ' ' << f.name;
      View row[2];
      std::vector<float> got(static_cast<size_t>(3 * k)), wanted = got;
      std::vector<int64_t> some = {36, -37, 5};
      View y = testing::view(got, DType::f32, {3, k}), z = testing::view(wanted, DType::f32, {3, k});
      EXPECT_TRUE(reads_blocks(gather, plain, 0, {}));
      row[0] = packed, row[1] = testing::view(some, DType::i64, {3});
      testing::run(gather, row, {&y, 1});
      row[0] = plain;
      testing::run(gather, row, {&z, 1});
      EXPECT_EQ(std::memcmp(got.data(), wanted.data(), got.size() * 4), 0) << isa << ' ' << f.name;
    }
  }
}

// Tiles of codes are made where the rows of one matrix are columns of a product.
TEST(MatmulOfBlocks, AreTilesWhereRowsAreColumns) {
  const weights::Format& f = *weights::find_format(std::string_view("Q4_K"));
  weights::PackedRows rows{&f, nullptr, 512, 2 * f.bytes, 64};
  View b;
  b.dtype = DType::f32, b.rank = 2, b.dim[0] = 64, b.dim[1] = 512, b.data = &rows;
  const Attributes columns{{"trans_b", int64_t{1}}}, plain;
  EXPECT_FALSE(matmul::is_columns_in_tiles(b, 1, columns));
  b.packed = true;
  EXPECT_TRUE(matmul::is_columns_in_tiles(b, 1, columns));
  EXPECT_FALSE(matmul::is_columns_in_tiles(b, 0, columns) || matmul::is_columns_in_tiles(b, 1, plain));
  rows.turned = true;
  EXPECT_FALSE(matmul::is_columns_in_tiles(b, 1, columns));
  rows.turned = false, b.rank = 3, b.dim[2] = 512, b.dim[0] = 1, b.dim[1] = 64;
  EXPECT_FALSE(matmul::is_columns_in_tiles(b, 1, columns));
}

// The same for matrices whose codes, scales and zeros lie apart, also where their rows are the
// columns of a stack of B.
TEST(MatmulOfParts, AreThoseOfTheNumbers) {
  constexpr int64_t kGroups = 2, kColumns = 40, k = 384;
  std::vector<float> a(40 * k);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i * 7919 % 2003) / 64 - 15.6f;
  for (const bool turned : {false, true})
    for (const auto& [name, matrix, memory] :
         weights::testing::made_matrices(kGroups * kColumns, k, turned ? kGroups : 0)) {
      const Attributes attrs{{"trans_b", int64_t{!turned}}};
      std::vector<uint8_t> numbers(static_cast<size_t>(kGroups * kColumns * k) *
                                   weights::element_bytes(matrix.element()));
      ASSERT_EQ(matrix.elements(0, turned ? kGroups * k : kGroups * kColumns, numbers.data()), -1);
      const weights::Coding coding = *matrix.coding();
      weights::PackedRows rows;
      rows.numbers = k, rows.rows = kGroups * kColumns, rows.turned = turned;
      rows.matrix = &matrix, rows.coding = &coding;
      const std::string_view element = matrix.element();
      const DType dtype = element == "F32" ? DType::f32 : element == "F16" ? DType::f16 : DType::bf16;
      View plain = turned ? testing::view(numbers, dtype, {kGroups, k, kColumns})
                          : testing::view(numbers, dtype, {kGroups, kColumns, k});
      View packed = plain;
      packed.data = &rows, packed.packed = true;
      for (std::string_view isa : isas()) {
        if (isa == "reference") continue;
        const auto product = [&](const CpuKernel& kernel, std::vector<View> in, int64_t m, int64_t n,
                                 View b) {
          const int i = static_cast<int>(in.size());
          EXPECT_EQ(reads_blocks(kernel, b, i, attrs), b.packed || !turned) << name;
          std::vector<std::max_align_t> space(kernel.pack_bytes(b, i, attrs) / sizeof(std::max_align_t) + 5);
          void* const to =
              reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(space.data()) + 63) / 64 * 64);
          kernel.pack(b, i, attrs, to), b.data = to, b.packed = true;
          in.push_back(b);
          std::vector<float> y(static_cast<size_t>(m * n));
          View out = testing::view(y, DType::f32, {m, n});
          testing::run(kernel, in, {&out, 1}, attrs);
          return y;
        };
        const auto same = [&](const std::vector<float>& x, const std::vector<float>& y) {
          return std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
        };
        std::vector<int64_t> index = {1, 0, 1, 1, -2};
        const std::vector<View> in = {testing::view(a, DType::f32, {5, k}),
                                      testing::view(index, DType::i64, {5})};
        const CpuKernel& grouped = *find_cpu_kernel("grouped_matmul", isa);
        EXPECT_TRUE(same(product(grouped, in, 5, kColumns, packed), product(grouped, in, 5, kColumns, plain)))
            << isa << ' ' << name << ' ' << turned;
        if (turned) continue;
        const CpuKernel& matmul = *find_cpu_kernel("matmul", isa);
        for (const int64_t m : {1, 3, 40}) {
          View x = testing::view(a, DType::f32, {m, k}), b = plain, c = packed;
          for (View* v : {&b, &c}) v->rank = 2, v->dim[0] = kGroups * kColumns, v->dim[1] = k;
          EXPECT_TRUE(same(product(matmul, {x}, m, kGroups * kColumns, c),
                           product(matmul, {x}, m, kGroups * kColumns, b)))
              << isa << ' ' << name << ' ' << m;
        }
      }
    }
}

// Batched products with one A equal the products one by one, on every route that their shapes
// select.
TEST(MatmulOnDevice, AtOnceOrOneByOne) {
  const auto opened = Device::open();
  if (!opened) GTEST_SKIP() << "no GPU here: " << opened.error().message;
  Device& gpu = **opened;
  gpu.make_current();
  const GpuKernel& k = *find_gpu_kernel("matmul");
  const Attributes attrs{{"trans_b", int64_t{1}}};
  std::vector<void*> taken;
  auto take = [&](size_t bytes) {
    const auto p = gpu.allocate(bytes + 1, "a test");
    if (!p) throw std::runtime_error(p.error().message);
    taken.push_back(*p);
    return *p;
  };
  struct {
    int64_t m, k, n[3];
  } const cases[] = {{1, 513, {37, 100, 1}},         {64, 300, {96, 640, 33}},
                     {40, 2100, {3000, 500, 701}},   {64, 2100, {4096, 1024, 1030}},
                     {64, 513, {9000, 7001, 12000}}, {70, 300, {6000, 1024, 8000}}};
  for (const auto& c : cases) {
    std::vector<float> a(c.m * c.k);
    for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i * 7919 % 2003) - 1001.5f;
    View x{take(a.size() * 4), DType::f32, 2, false, {c.m, c.k}};
    ASSERT_TRUE(gpu.upload(x.data, a.data(), a.size() * 4));
    View in[3][2], out[3];
    Call calls[3];
    std::vector<const Call*> all;
    for (int p = 0; p < 3; ++p) {
      const auto stored = bits(c.n[p] * c.k + p);
      View b{take(stored.size() * 2), DType::bf16, 2, false, {c.n[p], c.k}};
      ASSERT_TRUE(gpu.upload(b.data, stored.data() + p, static_cast<size_t>(c.n[p] * c.k) * 2));
      void* const packed = take(k.pack_bytes(b, 1, attrs));
      k.enqueue_pack(b, 1, attrs, packed, gpu.stream());
      in[p][0] = x, in[p][1] = b, in[p][1].data = packed, in[p][1].packed = true;
      out[p] = {take(static_cast<size_t>(c.m * c.n[p]) * 4), DType::f32, 2, false, {c.m, c.n[p]}};
      calls[p].in = in[p], calls[p].out = {&out[p], 1}, calls[p].attrs = &attrs;
      all.push_back(&calls[p]);
    }
    size_t shared = k.shared_bytes_batch(all);
    for (const Call& call : calls) shared = std::max(shared, k.shared_bytes(call));
    void* const memory = take(shared);
    for (Call& call : calls) call.shared = memory;
    std::vector<float> result[2];
    for (int together : {0, 1}) {
      for (const View& y : out) ASSERT_TRUE(gpu.fill(y.data, 0xff, static_cast<size_t>(y.elements()) * 4));
      if (together)
        k.enqueue_batch(all, gpu.stream());
      else
        for (const Call* call : all) k.enqueue(*call, gpu.stream());
      for (const View& y : out) {
        std::vector<float> here(static_cast<size_t>(y.elements()));
        ASSERT_TRUE(gpu.download(here.data(), y.data, here.size() * 4));
        ASSERT_TRUE(gpu.wait());
        result[together].insert(result[together].end(), here.begin(), here.end());
      }
    }
    EXPECT_EQ(std::memcmp(result[0].data(), result[1].data(), result[0].size() * 4), 0)
        << c.m << " x " << c.k;
  }
  for (void* p : taken) gpu.free(p);
}

// cmake/isa.cmake: an extension has rows of the operations that gain; the set's rows do the others.
TEST(Extensions, HaveTheRowsOfTheirSet) {
  for (const CpuKernel* k : cpu_kernels()) {
    const size_t base = k->isa.find('_');
    if (base == k->isa.npos) continue;
    const bool runs = find_cpu_kernel(k->op, k->isa) != nullptr;
    const CpuKernel* const other = find_cpu_kernel("matmul", k->isa);
    ASSERT_EQ(other != nullptr, runs) << k->isa;
    if (!runs) continue;
    EXPECT_EQ(find_cpu_kernel(k->op, k->isa), k);
    EXPECT_EQ(other->isa, k->isa.substr(0, base));
    EXPECT_NE(find_cpu_kernel(k->op, other->isa), k);
  }
}

}  // namespace
}  // namespace invar::ops
