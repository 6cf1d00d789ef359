// The joins of ranks on two GPUs of one host (src/ops/move/cuda/join.cu). joins.sh builds it and
// runs each of its three parts: the bits of joins and the bound of their waits (exit code 0: all
// are right), their times, and those of NCCL's all-gather. NVLink multicast is never used.
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <thread>
#include <vector>

#include "kernels/fusion/join_kernels.h"

namespace {

using invar::ops::Call;
using invar::ops::GpuJoin;
using invar::ops::View;
constexpr int kRanks = 2;
constexpr uint64_t kPatience = 5'000'000'000;  // nanoseconds

void must(cudaError_t e, const char* what) {
  if (e == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
  std::_Exit(2);  // the other thread may be in a call
}
#define MUST(call) must(call, #call)

const invar::ops::GpuJoinKernel& kernel() {
  static const invar::ops::GpuJoinKernel* const found = invar::ops::find_join_kernel("concat");
  return *found;
}

// A join: rows, and how many words of a row each rank makes.
struct Shape {
  int64_t rows, part[kRanks];
  __host__ __device__ int64_t width() const { return part[0] + part[1]; }
};

struct Header {
  uint32_t base, stalled, turn, wrong;
};

__device__ uint32_t value(uint32_t turn, int join, int64_t row, int64_t column) {
  const uint64_t x = (uint64_t{turn} << 40) + (static_cast<uint64_t>(join) << 34) +
                     (static_cast<uint64_t>(row) << 22) + static_cast<uint64_t>(column);
  return static_cast<uint32_t>((x * 0x9e3779b97f4a7c15ull) >> 29);
}
// Arrives late by a time that differs, and makes the rank's part.
__global__ void make_part(const Header* h, int join, int rank, Shape s, uint32_t* part) {
  const long long begin = clock64(),
                  late = value(h->turn, join, rank, 7) % 8 ? 0 : value(h->turn, join, rank, 9) % 60000;
  while (clock64() - begin < late) {
  }
  const int64_t width = s.part[rank], first = rank ? s.part[0] : 0;
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < s.rows * width;
       i += int64_t{gridDim.x} * blockDim.x)
    part[i] = value(h->turn, join, i / width, first + i % width);
}
// Every other join adds something to its result (formats.5: no subnormals, one NaN).
__host__ __device__ bool adds(int join) {
  return join % 2 == 1;
}
__global__ void make_addend(const Header* h, int join, Shape s, uint32_t* addend) {
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < s.rows * s.width();
       i += int64_t{gridDim.x} * blockDim.x)
    addend[i] = value(h->turn, 16 + join, i / s.width(), i % s.width());
}
__device__ uint32_t sum(uint32_t a, uint32_t b) {
  const float y = __fadd_rn(__uint_as_float(a), __uint_as_float(b));
  if (y != y) return 0x7fc00000;
  return fabsf(y) < 1.17549435e-38f ? __float_as_uint(y) & 0x80000000 : __float_as_uint(y);
}
__global__ void check_whole(Header* h, int join, Shape s, const uint32_t* whole) {
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < s.rows * s.width();
       i += int64_t{gridDim.x} * blockDim.x) {
    const int64_t row = i / s.width(), column = i % s.width();
    uint32_t right = value(h->turn, join, row, column);
    if (adds(join)) right = sum(right, value(h->turn, 16 + join, row, column));
    if (whole[i] != right) atomicAdd(&h->wrong, 1u);
  }
}

struct Rank {
  int rank = 0;
  cudaStream_t stream = nullptr;
  Header* header = nullptr;
  uint32_t *part = nullptr, *whole = nullptr, *addend = nullptr;
  std::byte* mailbox = nullptr;
};

