// matmul_integer by tiles: dp4a, four products of bytes at a time. Bytes are made signed (unsigned
// ones less 128, and their zero points alike), and (a - za)(b - zb) is summed as ab - za b - zb a +
// za zb, all modulo 2^32 (matmul_integer.2).
#include "ops/matmul/cuda/gemm.cuh"
#include "ops/matmul/cuda/select_kernel.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

using Large = TileShape<64, 64, 8, 4, 2>;
using Small = TileShape<32, 64, 4, 4, 4>;

// Bytes [k, k + 4) in a word, signed; 0 from `end` on.
__device__ inline uint32_t four_bytes(const uint8_t* p, int64_t step, int64_t k, int64_t end, uint32_t flip) {
  uint32_t w = 0;
  for (int i = 0; i < 4; ++i)
    if (k + i < end) w |= static_cast<uint32_t>(p[(k + i) * step] ^ flip) << 8 * i;
  return w;
}

// b by words of four k. To the tile a word is one step of k.
struct ReaderBytes {
  static constexpr int kPerWord = 1;
  static constexpr bool kScaled = false;
  using Word = uint32_t;
  using Quad = uint4;
  using GroupParams = int;
  const uint8_t* p;
  int64_t n, k;
  uint32_t flip;
  __host__ __device__ void advance(int64_t elements) { p += elements; }
  __device__ uint32_t read_word(int64_t w, int64_t j, int64_t) const {
    return four_bytes(p + j, n, 4 * w, k, flip);
  }
  __device__ GroupParams group_params(int64_t, int64_t, int64_t) const { return 0; }
  __device__ Quad dequantize(const uint4& w, GroupParams, int) const { return w; }
};

// a by words of four k.
struct ByteRows {
  using Word = uint32_t;
  const uint8_t* p;
  int64_t outer, bytes;  // of a row
  uint32_t flip;
  __host__ __device__ void advance(int64_t elements, int64_t) { p += elements; }

  // Four words of a row at a time.
  template <int kTile, int kDepth, int kThreads>
  struct Loader {
    static constexpr int kAll = kTile * kDepth / 4, kPieces = (kAll + kThreads - 1) / kThreads;
    const uint8_t* p;
    int64_t outer, bytes, first;
    uint32_t flip;
    bool wide;
    uint4 piece[kPieces];
    __device__ int outer_of(int i) const { return (threadIdx.x + i * kThreads) % kTile; }
    __device__ int down_of(int i) const { return (threadIdx.x + i * kThreads) / kTile * 4; }
    __device__ bool has(int i) const { return kAll % kThreads == 0 || threadIdx.x + i * kThreads < kAll; }
    __device__ void init(const ByteRows& source, int64_t first_row, int) {
      p = source.p, outer = source.outer, bytes = source.bytes, flip = source.flip, first = first_row;
      wide = reinterpret_cast<uintptr_t>(p) % 16 == 0 && bytes % 16 == 0;
    }
    template <bool kInterior>
    __device__ void load_async(Word*, int k) {
      INVAR_UNROLL
      for (int i = 0; i < kPieces; ++i) {
        if (!has(i)) continue;
        const int64_t o = first + outer_of(i), at = 4 * (int64_t{k} + down_of(i));
        const uint8_t* row = p + o * bytes;
        piece[i] = {};
        if (o >= outer || at >= bytes) continue;
        if (wide) {
          const uint32_t flips = flip * 0x01010101u;
          const uint4 x = __ldg(reinterpret_cast<const uint4*>(row + at));
          piece[i] = {x.x ^ flips, x.y ^ flips, x.z ^ flips, x.w ^ flips};
        } else {
          piece[i] = {four_bytes(row, 1, at, bytes, flip), four_bytes(row, 1, at + 4, bytes, flip),
                      four_bytes(row, 1, at + 8, bytes, flip), four_bytes(row, 1, at + 12, bytes, flip)};
        }
      }
    }
    __device__ void store_smem(Word* tile) {
      constexpr int kRow = kTile + kPad;
      INVAR_UNROLL
      for (int i = 0; i < kPieces; ++i) {
        if (!has(i)) continue;
        Word* to = tile + down_of(i) * kRow + outer_of(i);
        to[0] = piece[i].x, to[kRow] = piece[i].y, to[2 * kRow] = piece[i].z, to[3 * kRow] = piece[i].w;
      }
    }
  };
};

