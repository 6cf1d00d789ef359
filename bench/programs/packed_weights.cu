// Products with weights in tiles of codes on a GPU (src/ops/matmul/cuda/exact16/coded).
// packed_weights.sh builds it and runs its two parts: `bits` compares every kind of packed weights
// with the same numbers unpacked, byte for byte (exit code 0: all are right), `times` prints the
// times of the products of one layer of 8B shape, for kinds of weights and numbers of rows.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/gpu_kernel.h"
#include "kernels/registry.h"
#include "weights/testing.h"
#include "weights/tiles/code_tiles.h"

namespace invar::ops {
// The program links the kernels of one file, not the registry of all.
extern const GpuKernel row_matmul_exact16_cuda;
int variant() {
  return 0;
}
const CpuKernel* find_cpu_kernel(std::string_view, std::string_view) {
  return nullptr;
}
}  // namespace invar::ops

namespace {

using invar::Attributes;
using invar::DType;
using invar::ops::Call;
using invar::ops::View;
namespace weights = invar::weights;
const invar::ops::GpuKernel& kernel = invar::ops::row_matmul_exact16_cuda;
const Attributes attrs{{"trans_b", int64_t{1}}};

void must(cudaError_t e, const char* what) {
  if (e == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
  std::_Exit(2);
}
#define MUST(call) must(call, #call)

cudaStream_t stream;
std::vector<void*> taken;
template <class T>
T* take(size_t count) {
  void* p = nullptr;
  MUST(cudaMalloc(&p, count * sizeof(T) + 256));
  taken.push_back(p);
  return static_cast<T*>(p);
}
void free_all() {
  for (void* p : taken) MUST(cudaFree(p));
  taken.clear();
}
template <class T>
T* upload(const std::vector<T>& data) {
  T* const p = take<T>(data.size());
  MUST(cudaMemcpy(p, data.data(), data.size() * sizeof(T), cudaMemcpyHostToDevice));
  return p;
}
View view(void* data, DType type, int64_t rows, int64_t columns) {
  return {data, type, 2, false, {rows, columns}};
}

// A constant operand, unpacked and in tiles.
struct Operand {
  View numbers, codes;
  weights::CodeTiles tiles;
};
View packed(View numbers) {
  void* const to = take<uint8_t>(kernel.pack_bytes(numbers, 1, attrs));
  kernel.enqueue_pack(numbers, 1, attrs, to, stream);
  numbers.data = to, numbers.packed = true;
  return numbers;
}
void make_operand(const weights::PackedRows& rows, const std::vector<uint8_t>& elements, DType type,
                  Operand& b) {
  b.numbers = packed(view(upload(elements), type, rows.rows, rows.numbers));
  b.tiles = weights::CodeTiles::of(rows);
  std::vector<uint8_t> memory(b.tiles.bytes());
  auto* const scales = reinterpret_cast<int32_t*>(memory.data() + b.tiles.scales_at());
  for (int64_t down = 0; down < b.tiles.down(); ++down)
    b.tiles.pack(rows, down, memory.data() + static_cast<size_t>(down) * b.tiles.row_bytes(),
                 scales + down * 64);
  b.tiles.memory = upload(memory);
  b.codes = view(&b.tiles, DType::u8, rows.rows, rows.numbers);
  b.codes.packed = true;
}

// The bytes of products of `a` with each operand, the last with an addend.
std::vector<float> products(std::vector<View> b, float* a, int64_t m, const float* addend) {
  const size_t count = b.size();
  std::vector<View> in, out;
  for (const View& one : b) {
    in.push_back(view(a, DType::f32, m, one.dim[1])), in.push_back(one);
    out.push_back(view(take<float>(static_cast<size_t>(m * one.dim[0])), DType::f32, m, one.dim[0]));
  }
  std::vector<Call> calls;
  for (size_t i = 0; i < count; ++i) calls.push_back({{in.data() + 2 * i, 2}, {out.data() + i, 1}, &attrs});
  std::vector<const Call*> all;
  for (const Call& c : calls) all.push_back(&c);
  const size_t shared = kernel.shared_bytes_batch(all);
  auto* const memory = take<uint8_t>(shared);
  MUST(cudaMemset(memory, 0xff, shared));
  for (Call& c : calls) c.shared = memory;
  std::vector<const float*> addends(count);
  addends.back() = addend;
  invar::ops::GpuFusion fusion;
  fusion.addends = addends;
  kernel.enqueue_fused(all, fusion, stream);
  std::vector<float> results;
  for (const View& y : out) {
    std::vector<float> one(static_cast<size_t>(y.elements()));
    MUST(cudaMemcpyAsync(one.data(), y.data, one.size() * 4, cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamSynchronize(stream));
    results.insert(results.end(), one.begin(), one.end());
  }
  return results;
}

int wrong = 0, checked = 0;
void check(const std::string& name, Operand (&b)[3]) {
  const int64_t k = b[0].numbers.dim[1];
  std::mt19937 random(5);
  for (const int64_t m : {1, 3, 8, 9, 17, 40, 64, 65, 130}) {
    std::vector<float> a(static_cast<size_t>(m * k)), added(static_cast<size_t>(m * b[2].numbers.dim[0]));
    for (float& x : a)
      x = std::ldexp(static_cast<float>(static_cast<int32_t>(random())),
                     -28 - static_cast<int>(random() % 6));
    for (float& x : added) x = std::ldexp(static_cast<float>(static_cast<int32_t>(random())), -26);
    float *const rows = upload(a), *const addend = upload(added);
    const auto expected = products({b[0].numbers, b[1].numbers, b[2].numbers}, rows, m, addend);
    const auto got = products({b[0].codes, b[1].codes, b[2].codes}, rows, m, addend);
    size_t differ = 0, first = 0;
    for (size_t i = 0; i < got.size(); ++i)
      if (std::memcmp(&got[i], &expected[i], 4) != 0 && differ++ == 0) first = i;
    ++checked;
    if (differ == 0) continue;
    ++wrong;
    std::printf("%s, %d rows: %zu of %zu differ, the first at %zu: %a for %a\n", name.c_str(),
                static_cast<int>(m), differ, got.size(), first, got[first], expected[first]);
  }
}

void check_parts(int64_t k) {
  for (size_t kind = 0; kind < weights::testing::made_matrices(8, k, 0).size(); ++kind) {
    Operand b[3];
    std::string name;
    const int64_t columns[3] = {200, 64, 1064};
    for (int i = 0; i < 3; ++i) {
      auto all = weights::testing::made_matrices(columns[i], k, 0);
      weights::PackedMatrix& matrix = all[kind].matrix;
      name = all[kind].name + " of " + std::to_string(k);
      std::vector<uint8_t> elements(static_cast<size_t>(columns[i] * k) *
                                    weights::element_bytes(matrix.element()));
      if (matrix.elements(0, columns[i], elements.data()) != -1)
        std::printf("%s: not finite\n", name.c_str());
      const weights::Coding coding = *matrix.coding();
      weights::PackedRows rows;
      rows.numbers = k, rows.rows = columns[i], rows.matrix = &matrix, rows.coding = &coding;
      if (!weights::CodeTiles::covers(rows)) {
        std::printf("%s: no kernel\n", name.c_str());
        return;
      }
      const std::string_view e = matrix.element();
      make_operand(rows, elements, e == "F32" ? DType::f32 : e == "F16" ? DType::f16 : DType::bf16, b[i]);
    }
    check(name, b);
    free_all();
  }
}

void check_formats() {
  std::mt19937_64 random(7);
  for (const weights::Format& f : weights::formats()) {
    if (!f.unpack) continue;
    Operand b[3];
    const int64_t columns[3] = {200, 64, 1000}, k = f.block == 256 ? 768 : 2592;
    for (int i = 0; i < 3; ++i) {
      const int64_t count = columns[i] * k / f.block;
      std::vector<uint8_t> blocks(static_cast<size_t>(count * f.bytes));
      std::vector<float> numbers(static_cast<size_t>(columns[i] * k));
      for (int64_t n = 0; n < count; ++n)
        for (bool usual = false; !usual;) {
          uint8_t* const block = blocks.data() + n * f.bytes;
          for (int j = 0; j < f.bytes; ++j) block[j] = static_cast<uint8_t>(random());
          f.unpack(block, numbers.data() + n * f.block);
          usual =
              std::all_of(numbers.begin() + n * f.block, numbers.begin() + (n + 1) * f.block, [](float x) {
                const float size = std::abs(x);
                return size < 0x1p100f && (size == 0 || size >= 0x1p-125f);
              });
        }
      const weights::PackedRows rows{&f, blocks.data(), k, k / f.block * f.bytes, columns[i], 0, 0};
      std::vector<uint8_t> elements(numbers.size() * 4);
      std::memcpy(elements.data(), numbers.data(), elements.size());
      make_operand(rows, elements, DType::f32, b[i]);
    }
    check(f.name, b);
    free_all();
  }
}

// One layer: q, k and v; the projection behind attention; gate and up; down.
constexpr int64_t kLayer[4][4] = {
    {4096, 4096, 1024, 1024}, {4096, 4096, 0, 0}, {4096, 14336, 14336, 0}, {14336, 4096, 0, 0}};
struct Kind {
  const char* name;
  weights::Codes codes;
  int bits, parts;
  bool addends;
  weights::Rounding rounding = weights::Rounding::none;
};
// Microseconds of the products of a layer, and its bytes of weights. codes: null means bf16.
std::pair<double, double> layer(const Kind* kind, int64_t m) {
  constexpr int kCopies = 3;  // so that no weight stays in the L2 cache
  std::vector<weights::CodeTiles> tiles(kCopies * 8);
  std::vector<std::vector<View>> in, out;
  std::vector<std::vector<Call>> calls;
  double bytes = 0;
  size_t next = 0, shared = 0;
  float* const a = take<float>(static_cast<size_t>(m * 14336));
  MUST(cudaMemset(a, 0x3c, static_cast<size_t>(m * 14336 * 4)));
  float* const y = take<float>(static_cast<size_t>(m * 14336 * 3));
  for (int copy = 0; copy < kCopies; ++copy)
    for (const auto& [k, n0, n1, n2] : kLayer) {
      auto &operands = in.emplace_back(), &results = out.emplace_back();
      for (const int64_t n : {n0, n1, n2}) {
        if (n == 0) continue;
        View b = view(nullptr, kind ? DType::u8 : DType::bf16, n, k);
        size_t size;
        if (kind) {
          weights::CodeTiles& t = tiles[next++];
          t.codes = kind->codes, t.bits = kind->bits, t.parts = kind->parts, t.has_addends = kind->addends;
          t.rounding = kind->rounding, t.rows = n, t.across = k / 128, t.zero = 8;
          size = t.bytes();
          t.memory = take<uint8_t>(size), b.data = &t;
          MUST(cudaMemset(const_cast<uint8_t*>(t.memory), 0x3c, size));
        } else {
          size = kernel.pack_bytes(b, 1, attrs);
          b.data = take<uint8_t>(size);
          MUST(cudaMemset(b.data, 0x3c, size));
        }
        bytes += static_cast<double>(size) / kCopies;
        b.packed = true;
        operands.push_back(view(a, DType::f32, m, k)), operands.push_back(b);
        results.push_back(view(y + static_cast<int64_t>(results.size()) * m * 14336, DType::f32, m, n));
      }
    }
  std::vector<std::vector<const Call*>> groups;
  for (size_t g = 0; g < in.size(); ++g) {
    auto& of = calls.emplace_back();
    for (size_t i = 0; i < out[g].size(); ++i)
      of.push_back({{in[g].data() + 2 * i, 2}, {out[g].data() + i, 1}, &attrs});
    auto& pointers = groups.emplace_back();
    for (const Call& c : of) pointers.push_back(&c);
    shared = std::max(shared, kernel.shared_bytes_batch(pointers));
  }
  auto* const memory = take<uint8_t>(shared);
  for (auto& of : calls)
    for (Call& c : of) c.shared = memory;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (const auto& group : groups) kernel.enqueue_batch(group, stream);
  MUST(cudaStreamEndCapture(stream, &graph));
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  cudaEvent_t begin, end;
  MUST(cudaEventCreate(&begin)), MUST(cudaEventCreate(&end));
  float best = 1e9f;
  for (int round = 0; round < 12; ++round) {
    MUST(cudaEventRecord(begin, stream));
    for (int i = 0; i < 4; ++i) MUST(cudaGraphLaunch(exec, stream));
    MUST(cudaEventRecord(end, stream));
    MUST(cudaEventSynchronize(end));
    float ms = 0;
    MUST(cudaEventElapsedTime(&ms, begin, end));
    best = std::min(best, ms);
  }
  MUST(cudaGraphExecDestroy(exec)), MUST(cudaGraphDestroy(graph));
  free_all();
  return {best * 1e3 / 4 / kCopies, bytes};
}

double copy_rate() {  // bytes read and written a second
  constexpr size_t kBytes = size_t{2} << 30;
  auto *const from = take<uint8_t>(kBytes), *const to = take<uint8_t>(kBytes);
  cudaEvent_t begin, end;
  MUST(cudaEventCreate(&begin)), MUST(cudaEventCreate(&end));
  float best = 1e9f;
  for (int round = 0; round < 6; ++round) {
    MUST(cudaEventRecord(begin, stream));
    MUST(cudaMemcpyAsync(to, from, kBytes, cudaMemcpyDeviceToDevice, stream));
    MUST(cudaEventRecord(end, stream));
    MUST(cudaEventSynchronize(end));
    float ms = 0;
    MUST(cudaEventElapsedTime(&ms, begin, end));
    best = std::min(best, ms);
  }
  free_all();
  return 2.0 * kBytes / (best * 1e-3);
}

void times() {
  using enum weights::Codes;
  const double rate = copy_rate();
  std::printf("copies: %.0f GB/s\n", rate / 1e9);
  const Kind kinds[] = {{"fp8, 128 x 128", e4m3, 8, 1, false},
                        {"fp8 to bf16", e4m3, 8, 1, false, weights::Rounding::bf16},
                        {"int8, groups of 32", integers, 8, 4, false},
                        {"gptq 4, groups of 128", integers, 4, 1, true},
                        {"int4 to bf16, 128", integers, 4, 1, false, weights::Rounding::bf16},
                        {"int4, groups of 32", integers, 4, 4, false},
                        {"Q4_K", integers, 4, 4, true},
                        {"nvfp4", e2m1, 4, 8, false},
                        {"mxfp4", e2m1, 4, 4, false}};
  for (const int64_t m : {1, 8, 16, 32, 64, 128, 512}) {
    const auto [plain, plain_bytes] = layer(nullptr, m);
    std::printf("%3d rows: bf16 in planes %.1f us (%.2f of copies)\n", static_cast<int>(m), plain,
                plain_bytes / rate / (plain * 1e-6));
    for (const Kind& kind : kinds) {
      const auto [us, bytes] = layer(&kind, m);
      std::printf("  %-22s %7.1f us, %.2f of copies of its %.0f MB, %.2f x bf16\n", kind.name, us,
                  bytes / rate / (us * 1e-6), bytes / 1e6, plain / us);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  MUST(cudaStreamCreate(&stream));
  if (argc > 1 && std::strcmp(argv[1], "times") == 0) {
    times();
    return 0;
  }
  check_parts(384), check_parts(4096);
  check_formats();
  std::printf("%d of %d differ\n", wrong, checked);
  return wrong ? 1 : 0;
}