class Pair {
 public:
  explicit Pair(int64_t part_bytes) : part_bytes_(part_bytes) {
    for (int r = 0; r < kRanks; ++r) {
      Rank& rank = ranks[r];
      rank.rank = r;
      MUST(cudaSetDevice(r));
      MUST(cudaStreamCreateWithFlags(&rank.stream, cudaStreamNonBlocking));
      const cudaError_t peer = cudaDeviceEnablePeerAccess(1 - r, 0);
      if (peer != cudaErrorPeerAccessAlreadyEnabled) must(peer, "peer access");
      (void)cudaGetLastError();
      const size_t bytes = kernel().mailbox_bytes(kRanks, part_bytes);
      MUST(cudaMalloc(&rank.mailbox, bytes));
      MUST(cudaMemset(rank.mailbox, 0, bytes));
      MUST(cudaMalloc(&rank.header, sizeof(Header)));
      MUST(cudaMemset(rank.header, 0, sizeof(Header)));
      MUST(cudaMalloc(&rank.part, static_cast<size_t>(part_bytes)));
      MUST(cudaMalloc(&rank.whole, static_cast<size_t>(kRanks * part_bytes)));
      MUST(cudaMalloc(&rank.addend, static_cast<size_t>(kRanks * part_bytes)));
      MUST(cudaMemset(rank.part, 0, static_cast<size_t>(part_bytes)));
      MUST(cudaDeviceSynchronize());
      mailboxes_[r] = rank.mailbox;
    }
  }
  ~Pair() {
    for (Rank& r : ranks) {
      cudaSetDevice(r.rank);
      for (void* p : {static_cast<void*>(r.mailbox), static_cast<void*>(r.header), static_cast<void*>(r.part),
                      static_cast<void*>(r.whole), static_cast<void*>(r.addend)})
        cudaFree(p);
      cudaStreamDestroy(r.stream);
    }
  }
  void join(Rank& r, const Shape& s, uint32_t number, bool added = false, uint64_t patience = kPatience,
            const uint32_t* given_up = nullptr) const {
    static const int makers[] = {0, 1};
    static const invar::Attributes attrs = [] {
      invar::Attributes a;
      a["axis"] = int64_t{1};
      return a;
    }();
    View in[kRanks], out;
    for (int i = 0; i < kRanks; ++i)
      in[i].rank = 2, in[i].dim[0] = s.rows, in[i].dim[1] = s.part[i],
      in[i].data = i == r.rank ? r.part : nullptr;
    out.rank = 2, out.dim[0] = s.rows, out.dim[1] = s.width(), out.data = r.whole;
    GpuJoin j;
    j.ranks = kRanks, j.rank = r.rank, j.makers = makers, j.mailboxes = mailboxes_,
    j.part_bytes = part_bytes_;
    j.number = number, j.base = &r.header->base, j.stalled = &r.header->stalled, j.patience = patience;
    j.given_up = given_up;
    if (added) j.addend = reinterpret_cast<const float*>(r.addend);
    kernel().enqueue(Call{in, {&out, 1}, &attrs}, j, r.stream);
  }
  Rank ranks[kRanks];

 private:
  int64_t part_bytes_;
  std::byte* mailboxes_[kRanks];
};

// Runs a thread for each rank.
void both(const std::function<void(int)>& f) {
  std::thread other([&] { f(1); });
  f(0);
  other.join();
}

cudaGraphExec_t record(Rank& r, const std::function<void(Rank&)>& work) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  MUST(cudaStreamBeginCapture(r.stream, cudaStreamCaptureModeThreadLocal));
  work(r);
  MUST(cudaStreamEndCapture(r.stream, &graph));
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  MUST(cudaGraphUpload(exec, r.stream));
  MUST(cudaStreamSynchronize(r.stream));
  MUST(cudaGraphDestroy(graph));
  return exec;
}

// Replays a graph of joins of all kinds with new parts each time. Returns how many words are wrong.
uint64_t wrong_words(int replays) {
  const Shape shapes[] = {{1, {4096, 4096}}, {1, {1, 5}},         {3, {7, 130}},       {8, {2048, 2048}},
                          {1, {4096, 0}},    {64, {4096, 4096}},  {1, {64128, 64128}}, {257, {1023, 1025}},
                          {1, {0, 33}},      {512, {1000, 1048}}, {1, {8192, 8192}}};
  int64_t most = 0;
  for (const Shape& s : shapes) most = std::max({most, s.rows * s.part[0] * 4, s.rows * s.part[1] * 4});
  Pair pair(most);
  std::barrier meet(kRanks);
  constexpr uint32_t kJoins = std::size(shapes);
  both([&](int rank) {
    MUST(cudaSetDevice(rank));
    Rank& r = pair.ranks[rank];
    const cudaGraphExec_t exec = record(r, [&](Rank& me) {
      for (uint32_t j = 0; j < kJoins; ++j) {
        make_part<<<32, 256, 0, me.stream>>>(me.header, static_cast<int>(j), rank, shapes[j], me.part);
        make_addend<<<32, 256, 0, me.stream>>>(me.header, static_cast<int>(j), shapes[j], me.addend);
        pair.join(me, shapes[j], j, adds(static_cast<int>(j)));
        check_whole<<<64, 256, 0, me.stream>>>(me.header, static_cast<int>(j), shapes[j], me.whole);
      }
    });
    for (int i = 0; i < replays; ++i) {
      const uint32_t step[] = {1 + static_cast<uint32_t>(i) * kJoins, 0, static_cast<uint32_t>(i)};
      MUST(cudaMemcpyAsync(r.header, step, sizeof step, cudaMemcpyHostToDevice, r.stream));
      meet.arrive_and_wait();
      MUST(cudaGraphLaunch(exec, r.stream));
      meet.arrive_and_wait();
      MUST(cudaStreamSynchronize(r.stream));
    }
    MUST(cudaGraphExecDestroy(exec));
  });
  uint64_t wrong = 0;
  for (Rank& r : pair.ranks) {
    Header h;
    MUST(cudaMemcpy(&h, r.header, sizeof h, cudaMemcpyDefault));
    if (h.stalled) std::printf("rank %d: rank %u stalled\n", r.rank, h.stalled - 1), wrong += 1;
    wrong += h.wrong;
  }
  return wrong;
}

