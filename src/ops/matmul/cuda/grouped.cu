// grouped_matmul: few rows by GEMV, each with the matrix that its index chooses; more by GEMV or by
// tiles whose rows choose one matrix, after a kernel has sorted them. The choice is free by
// grouped_matmul.3.
#include "ops/matmul/cuda/grouped/sorted_rows.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// Products whose rows choose their matrices by one index, as gemv_kernel takes them.
template <class Reader>
struct ChoosingGemv {
  int count, passes;
  unsigned end[kMaxProducts];
  GemvProblem problem[kMaxProducts];
  Reader reader[kMaxProducts];
  int64_t share, groups;
};
// Rows as they come, each with its matrix.
template <class Reader>
struct IndexedGemv : ChoosingGemv<Reader> {
  const int64_t* index;
  uint32_t* fault;
  MatrixTable matrices;
};
// Rows that are sorted by their matrices.
template <class Reader>
struct SortedGemv : ChoosingGemv<Reader> {
  Sorted sorted;
};

// Which kernel: GEMV of single rows while most matrices meet one, then of blocks of sorted rows;
// tiles where there are more, or where the matrices are not packed. On an H100, 128 matrices of
// 768 x 2048 bf16: rows take 93 us for 128 rows where blocks of 4 take 95, 140 and 130 for 256;
// blocks of 4 take 147 us for 512 rows where blocks of 8 take 150, 184 and 174 for 1024.
enum class GroupedRoute { automatic, rows, small, large, sorted_4, sorted_8 };
constexpr int kGroupedRoutes = 6;
// Constant matrices are packed, others are not: where a call has both, the others are packed for
// it.
bool is_packed(const View& b) {
  return b.packed;
}
bool any_packed(const Call& call) {
  const auto b = call.in.subspan(kFirstMatrix);
  return std::any_of(b.begin(), b.end(), is_packed);
}
bool all_packed(const Call& call) {
  const auto b = call.in.subspan(kFirstMatrix);
  return std::all_of(b.begin(), b.end(), is_packed);
}
GroupedRoute route(const Call& call, const GroupedShape& s) {
  constexpr int64_t kMaxK = int64_t{1} << 30;
  const bool gemv_fits = any_packed(call) && s.k > 0 && s.k < kMaxK;
  const auto forced = static_cast<GroupedRoute>(variant() % kGroupedRoutes);
  const bool is_tiles = forced == GroupedRoute::small || forced == GroupedRoute::large;
  if (forced != GroupedRoute::automatic && (gemv_fits || is_tiles)) return forced;
  if (s.rows >= 48 * s.groups) return GroupedRoute::large;
  if (!gemv_fits) return GroupedRoute::small;
  if (s.rows <= 8 || s.rows <= s.groups) return GroupedRoute::rows;
  return s.rows <= 5 * s.groups ? GroupedRoute::sorted_4 : GroupedRoute::sorted_8;
}
bool is_gemv(GroupedRoute r) {
  return r != GroupedRoute::small && r != GroupedRoute::large;
}
// Blocks of sorted rows. Few words in a stage leave more blocks room.
template <class Reader>
using SortedBy4 = GemvShape<Reader, 4, 4, 2, 16, 3, 8>;
template <class Reader>
using SortedBy8 = GemvShape<Reader, 8, 8, 1, 8, 4, 8>;
Shape tiles_shape(const GroupedShape& s, int64_t tile_rows) {
  Shape t{};
  t.m = most_tiles(s, tile_rows) * tile_rows, t.n = s.n, t.k = s.k, t.trans_b = s.trans_b;
  t.batches = t.matrices_b = 1;
  return t;
}
KernelChoice whole_k(const GroupedShape& s) {
  return {Route::automatic, 1, num::contraction_blocks(s.k)};
}
template <class T>
size_t shared_bytes_of(const GroupedShape& s) {
  return sorted_bytes(s, T::kRows) + workspace_of<T>(tiles_shape(s, T::kRows), whole_k(s));
}
size_t shared_bytes_of_route(const Call& call, const GroupedShape& s) {
  switch (route(call, s)) {
    case GroupedRoute::rows: return 0;
    case GroupedRoute::small: return shared_bytes_of<Small>(s);
    case GroupedRoute::large: return shared_bytes_of<Large>(s);
    case GroupedRoute::sorted_4: return sorted_bytes(s, SortedBy4<ReaderF32>::kRows);
    default: return sorted_bytes(s, SortedBy8<ReaderF32>::kRows);
  }
}
// Bytes of one matrix.
int64_t matrix_bytes(const View& b, int64_t n, int64_t k, bool packed) {
  return packed ? packed_words(n, word_rows(k, b.dtype)) * 4 : n * k * static_cast<int64_t>(size_of(b.dtype));
}
// Where the matrices that are packed for a call lie in its shared memory, behind what its route
// has.
size_t own_matrices_at(const Call& call, const GroupedShape& s) {
  return (shared_bytes_of_route(call, s) + 255) / 256 * 256;
}
size_t shared_bytes(const Call& call) {
  const GroupedShape s = matmul::grouped_shape(call);
  if (!any_packed(call) || all_packed(call)) return shared_bytes_of_route(call, s);
  size_t bytes = own_matrices_at(call, s);
  for (const View& b : call.in.subspan(kFirstMatrix))
    if (!b.packed) bytes += packed_bytes(b, *call.attrs);
  return bytes;
}
// Calls f(operand, where it is packed) for what a call with packed matrices has of others.
template <class Fn>
void for_own_matrices(const Call& call, const GroupedShape& s, Fn f) {
  if (!any_packed(call) || all_packed(call)) return;
  auto* to = static_cast<char*>(call.shared) + own_matrices_at(call, s);
  for (size_t i = kFirstMatrix; i < call.in.size(); ++i) {
    if (call.in[i].packed) continue;
    f(static_cast<int>(i), to);
    to += packed_bytes(call.in[i], *call.attrs);
  }
}