struct IntegerSum {
  int products, a, b;
};
// Integer sums are exact, so there are no chains: the products, the row sums of a and the column
// sums of b.
template <int kThreadRows, int kThreadColumns>
struct IntegerSums {
  static constexpr int64_t kChain = int64_t{1} << 40;
  using Word = uint32_t;
  using Sum = IntegerSum;
  int products[kThreadRows * kThreadColumns], of_a[kThreadRows], of_b[kThreadColumns];
  __device__ void open() {
    INVAR_UNROLL
    for (int i = 0; i < kThreadRows * kThreadColumns; ++i) products[i] = 0;
    INVAR_UNROLL
    for (int i = 0; i < kThreadRows; ++i) of_a[i] = 0;
    INVAR_UNROLL
    for (int i = 0; i < kThreadColumns; ++i) of_b[i] = 0;
  }
  __device__ void add_products(const uint32_t (&a)[kThreadRows], const uint32_t (&b)[kThreadColumns]) {
    constexpr int kOnes = 0x01010101;
    auto dot = [](uint32_t x, int y, int& sum) { sum = __dp4a(static_cast<int>(x), y, sum); };
    INVAR_UNROLL
    for (int r = 0; r < kThreadRows; ++r) dot(a[r], kOnes, of_a[r]);
    INVAR_UNROLL
    for (int c = 0; c < kThreadColumns; ++c) dot(b[c], kOnes, of_b[c]);
    INVAR_UNROLL
    for (int r = 0; r < kThreadRows; ++r) INVAR_UNROLL
    for (int c = 0; c < kThreadColumns; ++c)
      dot(a[r], static_cast<int>(b[c]), products[r * kThreadColumns + c]);
  }
  template <class T>
  __device__ void close(int, const GemmProblem&, const SumLevels<T>&) {}
  __device__ Sum result(int r, int c) const { return {products[r * kThreadColumns + c], of_a[r], of_b[c]}; }
};

// Zero points: one for each row or column, one for all, or none.
struct ZeroPoints {
  const uint8_t* p;
  bool one, is_signed;
  __device__ uint32_t at(int64_t i) const {  // for the signed bytes
    const int z = p ? p[one ? 0 : i] : 0;
    return static_cast<uint32_t>(is_signed ? static_cast<int8_t>(z) : z - 128);
  }
};

struct I32Out {
  int32_t* to;
  ZeroPoints a, b;
  int64_t rows, k;  // rows of one matrix of a, of which a product may have several; K in bytes
  using Element = int32_t;
  __device__ int32_t* matrix(const GemmProblem& job, int64_t, int64_t batch) const {
    return to + batch * job.s.m * job.s.n;
  }
  __device__ void store(const GemmProblem& job, int32_t* at, int64_t i, int64_t j,
                        const IntegerSum (&y)[4]) const {
    const uint32_t za = a.at(i % rows);
    INVAR_UNROLL
    for (int e = 0; e < 4; ++e) {
      if (j + e >= job.s.n) break;
      const uint32_t zb = b.at(j + e);
      at[e] = static_cast<int32_t>(static_cast<uint32_t>(y[e].products) - za * static_cast<uint32_t>(y[e].b) -
                                   zb * static_cast<uint32_t>(y[e].a) + za * zb * static_cast<uint32_t>(k));
    }
  }
};