// Rank 0 joins 40 times and the other never comes; `meanwhile` runs once it waits. Whom it misses,
// plus 1, once it ended; 0: nobody.
uint32_t missed_alone(const Shape& s, uint64_t patience, const uint32_t* given_up,
                      const std::function<void(cudaStream_t)>& meanwhile) {
  Pair pair(std::max(s.part[0], s.part[1]) * s.rows * 4);
  Rank& r = pair.ranks[0];
  MUST(cudaSetDevice(0));
  const uint32_t base = 1;
  MUST(cudaMemcpy(r.header, &base, sizeof base, cudaMemcpyHostToDevice));
  for (uint32_t j = 0; j < 40; ++j) pair.join(r, s, j, false, patience, given_up);
  meanwhile(r.stream);
  MUST(cudaStreamSynchronize(r.stream));
  Header h;
  MUST(cudaMemcpy(&h, r.header, sizeof h, cudaMemcpyDefault));
  return h.stalled;
}

// True: it ends, and says who is missing.
bool ends_alone(const Shape& s) {
  return missed_alone(s, 200'000'000, nullptr, [](cudaStream_t) {}) == 2;
}

// The other fails meanwhile, and the host says so. True: the first ends at once.
bool ends_where_another_failed(const Shape& s) {
  uint32_t* given_up;
  MUST(cudaSetDevice(0));
  MUST(cudaMallocHost(&given_up, sizeof *given_up));
  *given_up = 0;
  bool waits = false;
  const uint32_t missed = missed_alone(s, kPatience, given_up, [&](cudaStream_t stream) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    waits = cudaStreamQuery(stream) == cudaErrorNotReady;
    *static_cast<volatile uint32_t*>(given_up) = 1;
  });
  MUST(cudaFreeHost(given_up));
  return waits && missed == 0;
}

// Microseconds of one of `count` operations in a graph: the middle of `rounds` replays.
float microseconds(int count, int rounds, const std::function<void(int rank, cudaStream_t)>& work,
                   const std::function<void(int rank, int round, cudaStream_t)>& before) {
  std::barrier meet(kRanks);
  std::vector<float> times;
  both([&](int rank) {
    MUST(cudaSetDevice(rank));
    Rank r;
    MUST(cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking));
    const cudaGraphExec_t exec = record(r, [&](Rank& me) { work(rank, me.stream); });
    cudaEvent_t start, stop;
    MUST(cudaEventCreate(&start));
    MUST(cudaEventCreate(&stop));
    for (int i = 0; i < rounds; ++i) {
      before(rank, i, r.stream);
      meet.arrive_and_wait();
      MUST(cudaEventRecord(start, r.stream));
      MUST(cudaGraphLaunch(exec, r.stream));
      MUST(cudaEventRecord(stop, r.stream));
      meet.arrive_and_wait();
      MUST(cudaStreamSynchronize(r.stream));
      float ms = 0;
      MUST(cudaEventElapsedTime(&ms, start, stop));
      if (rank == 0) times.push_back(1000 * ms / static_cast<float>(count));
    }
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaStreamDestroy(r.stream));
  });
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

float time_of_join(const Shape& s, int count) {
  Pair pair(std::max(s.part[0], s.part[1]) * s.rows * 4);
  return microseconds(
      count, 15,
      [&](int rank, cudaStream_t stream) {
        Rank me = pair.ranks[rank];
        me.stream = stream;
        for (int j = 0; j < count; ++j) pair.join(me, s, static_cast<uint32_t>(j));
      },
      [&](int rank, int round, cudaStream_t stream) {
        const uint32_t base = 1 + static_cast<uint32_t>(round * count);
        MUST(cudaMemcpyAsync(pair.ranks[rank].header, &base, sizeof base, cudaMemcpyHostToDevice, stream));
      });
}