// The matrices of calls with as many: of each, all packed or none.
MatrixTable table_of(std::span<const Call* const> calls, const GroupedShape& s) {
  MatrixTable table = empty_table(s);
  for (const Call* call : calls) {
    const int first = table.count;
    const bool packed = any_packed(*call);
    for (const View& b : call->in.subspan(kFirstMatrix))
      table.add(b.data, matrix_bytes(b, last_dim(call->out[0]), s.k, packed));
    for_own_matrices(*call, s, [&](int i, void* at) { checked(table.at, first + i - kFirstMatrix) = at; });
  }
  return table;
}
void enqueue_sort(std::span<const Call* const> calls, const GroupedShape& s, int64_t tile_rows,
                  const Sorted& to, Stream stream) {
  const Call& call = *calls[0];
  launch_dependent(counts_fit_block(s) ? sort_kernel<false> : sort_kernel<true>, dim3(1), dim3(kSortThreads),
                   0, stream, s, static_cast<int>(calls.size()), static_cast<int>(tile_rows),
                   static_cast<int>(most_tiles(s, tile_rows)), call.in[1].as<const int64_t>(), call.gpu.fault,
                   to, table_of(calls, s));
}

template <class T, class B>
void enqueue_sorted_tiles(const Call& call, const GroupedShape& s, const B& b, Stream stream) {
  const Shape t = tiles_shape(s, T::kRows);
  const KernelChoice whole = whole_k(s);
  const Sorted w = sorted_in(call.shared, s, T::kRows);
  const Call* const one = &call;
  auto* const out = call.out[0].as<float>();
  GroupedGemm<B, SortedOut, 1> products{};
  products.count = 1, products.problem[0] = problem_of<T>(t, whole), products.b[0] = b;
  products.columns = products.problem[0].columns;
  products.out[0] = {out, w.row, s.n % 4 == 0 && reinterpret_cast<uintptr_t>(out) % 16 == 0};
  enqueue_sort({&one, 1}, s, T::kRows, w, stream);
  const SortedRows a{
      {call.in[0].as<const float>(), s.k, t.m, s.k}, w.row, w.tile_matrix, w.matrices, s.share};
  const int in_shared = num::segments_in_use(s.k) < 2 ? 0 : shared_levels<T>();
  const size_t bytes = T::kStageBytes + static_cast<size_t>(in_shared) * T::kArea * sizeof(float);
  launch(gemm_kernel<T, Fp32SumsOf<T>, SortedRows, B, SortedOut, 1>,
         dim3(static_cast<unsigned>(blocks_of<T>(products.items()))), dim3(T::kThreads), bytes, stream,
         products, a, w.kept, in_shared);
}

