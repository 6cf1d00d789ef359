// matmul on a GPU: packed weights and values, by tiles or by rows. Free by matmul.3.
#include "num/contract/binary64.h"
#include "ops/matmul/cuda/float_b.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

Shape shape(const Call& c) {
  return matmul::shape(c.in[0], c.in[1], c.out[0], attr_i(c, "trans_a", 0) != 0,
                       attr_i(c, "trans_b", 0) != 0);
}
Choice choice(const Shape& s, const View& b) {
  return matmul::choose(s, fits_rows(s, b.packed), processors(), variant());
}
// matmul.5: a thread for each element of the result.
__global__ void binary64_kernel(Shape s, const double* a, const double* b, double* out) {
  const int64_t n = s.batches * s.m * s.n, step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < n; at += step) {
    const int64_t row = at / s.n, j = at % s.n, i = row % s.m;
    const matmul::Offsets from = matmul::offsets(s, row / s.m);
    const double *left = a + from.a + (s.trans_a ? i : i * s.k),
                 *right = b + from.b + (s.trans_b ? j * s.k : j);
    const int64_t step_a = s.trans_a ? s.m : 1, step_b = s.trans_b ? 1 : s.n;
    num::INVAR_ISA_NS::contract64<1>(
        s.k, 1, [=](int64_t k) { return left[k * step_a]; },
        [=](int64_t k, int) { return right[k * step_b]; }, out + at);
  }
}
void enqueue_binary64(const Call& call, const Shape& s, Stream stream) {
  constexpr int kThreads = 256;
  const int64_t n = s.batches * s.m * s.n;
  if (n)
    launch(binary64_kernel, dim3(grid_for(ceil_div(n, kThreads))), dim3(kThreads), 0, stream, s,
           call.in[0].as<const double>(), call.in[1].as<const double>(), call.out[0].as<double>());
}

size_t shared_bytes(const Call& call) {
  if (call.in[0].dtype == DType::f64) return 0;
  const Shape s = shape(call);
  return workspace(s, choice(s, call.in[1]));
}

// Rows of words of a matrix of b.
int64_t word_rows(const Shape& s, DType t) {
  return t == DType::f32 ? s.k : ceil_div(s.k, 2);
}

template <class Words>
Columns4<Words, true> columns(const Shape& s, const View& b, const Words& words) {
  return {words, b.as<const uint32_t>(), s.n, s.k, word_rows(s, b.dtype)};
}

void enqueue(const Call& call, Stream stream) {
  const Shape s = shape(call);
  if (call.in[0].dtype == DType::f64) return enqueue_binary64(call, s, stream);
  const View& b = call.in[1];
  const auto* a = call.in[0].as<const float>();
  auto* out = call.out[0].as<float>();
  if (enqueue_zeros(s, out, stream)) return;
  const Choice c = choice(s, b);
  auto product = [&]<bool kLarge>(const auto& source, std::bool_constant<kLarge>) {
    enqueue_product<kLarge>(s, c, a, source, out, call.shared, stream);
  };
  constexpr std::true_type kFast{};
  constexpr std::false_type kRare{};
  if (!b.packed && b.dtype == DType::f32) {
    const auto* p = b.as<const float>();
    if (s.trans_b) return product(AlongK{p, s.k, s.n, s.k}, kFast);
    if (s.n % 4 == 0 && reinterpret_cast<uintptr_t>(p) % 16 == 0)
      return product(AlongOuter<true>{p, s.n, s.n, s.k}, kFast);
    return product(AlongOuter<false>{p, s.n, s.n, s.k}, kRare);
  }
  const Strides strides = s.trans_b ? Strides{1, s.k} : Strides{s.n, 1};
  const auto* packed = b.as<const uint32_t>();
  const int64_t rows = word_rows(s, b.dtype);
  with_words(b.dtype, b.data, strides, [&](auto words) {
    using Words = decltype(words);
    if (c.route == Route::few_rows)
      return enqueue_rows(Rows{a, packed, out, s.m, s.n, s.k, rows}, words, stream);
    if (b.packed) return product(columns(s, b, words), kFast);
    if constexpr (Words::kDeep > 1) product(Columns4<Words, false>{words, nullptr, s.n, s.k, rows}, kRare);
  });
}

