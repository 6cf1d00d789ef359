// matmul_integer on tensor cores (integer/gemm_hopper.cuh for Hopper, integer/tensor_cores.cuh), or
// without them by tiles: dp4a, four products of bytes at a time. There bytes are made signed
// (unsigned ones less 128, and their zero points alike), and (a - za)(b - zb) is summed as ab - za
// b - zb a + za zb, all modulo 2^32 (matmul_integer.2).
#include "kernels/cuda/hopper.cuh"
#include "ops/matmul/cuda/gemm.cuh"
#include "ops/matmul/cuda/integer/hopper.h"
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

void enqueue_tiles(const Call& call, const Shape& s, Stream stream) {
  const View &a = call.in[0], &b = call.in[1];
  const int64_t bytes = s.k;
  auto* out = call.out[0].as<int32_t>();
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

// B for tensor cores: the columns of all matrices, ld bytes each, then their sums.
struct TurnedBytes {
  int64_t k, n, matrices, ld;
  size_t bytes() const { return static_cast<size_t>(columns() * (ld + 4)); }
  int64_t columns() const { return matrices * n; }
};
TurnedBytes turned_bytes(const View& b) {
  const int64_t n = last_dim(b), k = b.dim[b.rank - 2];
  return {k, n, n && k ? b.elements() / n / k : 0, ceil_div(k, 16) * 16};
}
int32_t* sums_of(const TurnedBytes& t, void* memory) {
  return reinterpret_cast<int32_t*>(static_cast<uint8_t*>(memory) + t.columns() * t.ld);
}
void enqueue_sums(const uint8_t* p, int64_t rows, int64_t ld, bool is_signed, int32_t* sums, Stream stream) {
  constexpr int kThreads = 256;
  launch_dependent(byte_sums_kernel, dim3(grid_for(ceil_div(rows, kThreads / kWarp))), dim3(kThreads), 0,
                   stream, p, rows, ld, is_signed, sums);
}
void enqueue_turn_bytes(const View& b, void* memory, Stream stream) {
  const TurnedBytes t = turned_bytes(b);
  auto* const to = static_cast<uint8_t*>(memory);
  launch_dependent(turn_bytes_kernel,
                   dim3(grid_for(t.matrices * ceil_div(t.ld, kTurnBytes) * ceil_div(t.n, kTurnBytes))),
                   dim3(256), 0, stream, b.as<const uint8_t>(), t.matrices, t.k, t.n, t.ld,
                   static_cast<uint8_t>(flip(b)), to);
  enqueue_sums(to, t.columns(), t.ld, true, sums_of(t, memory), stream);
}

// Call::shared: the sums of rows of a, a copy of a whose rows are whole pieces, b if it is not
// packed.
struct ByteParts {
  size_t a, b, end;
};
ByteParts parts_of(const Call& call) {
  auto whole = [](int64_t bytes) { return static_cast<size_t>((bytes + 255) / 256 * 256); };
  const TurnedBytes b = turned_bytes(call.in[1]);
  const int64_t rows = row_count(call.in[0]);
  const size_t a = whole(rows * 4), end_a = a + whole(rows * b.ld);
  return {a, end_a, end_a + (call.in[1].packed ? 0 : b.bytes())};
}
ByteZeros zeros_of(const Call& call, size_t operand, int32_t moved) {
  const bool is_signed = call.in[operand - 2].dtype == DType::i8;
  if (call.in.size() <= operand) return {nullptr, true, is_signed, moved};
  const View& z = call.in[operand];
  return {z.as<const uint8_t>(), z.elements() == 1, is_signed, moved};
}

#ifdef INVAR_SM90A
// Tiles that fill most of the machine, or `forced` is 4.
bool takes_hopper(const Shape& s, int forced) {
  const int64_t tiles = ceil_div(s.m, 128) * ceil_div(s.n, 256) * s.batches, most = multiprocessors();
  return has_hopper() && tiles < INT32_MAX && (forced ? forced == 4 : 3 * tiles >= 2 * most);
}
#endif

void enqueue_tensor_cores(const Call& call, const Shape& s, Stream stream) {
  const View &a = call.in[0], &b = call.in[1];
  const TurnedBytes t = turned_bytes(b);
  const ByteParts at = parts_of(call);
  auto* const shared = static_cast<uint8_t*>(call.shared);
  const int64_t rows = row_count(a);
  ByteProducts in{};
  in.s = s, in.out = call.out[0].as<int32_t>();
  in.a = a.as<const uint8_t>(), in.ld_a = in.ld_b = t.ld;
  in.rows_a = a.rank < 2 ? 1 : a.dim[a.rank - 2];
  in.zero_a = zeros_of(call, 2, 0), in.zero_b = zeros_of(call, 3, b.dtype == DType::u8 ? 128 : 0);
  if (t.ld != s.k || reinterpret_cast<uintptr_t>(in.a) % 16) {
    launch_dependent(pad_rows_kernel, dim3(grid_for(ceil_div(rows * t.ld, 256))), dim3(256), 0, stream, in.a,
                     rows, s.k, t.ld, shared + at.a);
    in.a = shared + at.a;
  }
  void* of_b = b.data;
  if (!b.packed) enqueue_turn_bytes(b, of_b = shared + at.b, stream);
  in.b = static_cast<const uint8_t*>(of_b);
  if (in.zero_a.p) in.sum_b = sums_of(t, of_b);
  if (in.zero_b.p || in.zero_b.moved) {
    auto* const sums = reinterpret_cast<int32_t*>(shared);
    enqueue_sums(in.a, rows, t.ld, a.dtype == DType::i8, sums, stream);
    in.sum_a = sums;
  }
  const int forced = variant() % 5;
#ifdef INVAR_SM90A
  in.splits = 1;
  if (takes_hopper(s, forced) &&
      enqueue_byte_gemm_hopper(in, a.dtype == DType::u8, rows, t.columns(), stream))
    return;
#endif
  enqueue_byte_products(in, a.dtype == DType::u8, forced % 4, stream);
}

size_t shared_bytes(const Call& call) {
  if (call.out[0].elements() == 0 || last_dim(call.in[0]) == 0 || !has_tensor_cores()) return 0;
  return parts_of(call).end;
}
void enqueue(const Call& call, Stream stream) {
  const Shape s = matmul::shape(call.in[0], call.in[1], call.out[0], false, false);
  auto* out = call.out[0].as<int32_t>();
  if (call.out[0].elements() == 0) return;
  if (s.k == 0)
    return launch_for_each(stream, s.batches * s.m * s.n, [=] __device__(int64_t i) { out[i] = 0; });
  if (has_tensor_cores()) return enqueue_tensor_cores(call, s, stream);
  enqueue_tiles(call, s, stream);
}

size_t pack_bytes(const View& v, int i, const Attributes&) {
  if (i != 1) return 0;
  const TurnedBytes t = turned_bytes(v);
  if (has_tensor_cores()) return t.bytes();
  return static_cast<size_t>(t.matrices * packed_words(t.n, ceil_div(t.k, 4))) * sizeof(uint32_t);
}
void enqueue_pack(const View& v, int, const Attributes&, void* packed, Stream stream) {
  if (v.elements() == 0) return;
  if (has_tensor_cores()) return enqueue_turn_bytes(v, packed, stream);
  const TurnedBytes t = turned_bytes(v);
  ReaderBytes reader{v.as<const uint8_t>(), t.n, t.k, flip(v)};
  for (int64_t m = 0; m < t.matrices; ++m, reader.advance(t.k * t.n))
    enqueue_pack_words(reader, t.n, ceil_div(t.k, 4),
                       static_cast<uint32_t*>(packed) + m * packed_words(t.n, ceil_div(t.k, 4)), stream);
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW_OF(matmul_integer);
const GpuKernel INVAR_ROW_OF(matmul_integer) = {.op = "matmul_integer",
                                                .isa = INVAR_ISA,
                                                .shared_bytes = INVAR_ISA_NS::shared_bytes,
                                                .pack_bytes = INVAR_ISA_NS::pack_bytes,
                                                .enqueue = INVAR_ISA_NS::enqueue,
                                                .enqueue_pack = INVAR_ISA_NS::enqueue_pack};

}  // namespace invar::ops