template <class Products, class Reader>
Products products_of(std::span<const Call* const> calls, const GroupedShape& s, int64_t rows,
                     const Reader& reader) {
  Products products{};
  for (const Call* call : calls) {
    const int p = products.count++;
    checked(products.reader, p) = reader;  // its pointer is not read: b is packed
    checked(products.problem, p) = {call->in[0].as<const float>(),
                                    nullptr,
                                    call->out[0].as<float>(),
                                    rows,
                                    last_dim(call->out[0]),
                                    s.k,
                                    word_rows(s.k, call->in[kFirstMatrix].dtype)};
  }
  products.share = s.share, products.groups = s.groups;
  return products;
}
template <class Reader>
void enqueue_rows(std::span<const Call* const> calls, const GroupedShape& s, const Reader& reader,
                  Stream stream) {
  const Call& call = *calls[0];
  auto products = products_of<IndexedGemv<Reader>>(calls, s, s.rows, reader);
  products.index = call.in[1].as<const int64_t>(), products.fault = call.gpu.fault;
  products.matrices = table_of(calls, s);
  if constexpr (Reader::kPerWord == 2) {
    int64_t panels = 0;
    for (const Call* c : calls) panels += ceil_div(last_dim(c->out[0]), kPanelColumns);
    const int64_t blocks = s.rows * panels, most = multiprocessors();
    // The fewer blocks there are, the more stages each has in flight. Blocks of one warp are many.
    if (blocks > 4 * most)
      return enqueue_gemv_shape<GemvShape<Reader, 1, 1, 1, 16, 3, 8>, Reader>(products, stream);
    if (s.k <= 4 * num::kChain)
      return enqueue_gemv_shape<GemvShape<Reader, 1, 1, 1, 8, 5, 8>, Reader>(products, stream);
    if (blocks > 2 * most)
      return enqueue_gemv_shape<GemvShape<Reader, 1, 1, 1, 16, 8, 8>, Reader>(products, stream);
    return enqueue_gemv_shape<GemvShape<Reader, 1, 1, 1, 8, 12, 8>, Reader>(products, stream);
  }
  enqueue_gemv_shape<GemvShape<Reader, 1, 1, 1, 8, 8, 8>, Reader>(products, stream);
}
template <class S, class Reader>
void enqueue_sorted_rows(std::span<const Call* const> calls, const GroupedShape& s, const Reader& reader,
                         Stream stream) {
  const Sorted sorted = sorted_in(calls[0]->shared, s, S::kRows);
  enqueue_sort(calls, s, S::kRows, sorted, stream);
  auto products = products_of<SortedGemv<Reader>>(calls, s, most_tiles(s, S::kRows) * S::kRows, reader);
  products.sorted = sorted;
  enqueue_gemv_shape<S, Reader>(products, stream);
}
// Products of one index by GEMV.
template <class Reader>
void enqueue_gemv_route(GroupedRoute chosen, std::span<const Call* const> calls, const GroupedShape& s,
                        const Reader& reader, Stream stream) {
  if (chosen == GroupedRoute::rows) return enqueue_rows(calls, s, reader, stream);
  if (chosen == GroupedRoute::sorted_4)
    return enqueue_sorted_rows<SortedBy4<Reader>>(calls, s, reader, stream);
  enqueue_sorted_rows<SortedBy8<Reader>>(calls, s, reader, stream);
}

