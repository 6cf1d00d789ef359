// grouped_matmul: few rows by GEMV, each with the matrix that its index chooses; more by GEMV or by
// tiles whose rows choose one matrix, after a kernel has sorted them. The choice is free by
// grouped_matmul.3.
#include "ops/matmul/cuda/sorted_rows.cuh"

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

// Which kernel: GEMV while most matrices meet few rows; else tiles as tall as their rows are many.
enum class GroupedRoute { automatic, rows, small, large, sorted_4, sorted_8, sorted_16 };
constexpr int kGroupedRoutes = 7;
GroupedRoute route(const Call& call, const GroupedShape& s) {
  constexpr int64_t kMaxK = int64_t{1} << 30;
  const bool gemv_fits = call.in[kFirstMatrix].packed && s.k > 0 && s.k < kMaxK;
  const auto forced = static_cast<GroupedRoute>(variant() % 32);
  const bool is_tiles = forced == GroupedRoute::small || forced == GroupedRoute::large;
  if (forced != GroupedRoute::automatic && (gemv_fits || is_tiles)) return forced;
  if (gemv_fits && (s.rows <= 8 || s.rows < s.groups)) return GroupedRoute::rows;
  if (gemv_fits && s.rows < 8 * s.groups) return GroupedRoute::sorted_8;
  return s.rows < 48 * s.groups ? GroupedRoute::small : GroupedRoute::large;
}
int sorted_tile_rows(GroupedRoute r) {
  static const int table[32] = {0,0,0,0,4,8,16,0, 4,4,4,8,8,8,8,16,16,16};
  return table[static_cast<int>(r)];
}
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
size_t shared_bytes(const Call& call) {
  const GroupedShape s = matmul::grouped_shape(call);
  switch (const GroupedRoute chosen = route(call, s)) {
    case GroupedRoute::rows: return 0;
    case GroupedRoute::small: return shared_bytes_of<Small>(s);
    case GroupedRoute::large: return shared_bytes_of<Large>(s);
    default: return sorted_bytes(s, sorted_tile_rows(chosen));
  }
}