// NCCL by its C functions. What it says of an error ends the program: the other thread may wait
// for a call that does not come.
class Nccl {
 public:
  explicit Nccl(const char* path) {
    void* const library = dlopen(path, RTLD_NOW);
    if (!library) {
      std::fprintf(stderr, "NCCL: %s\n", dlerror());
      return;
    }
    const auto init = find<int (*)(void**, int, const int*)>(library, "ncclCommInitAll");
    gather_ = find<Gather>(library, "ncclAllGather");
    end_ = find<int (*)(void*)>(library, "ncclCommDestroy");
    text_ = find<const char* (*)(int)>(library, "ncclGetErrorString");
    const int devices[] = {0, 1};
    must(init(comms_, kRanks, devices), "ncclCommInitAll");
    ready_ = true;
  }
  ~Nccl() {
    for (int r = 0; ready_ && r < kRanks; ++r) end_(comms_[r]);
  }
  bool ready() const { return ready_; }
  float time(const Shape& s, int count) const {
    float* buffers[kRanks];
    const size_t words = static_cast<size_t>(s.rows * s.part[0]);
    for (int r = 0; r < kRanks; ++r) {
      MUST(cudaSetDevice(r));
      MUST(cudaMalloc(&buffers[r], 3 * words * sizeof(float)));
    }
    const auto gather = [&](int rank, cudaStream_t stream) {
      must(gather_(buffers[rank], buffers[rank] + words, words, 7, comms_[rank], stream), "ncclAllGather");
    };
    both([&](int rank) {  // it connects at the first call, which a recording must not hold
      MUST(cudaSetDevice(rank));
      gather(rank, nullptr);
      MUST(cudaDeviceSynchronize());
    });
    const float us = microseconds(
        count, 15,
        [&](int rank, cudaStream_t stream) {
          for (int j = 0; j < count; ++j) gather(rank, stream);
        },
        [](int, int, cudaStream_t) {});
    for (float* b : buffers) cudaFree(b);
    return us;
  }

 private:
  using Gather = int (*)(const void*, void*, size_t, int, void*, cudaStream_t);
  template <class F>
  static F find(void* library, const char* name) {
    void* const found = dlsym(library, name);
    if (!found) std::fprintf(stderr, "NCCL: no %s\n", name), std::_Exit(3);
    return reinterpret_cast<F>(found);
  }
  void must(int code, const char* what) const {
    if (code) std::fprintf(stderr, "%s: %s\n", what, text_(code)), std::_Exit(3);
  }
  Gather gather_ = nullptr;
  int (*end_)(void*) = nullptr;
  const char* (*text_)(int) = nullptr;
  void* comms_[kRanks] = {};
  bool ready_ = false;
};

}  // namespace

int check_bits() {
  const uint64_t wrong = wrong_words(400);
  const bool lines_end = ends_alone({1, {4096, 4096}}), pieces_end = ends_alone({512, {1024, 1024}});
  const bool told =
      ends_where_another_failed({1, {4096, 4096}}) && ends_where_another_failed({512, {1024, 1024}});
  const auto say = [](bool ends) { return ends ? "yes" : "NO"; };
  std::printf(
      "bits: %llu words wrong in 400 replays of 11 joins; a wait alone ends: lines %s, pieces %s; at "
      "once where another rank failed: %s\n",
      static_cast<unsigned long long>(wrong), say(lines_end), say(pieces_end), say(told));
  return wrong || !lines_end || !pieces_end || !told;
}

template <class Time>
void print_times(const char* who, Time time) {
  for (const Shape& s : {Shape{1, {1024, 1024}},
                         {1, {4096, 4096}},
                         {1, {8192, 8192}},
                         {8, {4096, 4096}},
                         {64, {4096, 4096}},
                         {1, {64128, 64128}},
                         {256, {4096, 4096}},
                         {2048, {7168, 7168}}})
    std::printf("%s: %lld x %lld words in %.2f us\n", who, static_cast<long long>(s.rows),
                static_cast<long long>(s.width()), time(s, s.rows > 100 ? 10 : 100));
}

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  int count = 0;
  MUST(cudaGetDeviceCount(&count));
  if (count < kRanks) {
    std::fprintf(stderr, "joins: %d GPU here, and 2 are needed\n", count);
    return 2;
  }
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "bits") return check_bits();
  if (what == "times") return print_times("join", time_of_join), 0;
  if (what != "nccl" || argc < 3) return std::fprintf(stderr, "joins bits | times | nccl LIBRARY\n"), 2;
  const Nccl nccl(argv[2]);
  if (!nccl.ready()) return 3;
  print_times("NCCL all-gather", [&](const Shape& s, int joins) { return nccl.time(s, joins); });
}