// How products are made that could be made at once: of packed weights of one format, by rows, each of its own a, or in large
// tiles, all of one a.
struct Together {
  enum Way { apart, rows, tiles } way;
  Shape shapes[kMostProducts];
  Choice choice;  // of tiles
};
Together together(std::span<const Call* const> calls) {
  Together t{};
  if (calls.size() > kMostProducts) return t;
  const View& b = calls[0]->in[1];
  bool alike = true, one_a = true;
  Shape all{};
  for (size_t i = 0; i < calls.size(); ++i) {
    const Shape& s = t.shapes[i] = shape(*calls[i]);
    alike &= calls[i]->in[1].packed && calls[i]->in[1].dtype == b.dtype && s.m == t.shapes[0].m &&
             s.k == t.shapes[0].k && s.k > 0 && s.batches == 1 && !s.trans_a;
    one_a &= calls[i]->in[0].data == calls[0]->in[0].data;
    if (i == 0)
      all = s;
    else
      all.n += s.n;
  }
  if (!alike) return t;
  t.choice = choice(all, b);
  if (t.choice.route == Route::few_rows)
    t.way = Together::rows;
  else if (one_a && is_large(t.choice))
    t.way = Together::tiles;
  return t;
}
size_t shared_bytes_all(std::span<const Call* const> calls) {
  const Together t = together(calls);
  if (t.way != Together::tiles) {
    size_t most = 0;
    for (const Call* c : calls) most = std::max(most, shared_bytes(*c));
    return most;
  }
  Shape all = t.shapes[0];  // whose tiles are as many as those of all at least
  for (size_t i = 1; i < calls.size(); ++i)
    all.n = ceil_div(all.n, Large::kColumns) * Large::kColumns + t.shapes[i].n;
  return workspace_of<Large>(all, t.choice);
}

void enqueue_all(std::span<const Call* const> calls, Stream stream) {
  const Together how = together(calls);
  if (how.way == Together::apart) {
    for (const Call* c : calls) enqueue(*c, stream);
    return;
  }
  const View& b = calls[0]->in[1];
  with_words(b.dtype, b.data, Strides{}, [&](auto words) {
    using Words = decltype(words);
    if (how.way == Together::tiles) {
      Columns4<Words, true> of_b[kMostProducts] = {columns(how.shapes[0], b, words)};
      float* out[kMostProducts] = {};
      for (size_t i = 0; i < calls.size(); ++i)
        of_b[i] = columns(how.shapes[i], calls[i]->in[1], words), out[i] = calls[i]->out[0].as<float>();
      const Shape& s = how.shapes[0];
      enqueue_tiles<Large, kMostProducts>({how.shapes, calls.size()}, how.choice,
                                          AlongK{calls[0]->in[0].as<const float>(), s.k, s.m, s.k}, of_b, out,
                                          calls[0]->shared, stream);
      return;
    }
    Products<Words> products{};
    for (const Call* c : calls) {
      const Shape t = shape(*c);
      products.words[products.count] = words;  // whose place in memory says nothing once they are packed
      products.rows[products.count++] = {
          c->in[0].as<const float>(), c->in[1].as<const uint32_t>(), c->out[0].as<float>(), t.m, t.n, t.k,
          word_rows(t, b.dtype)};
    }
    enqueue_rows(products, stream);
  });
}

// A constant b: its matrices one after another, as words.cuh says.
Shape matrix(const View& b, const Attrs& attrs) {
  Shape s{};
  s.trans_b = attr_i(attrs, "trans_b", 0) != 0;
  s.k = b.dim[b.rank - (s.trans_b ? 1 : 2)], s.n = b.dim[b.rank - (s.trans_b ? 2 : 1)];
  s.matrices_b = 1;
  for (int i = 0; i + 2 < b.rank; ++i) s.matrices_b *= b.dim[i];
  return s;
}
size_t pack_bytes(const View& b, int i, const Attrs& attrs) {
  if (i != 1 || b.dtype == DType::f64) return 0;
  const Shape s = matrix(b, attrs);
  return static_cast<size_t>(s.matrices_b * packed_words(s.n, word_rows(s, b.dtype))) * sizeof(uint32_t);
}
void enqueue_pack(const View& b, int, const Attrs& attrs, void* packed, Stream stream) {
  const Shape s = matrix(b, attrs);
  auto* to = static_cast<uint32_t*>(packed);
  with_words(b.dtype, b.data, s.trans_b ? Strides{1, s.k} : Strides{s.n, 1}, [&](auto words) {
    for (int64_t i = 0; i < s.matrices_b; ++i, words.move(s.k * s.n))
      enqueue_words(words, s.n, s.k, to + i * packed_words(s.n, word_rows(s, b.dtype)), stream);
  });
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const Kernel INVAR_ROW_OF(matmul);
const Kernel INVAR_ROW_OF(matmul) = {.op = "matmul",
                                     .isa = INVAR_ISA,
                                     .shared_bytes = INVAR_ISA_NS::shared_bytes,
                                     .pack_bytes = INVAR_ISA_NS::pack_bytes,
                                     .enqueue = INVAR_ISA_NS::enqueue,
                                     .enqueue_all = INVAR_ISA_NS::enqueue_all,
                                     .enqueue_pack = INVAR_ISA_NS::enqueue_pack,
                                     .shared_bytes_all = INVAR_ISA_NS::shared_bytes_all};

}  // namespace invar::ops
