// matmul_nbits by tiles or GEMV: words of integers are dequantised on their way to the tile or in
// registers.
#include "ops/matmul/cuda/float_b.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

Shape shape(const Call& c) {
  Shape s{};
  s.m = row_count(c.in[0]), s.n = last_dim(c.out[0]), s.k = last_dim(c.in[0]);
  s.batches = s.matrices_b = 1;
  return s;
}
KernelChoice choose_kernel(const Shape& s, const View& b) {
  return matmul::select_kernel(s, fits_gemv(s, b.packed), multiprocessors(), variant());
}
size_t shared_bytes(const Call& call) {
  const Shape s = shape(call);
  return workspace(s, choose_kernel(s, call.in[1]));
}

// Rows of words by b's own K, which may be rounded up to whole blocks.
int64_t word_rows(const matmul::Nbits& l) {
  return ceil_div(l.k, 32 / l.bits);
}

template <int kBits>
ReaderNbits<kBits> reader_of(const matmul::Nbits& l, const View& b, std::span<const View> in) {
  ReaderNbits<kBits> w{l, b};
  if (in.size() > 2) w.scales = in[2].data, w.format = in[2].dtype, w.one_scale = in[2].elements() == 1;
  if (in.size() > 3) w.zeros = in[3].as<const uint8_t>(), w.one_zero = in[3].elements() == 1;
  return w;
}

void enqueue(const Call& call, Stream stream) {
  const Shape s = shape(call);
  const View& b = call.in[1];
  const auto* a = call.in[0].as<const float>();
  auto* out = call.out[0].as<float>();
  if (enqueue_zeros(s, out, stream)) return;
  const KernelChoice c = choose_kernel(s, b);
  const matmul::Nbits l = matmul::nbits(call);
  const auto* packed = b.as<const uint32_t>();
  const int64_t rows = word_rows(matmul::nbits(b, *call.attrs));
  auto with = [&](const auto& w) {
    using Reader = std::decay_t<decltype(w)>;
    if (c.route == Route::gemv)
      return enqueue_gemv(GemvProblem{a, packed, out, s.m, s.n, s.k, rows}, w, stream);
    if (b.packed)
      return enqueue_product<true>(s, c, a, WeightColumns<Reader, true>{w, packed, s.n, s.k, rows}, out,
                                   call.shared, stream);
    enqueue_product<false>(s, c, a, WeightColumns<Reader, false>{w, nullptr, s.n, s.k, rows}, out,
                           call.shared, stream);
  };
  if (l.bits == 4)
    with(reader_of<4>(l, b, call.in));
  else
    with(reader_of<8>(l, b, call.in));
}

size_t pack_bytes(const View& b, int i, const Attributes& attrs) {
  if (i != 1) return 0;
  const matmul::Nbits l = matmul::nbits(b, attrs);
  return static_cast<size_t>(packed_words(l.n, word_rows(l))) * sizeof(uint32_t);
}
void enqueue_pack(const View& b, int, const Attributes& attrs, void* packed, Stream stream) {
  const matmul::Nbits l = matmul::nbits(b, attrs);
  auto* to = static_cast<uint32_t*>(packed);
  if (l.bits == 4)
    enqueue_pack_words(reader_of<4>(l, b, {}), l.n, l.k, to, stream);
  else
    enqueue_pack_words(reader_of<8>(l, b, {}), l.n, l.k, to, stream);
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW_OF(matmul_nbits);
const GpuKernel INVAR_ROW_OF(matmul_nbits) = {.op = "matmul_nbits",
                                              .isa = INVAR_ISA,
                                              .shared_bytes = INVAR_ISA_NS::shared_bytes,
                                              .pack_bytes = INVAR_ISA_NS::pack_bytes,
                                              .enqueue = INVAR_ISA_NS::enqueue,
                                              .enqueue_pack = INVAR_ISA_NS::enqueue_pack};

}  // namespace invar::ops