void enqueue(const Call& call, Stream stream) {
  const Call* const one = &call;
  const GroupedShape s = matmul::grouped_shape(call);
  const View& b = call.in[kFirstMatrix];
  if (s.rows == 0 || s.n == 0) return;
  const GroupedRoute chosen = route(call, s);
  for_own_matrices(call, s, [&](int i, void* to) {
    enqueue_pack_floats(call.in[static_cast<size_t>(i)], i, *call.attrs, to, stream);
  });
  with_reader(b.dtype, b.data, s.trans_b ? Strides{1, s.k} : Strides{s.n, 1}, [&](auto reader) {
    using Reader = decltype(reader);
    auto tiles = [&](const auto& columns) {
      if (chosen == GroupedRoute::small)
        enqueue_sorted_tiles<Small>(call, s, columns, stream);
      else
        enqueue_sorted_tiles<Large>(call, s, columns, stream);
    };
    const int64_t rows = word_rows(s.k, b.dtype);
    if (is_gemv(chosen))
      enqueue_gemv_route(chosen, {&one, 1}, s, reader, stream);
    else if (any_packed(call))
      tiles(WeightColumns<Reader, true>{reader, nullptr, s.n, s.k, rows});
    else
      tiles(WeightColumns<Reader, false>{reader, nullptr, s.n, s.k, rows});
  });
}

// Whether calls can be products of one kernel: they differ in N alone, and GEMV takes them.
bool is_joined(std::span<const Call* const> calls) {
  const Call& one = *calls[0];
  const GroupedShape s = matmul::grouped_shape(one);
  const GroupedRoute chosen = route(one, s);
  const auto count = static_cast<int64_t>(calls.size());
  if (count > kMaxProducts || count * s.groups > kMostMatrices || s.rows == 0) return false;
  if (!is_gemv(chosen)) return false;
  if (!std::all_of(calls.begin(), calls.end(), [](const Call* c) { return all_packed(*c); })) return false;
  return std::all_of(calls.begin(), calls.end(), [&](const Call* c) {
    const GroupedShape t = matmul::grouped_shape(*c);
    return c->in[1].data == one.in[1].data && c->in[kFirstMatrix].dtype == one.in[kFirstMatrix].dtype &&
           t.n > 0 && t.rows == s.rows && t.share == s.share && t.k == s.k && t.groups == s.groups &&
           t.stacked == s.stacked;
  });
}
size_t shared_bytes_batch(std::span<const Call* const> calls) {
  size_t most = 0;
  for (const Call* c : calls) most = std::max(most, shared_bytes(*c));
  return most;
}
void enqueue_batch(std::span<const Call* const> calls, Stream stream) {
  if (!is_joined(calls)) {
    for (const Call* c : calls) enqueue(*c, stream);
    return;
  }
  const GroupedShape s = matmul::grouped_shape(*calls[0]);
  with_reader(calls[0]->in[kFirstMatrix].dtype, nullptr, Strides{},
              [&](auto reader) { enqueue_gemv_route(route(*calls[0], s), calls, s, reader, stream); });
}

size_t pack_bytes(const View& b, int i, const Attributes& attrs) {
  return i < kFirstMatrix ? 0 : packed_bytes(b, attrs);
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW_OF(grouped_matmul);
const GpuKernel INVAR_ROW_OF(grouped_matmul) = {.op = "grouped_matmul",
                                                .isa = INVAR_ISA,
                                                .shared_bytes = INVAR_ISA_NS::shared_bytes,
                                                .pack_bytes = INVAR_ISA_NS::pack_bytes,
                                                .enqueue = INVAR_ISA_NS::enqueue,
                                                .enqueue_batch = INVAR_ISA_NS::enqueue_batch,
                                                .enqueue_pack = INVAR_ISA_NS::enqueue_pack_floats,
                                                .shared_bytes_batch = INVAR_ISA_NS::shared_bytes_batch};

}  // namespace invar::ops
