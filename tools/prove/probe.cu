// The functions of src/num as a GPU computes them: the lane in plain C++ (num/lane/lane_scalar.h),
// compiled for the device. One more row beside the processor's instruction sets: invar_prove and
// its tests look at it in the same way.
#include <cstdio>
#include <cstdlib>

#include "num/contract/lanes.h"
#include "num/functions_ff.h"
#include "num/pow/lanes.h"
#include "num/reduce/lanes.h"
#include "probe.h"

namespace invar::prove {
namespace {
namespace lane = num::INVAR_ISA_NS;
using lane::F;

void check(cudaError_t e) {
  if (e == cudaSuccess) return;
  std::fprintf(stderr, "cuda: %s\n", cudaGetErrorString(e));
  std::exit(70);
}

// The operands of one call, on the device. Each thread keeps its memory and its stream from call to
// call.
class Call {
 public:
  Call() : place_(place()) { place_.used = 0; }
  template <class T>
  const T* in(const T* host, size_t n) {
    T* p = reserve<T>(n);
    check(cudaMemcpyAsync(p, host, n * sizeof(T), cudaMemcpyHostToDevice, place_.stream));
    return p;
  }
  template <class T>
  T* out(size_t n) {
    return reserve<T>(n);
  }
  cudaStream_t stream() const { return place_.stream; }
  template <class T>
  void get(T* host, const T* device, size_t n) {
    check(cudaGetLastError());
    check(cudaMemcpyAsync(host, device, n * sizeof(T), cudaMemcpyDeviceToHost, place_.stream));
    check(cudaStreamSynchronize(place_.stream));
  }