uint32_t flip(const View& v) {
  return v.dtype == DType::u8 ? 0x80 : 0;
}
ZeroPoints zeros(const Call& call, size_t operand) {
  const bool is_signed = call.in[operand - 2].dtype == DType::i8;
  if (call.in.size() <= operand) return {nullptr, true, is_signed};
  const View& z = call.in[operand];
  return {z.as<const uint8_t>(), z.elements() == 1, is_signed};
}

void enqueue(const Call& call, Stream stream) {
  const View &a = call.in[0], &b = call.in[1];
  const Shape s = matmul::shape(a, b, call.out[0], false, false);
  const int64_t bytes = s.k;
  auto* out = call.out[0].as<int32_t>();
  if (bytes == 0)
    return launch_for_each(stream, s.batches * s.m * s.n, [=] __device__(int64_t i) { out[i] = 0; });
  const I32Out to{out, zeros(call, 2), zeros(call, 3), a.rank < 2 ? 1 : a.dim[a.rank - 2], bytes};
  const int64_t words = ceil_div(bytes, 4);
  const ByteRows left{a.as<const uint8_t>(), s.m, bytes, flip(a)};
  const ReaderBytes of_b{b.as<const uint8_t>(), s.n, bytes, flip(b)};
  auto with = [&]<class T>(T, const auto& right) {
    using B = std::decay_t<decltype(right)>;
    const GemmProblem job{s, words, ceil_div(s.m, T::kRows), ceil_div(s.n, T::kColumns), 1, 1};
    const GroupedGemm<B, I32Out, 1> product{1, job.columns, {0}, {job}, {right}, {to}};
    const int64_t most = int64_t{T::kPerMultiprocessor} * multiprocessors();
    const int64_t blocks = product.items() < most ? product.items() : most;
    launch(gemm_kernel<T, IntegerSums<T::kThreadRows, T::kThreadColumns>, ByteRows, B, I32Out, 1>,
           dim3(static_cast<unsigned>(blocks)), dim3(T::kThreads), T::kStageBytes, stream, product, left,
           nullptr, 0);
  };
  auto sized = [&](const auto& right) {
    const bool large = matmul::tiles_of(s, {Large::kRows, Large::kColumns, 0}) >= multiprocessors();
    if (variant() ? variant() % 2 : large)
      with(Large{}, right);
    else
      with(Small{}, right);
  };
  if (b.packed)
    sized(WeightColumns<ReaderBytes, true>{of_b, b.as<const uint32_t>(), s.n, words, words});
  else
    sized(WeightColumns<ReaderBytes, false>{of_b, nullptr, s.n, words, words});
}

size_t pack_bytes(const View& v, int i, const Attributes&) {
  if (i != 1) return 0;
  const int64_t n = last_dim(v), k = v.dim[v.rank - 2], matrices = n && k ? v.elements() / n / k : 0;
  return static_cast<size_t>(matrices * packed_words(n, ceil_div(k, 4))) * sizeof(uint32_t);
}
void enqueue_pack(const View& v, int, const Attributes&, void* packed, Stream stream) {
  const int64_t n = last_dim(v), k = v.dim[v.rank - 2], matrices = n && k ? v.elements() / n / k : 0;
  ReaderBytes reader{v.as<const uint8_t>(), n, k, flip(v)};
  for (int64_t m = 0; m < matrices; ++m, reader.advance(k * n))
    enqueue_pack_words(reader, n, ceil_div(k, 4),
                       static_cast<uint32_t*>(packed) + m * packed_words(n, ceil_div(k, 4)), stream);
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW_OF(matmul_integer);
const GpuKernel INVAR_ROW_OF(matmul_integer) = {.op = "matmul_integer",
                                                .isa = INVAR_ISA,
                                                .pack_bytes = INVAR_ISA_NS::pack_bytes,
                                                .enqueue = INVAR_ISA_NS::enqueue,
                                                .enqueue_pack = INVAR_ISA_NS::enqueue_pack};

}  // namespace invar::ops