// The matrices of calls with as many.
MatrixTable table_of(std::span<const Call* const> calls, const GroupedShape& s) {
  MatrixTable table{};
  const void** to = table.at;
  for (const Call* call : calls) {
    const View& b = call->in[kFirstMatrix];
    const int64_t n = last_dim(call->out[0]),
                  bytes = b.packed ? packed_words(n, word_rows(s.k, b.dtype)) * 4
                                   : n * s.k * static_cast<int64_t>(size_of(b.dtype));
    for (int64_t g = 0; g < s.groups; ++g)
      *to++ = s.stacked ? static_cast<const char*>(b.data) + g * bytes
                        : call->in[static_cast<size_t>(kFirstMatrix + g)].data;
  }
  return table;
}
void enqueue_sort(std::span<const Call* const> calls, const GroupedShape& s, int64_t tile_rows,
                  const Sorted& to, Stream stream) {
  const Call& call = *calls[0];
  launch_dependent(sort_kernel, dim3(1), dim3(kSortThreads), 0, stream, s, static_cast<int>(calls.size()),
                   static_cast<int>(tile_rows), static_cast<int>(most_tiles(s, tile_rows)),
                   call.in[1].as<const int64_t>(), call.gpu.fault, to, table_of(calls, s));
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
    products.reader[products.count] = reader;  // its pointer is not read: b is packed
    products.problem[products.count++] = {call->in[0].as<const float>(), nullptr, call->out[0].as<float>(),
                                          rows, last_dim(call->out[0]), s.k,
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
  int64_t panels = 0;
  for (const Call* c : calls) panels += ceil_div(last_dim(c->out[0]), kPanelColumns);
  if (Reader::kPerWord == 2 && s.rows * panels > 2 * multiprocessors())
    return enqueue_gemv_shape<GemvShape<Reader, 1, 1, 1, 16, 3, 8>, Reader>(products, stream);
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
  auto sorted = [&]<class S>(std::type_identity<S>) {
    enqueue_sorted_rows<S, Reader>(calls, s, reader, stream);
  };
  switch (chosen) {
    case GroupedRoute::rows: return enqueue_rows(calls, s, reader, stream);
    case GroupedRoute::sorted_4: return sorted(std::type_identity<GemvShape<Reader, 4, 4, 1, 16, 4, 8>>());
    case GroupedRoute::sorted_8: return sorted(std::type_identity<GemvShape<Reader, 8, 8, 1, 16, 4, 8>>());
    case GroupedRoute::sorted_16: return sorted(std::type_identity<GemvShape<Reader, 16, 8, 1, 16, 4, 8>>());
    default: break;
  }
#ifdef EXPERIMENT
  if constexpr (std::is_same_v<Reader, ReaderHalf<HalfBf16>>)
  switch (static_cast<int>(chosen)) {
    case 8: return sorted(std::type_identity<GemvShape<Reader, 4, 4, 1, 8, 4, 8>>());
    case 9: return sorted(std::type_identity<GemvShape<Reader, 4, 4, 1, 16, 3, 8>>());
    case 10: return sorted(std::type_identity<GemvShape<Reader, 4, 4, 2, 16, 3, 8>>());
    case 11: return sorted(std::type_identity<GemvShape<Reader, 8, 8, 1, 8, 4, 8>>());
    case 12: return sorted(std::type_identity<GemvShape<Reader, 8, 8, 1, 16, 3, 8>>());
    case 13: return sorted(std::type_identity<GemvShape<Reader, 8, 8, 2, 16, 3, 4>>());
    case 14: return sorted(std::type_identity<GemvShape<Reader, 8, 8, 2, 8, 4, 4>>());
    case 15: return sorted(std::type_identity<GemvShape<Reader, 16, 16, 2, 8, 4, 4>>());
    case 16: return sorted(std::type_identity<GemvShape<Reader, 16, 16, 1, 8, 4, 8>>());
    case 17: return sorted(std::type_identity<GemvShape<Reader, 16, 8, 1, 8, 4, 8>>());
  }
#endif
}

void enqueue(const Call& call, Stream stream) {
  const Call* const one = &call;
  const GroupedShape s = matmul::grouped_shape(call);
  const View& b = call.in[kFirstMatrix];
  if (s.rows == 0 || s.n == 0) return;
  const GroupedRoute chosen = route(call, s);
  with_reader(b.dtype, b.data, s.trans_b ? Strides{1, s.k} : Strides{s.n, 1}, [&](auto reader) {
    using Reader = decltype(reader);
    auto tiles = [&](const auto& columns) {
      if (chosen == GroupedRoute::small)
        enqueue_sorted_tiles<Small>(call, s, columns, stream);
      else
        enqueue_sorted_tiles<Large>(call, s, columns, stream);
    };
    const int64_t rows = word_rows(s.k, b.dtype);
    if (chosen != GroupedRoute::small && chosen != GroupedRoute::large)
      enqueue_gemv_route(chosen, {&one, 1}, s, reader, stream);
    else if (b.packed)
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
  if (chosen == GroupedRoute::small || chosen == GroupedRoute::large) return false;
  return std::all_of(calls.begin(), calls.end(), [&](const Call* c) {
    const GroupedShape t = matmul::grouped_shape(*c);
    const View &b = c->in[kFirstMatrix], &first = one.in[kFirstMatrix];
    return c->in[1].data == one.in[1].data && b.dtype == first.dtype && b.packed == first.packed && t.n > 0 &&
           t.rows == s.rows && t.share == s.share && t.k == s.k && t.groups == s.groups &&
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
  with_reader(calls[0]->in[kFirstMatrix].dtype, nullptr, Strides{}, [&](auto reader) {
    enqueue_gemv_route(route(*calls[0], s), calls, s, reader, stream);
  });
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