 private:
  static constexpr size_t kBytes = size_t{1} << 23;  // the largest call of the tests, several times over
  struct Place {
    cudaStream_t stream;
    std::byte* memory;
    size_t used = 0;
    Place() {
      check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
      check(cudaMalloc(&memory, kBytes));
    }
    ~Place() { cudaFree(memory), cudaStreamDestroy(stream); }
  };
  static Place& place() {
    thread_local Place p;
    return p;
  }
  template <class T>
  T* reserve(size_t n) {
    T* p = reinterpret_cast<T*>(place_.memory + place_.used);
    place_.used += (n * sizeof(T) + 255) / 256 * 256;
    if (place_.used > kBytes)
      std::fprintf(stderr, "cuda: a call of %zu elements is too long\n", n), std::exit(70);
    return p;
  }
  Place& place_;
};

constexpr int kBlock = 256;
__device__ int here() {
  return static_cast<int>(blockIdx.x) * kBlock + static_cast<int>(threadIdx.x);
}
int blocks(int n) {
  return (n + kBlock - 1) / kBlock;
}

template <class Op, class X, class Y>
__global__ void each(const X* x, Y* y, int n) {
  if (here() < n) Op::at(x + here(), y + here());
}
template <class Op, class X, class Y>
void map(const X* x, Y* y, int n) {
  for (int i = 0, c = 0; i < n; i += c) {  // parts that fit Call
    c = n - i < (1 << 19) ? n - i : 1 << 19;
    Call call;
    auto* from = call.in(x + i, static_cast<size_t>(c));
    auto* to = call.template out<Y>(static_cast<size_t>(c));
    each<Op><<<blocks(c), kBlock, 0, call.stream()>>>(from, to, c);
    call.get(y + i, to, static_cast<size_t>(c));
  }
}
#define INVAR_AT(name, X, Y, body)                        \
  struct name {                                           \
    __device__ static void at(const X* x, Y* y) { body; } \
  };
#define INVAR_ROW(f) INVAR_AT(at_##f, float, float, lane::store(y, lane::f(lane::load(x))))
INVAR_FUNCTIONS(INVAR_ROW)
INVAR_ROW(canonicalize)
INVAR_ROW(exp_stored)
#undef INVAR_ROW
#define INVAR_ROW(f) INVAR_AT(at_##f##_ff, float, float, lane::store(y, lane::f##_ff(lane::load(x))))
INVAR_FUNCTIONS(INVAR_ROW)
#undef INVAR_ROW
INVAR_AT(widen_bf16, uint16_t, float, lane::store(y, lane::load_bf16(x)))
INVAR_AT(widen_f16, uint16_t, float, lane::store(y, lane::load_f16(x)))
INVAR_AT(narrow_bf16, float, uint16_t, lane::store_bf16(y, lane::load(x)))
INVAR_AT(narrow_f16, float, uint16_t, lane::store_f16(y, lane::load(x)))
#undef INVAR_AT
constexpr Function kFunctions[] = {
#define INVAR_ROW(f) {#f, map<at_##f, float, float>},
    INVAR_FUNCTIONS(INVAR_ROW)
#undef INVAR_ROW
#define INVAR_ROW(f) {#f ".ff", map<at_##f##_ff, float, float>},
        INVAR_FUNCTIONS(INVAR_ROW)
#undef INVAR_ROW
};

template <class Op>
__global__ void each_pair(const float* a, const float* b, float* y, int n) {
  if (here() < n) lane::store(y + here(), Op::at(lane::load(a + here()), lane::load(b + here())));
}
template <class Op>
void map_pairs(const float* a, const float* b, float* y, int n) {
  Call call;
  auto count = static_cast<size_t>(n);
  const float *p = call.in(a, count), *q = call.in(b, count);
  float* to = call.out<float>(count);
  each_pair<Op><<<blocks(n), kBlock, 0, call.stream()>>>(p, q, to, n);
  call.get(y, to, count);
}
#define INVAR_ROW(f)                                           \
  struct pair_##f {                                            \
    __device__ static F at(F a, F b) { return lane::f(a, b); } \
  };
INVAR_ROW(atan2)
INVAR_ROW(pow)
INVAR_ROW(maximum)
INVAR_ROW(minimum)
#undef INVAR_ROW

__global__ void put_part(float* y, const float* x, int n) {
  lane::store_canonical_n(y, lane::load_n(x, n), n);
}
void put_n(float* y, const float* x, int n) {
  Call call;
  const float* from = call.in(x, 1);
  float* to = const_cast<float*>(call.in(y, 1));
  put_part<<<1, 1, 0, call.stream()>>>(to, from, n);
  call.get(y, to, 1);
}

__global__ void all_arithmetic(const float* a, const float* b, const float* c, float* y, int n) {
  const int i = here();
  if (i >= n) return;
  F u = lane::load(a + i), v = lane::load(b + i), w = lane::load(c + i);
  lane::store(y + i, lane::fma(u, v, w));
  lane::store(y + n + i, lane::add(u, v));
  lane::store(y + 2 * n + i, lane::sub(u, v));
  lane::store(y + 3 * n + i, lane::mul(u, v));
  lane::store(y + 4 * n + i, lane::div(u, v));
  lane::store(y + 5 * n + i, lane::sqrt(lane::neg(lane::neg(lane::abs(u)))));
}
void arithmetic(const float* a, const float* b, const float* c, float* y, int n) {
  Call call;
  auto count = static_cast<size_t>(n);
  const float *p = call.in(a, count), *q = call.in(b, count), *r = call.in(c, count);
  float* to = call.out<float>(6 * count);
  all_arithmetic<<<blocks(n), kBlock, 0, call.stream()>>>(p, q, r, to, n);
  call.get(y, to, 6 * count);
}

enum class Sum { row, squares, block };
template <Sum kind>
__global__ void one_sum(const float* x, int64_t n, float* y) {
  *y = kind == Sum::row       ? lane::row_sum(x, n)
       : kind == Sum::squares ? lane::row_sum_squares(x, n)
                              : lane::block_sum(x, static_cast<int>(n));
}
template <Sum kind, class N>
float sum(const float* x, N n) {
  Call call;
  const float* from = call.in(x, static_cast<size_t>(n));
  float *to = call.out<float>(1), y;
  one_sum<kind><<<1, 1, 0, call.stream()>>>(from, n, to);
  call.get(&y, to, 1);
  return y;
}

// One chain for each of two columns, in the schedule that every kernel shares
// (num/contract/schedule.h).
struct Chain {
  const float *a, *b;
  __device__ void operator()(int64_t begin, int64_t end, F* c) const {
    c[0] = c[1] = lane::zero();
    for (int64_t i = begin; i < end; ++i)
      for (int r = 0; r < 2; ++r) c[r] = lane::fma(lane::set1(a[i]), lane::load(b + i * 2 + r), c[r]);
  }
};
__global__ void contract_columns(const float* a, const float* b, int64_t k, float* y) {
  F out[2];
  lane::contract<2>(k, Chain{a, b}, out);
  lane::store(y, out[0]), lane::store(y + 1, out[1]);
}
void contract(const float* a, const float* b, int64_t k, float* y) {
  Call call;
  const float *p = call.in(a, static_cast<size_t>(k)), *q = call.in(b, static_cast<size_t>(2 * k));
  float* to = call.out<float>(2);
  contract_columns<<<1, 1, 0, call.stream()>>>(p, q, k, to);
  call.get(y, to, 2);
}

}  // namespace

bool has_device() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}
extern const Probe probe_cuda;
const Probe probe_cuda = {"cuda",
                          lane::kW,
                          kFunctions,
                          map_pairs<pair_atan2>,
                          map<at_canonicalize, float, float>,
                          map<at_exp_stored, float, float>,
                          put_n,
                          map_pairs<pair_maximum>,
                          map_pairs<pair_minimum>,
                          map_pairs<pair_pow>,
                          arithmetic,
                          map<widen_bf16, uint16_t, float>,
                          map<widen_f16, uint16_t, float>,
                          map<narrow_bf16, float, uint16_t>,
                          map<narrow_f16, float, uint16_t>,
                          sum<Sum::row, int64_t>,
                          sum<Sum::squares, int64_t>,
                          sum<Sum::block, int>,
                          contract};

}  // namespace invar::prove
