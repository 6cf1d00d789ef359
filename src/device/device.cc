// The CUDA implementation of Device, or a stub that says that this build has none.
#include "device/device.h"

#include <unistd.h>

#include <charconv>
#include <optional>

#include "device/find_device.h"
#include "device/gpu_architectures.h"
#include "device/machine.h"
#include "device/peers.h"

namespace invar {

// The file of the first NVIDIA GPU, which its driver makes.
constexpr const char* kFirstGpu = "/dev/nvidia0";

// The index of a GPU; none: the host.
static Result<std::optional<int>> index_of(const std::string& name) {
  if (name == "cpu") return std::optional<int>();
  int index = 0;
  bool known = name == "cuda";
  if (name.starts_with("cuda:")) {
    const char* const end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + 5, end, index);
    known = error == std::errc() && stop == end;
  }
  if (!known) return bad_input("device '" + name + "' is not known; use cpu, cuda or cuda:N");
  return std::optional(index);
}

Result<std::shared_ptr<Device>> Device::named(const std::string& name) {
  INVAR_TRY(const std::optional<int> index, index_of(name));
  return index ? open(*index) : std::shared_ptr<Device>();
}

}  // namespace invar

#ifndef INVAR_CUDA

namespace invar {

Result<std::shared_ptr<Device>> Device::open(int) {
  const std::string here = gpu_of_driver();
  return bad_input("this build has no CUDA kernels" + (here.empty() ? "" : " for the " + here) +
                   "; install CUDA's compiler nvcc (13.0 or newer) and build again");
}

std::future<void> start_device(const std::string&) {
  return {};
}

bool reach_memory(Device&, Device&) {
  return false;
}

Status make_ready(Device&, const Device::Graph&) {
  return {};
}

std::string idle_gpu() {
  return ::access(kFirstGpu, F_OK) != 0 ? "" : "an NVIDIA GPU is here, and this build computes on CPUs alone";
}

Status find_device(const std::string& name) {
  const auto opened = Device::named(name);
  return opened ? Status() : opened.error();
}

}  // namespace invar

#else

#include <cuda_runtime_api.h>

#include <cstring>
#include <set>
#include <system_error>

namespace invar {
namespace {

std::string text(cudaError_t e) {
  return std::string(cudaGetErrorString(e)) + " (" + cudaGetErrorName(e) + ")";
}
std::string version(int v) {
  return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10);
}
std::string megabytes(uint64_t bytes) {
  return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB";
}

class Cuda final : public Device {
 public:
  explicit Cuda(Info info) : info_(std::move(info)) {}
  ~Cuda() override {
    make_current();
    if (stream_) cudaStreamDestroy(stream_);
  }
  Status start() {
    make_current();
    if (cudaGetDeviceCount(&others_) == cudaSuccess) --others_;
    return done(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cannot make a stream");
  }

  const Info& info() const override { return info_; }
  Stream stream() const override { return stream_; }
  void make_current() const override { cudaSetDevice(info_.index); }

  Result<void*> allocate(uint64_t bytes, const std::string& purpose) override {
    make_current();
    void* p = nullptr;
    const cudaError_t e = cudaMalloc(&p, bytes ? bytes : 1);
    if (e == cudaSuccess) return p;
    cudaGetLastError();
    if (e != cudaErrorMemoryAllocation) return done(e, "cannot take memory for " + purpose).error();
    size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    return bad_input("out of memory on " + where() + ": " + megabytes(bytes) + " for " + purpose + ", " +
                     megabytes(free) + " free of " + megabytes(total) +
                     "; choose fewer sequences, a smaller capacity or chunk, or --device cpu");
  }
  void free(void* p) override {
    make_current();
    cudaFree(p);
  }
  uint64_t free_memory() const override {
    make_current();
    size_t free = 0, total = 0;
    return cudaMemGetInfo(&free, &total) == cudaSuccess ? free : 0;
  }
  Result<void*> allocate_pinned(uint64_t bytes, const std::string& purpose) override {
    make_current();
    void* p = nullptr;
    if (cudaMallocHost(&p, bytes ? bytes : 1) == cudaSuccess) return p;
    cudaGetLastError();
    return bad_input("out of memory: " + megabytes(bytes) + " of pinned memory for " + purpose +
                     "; choose fewer sequences, a smaller capacity or chunk, or --device cpu");
  }
  void free_pinned(void* p) override { cudaFreeHost(p); }

  Status upload(void* device, const void* host, size_t bytes) override {
    return done(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_), "cannot copy to it");
  }
  Status download(void* host, const void* device, size_t bytes) override {
    return done(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream_), "cannot copy from it");
  }
  Status copy(void* to, const void* from, size_t bytes) override {
    reach(to);
    return done(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "cannot copy within it");
  }
  Status fill(void* device, int byte, size_t bytes) override {
    return done(cudaMemsetAsync(device, byte, bytes, stream_), "cannot fill memory");
  }
  Status wait() override {
    INVAR_CHECK_OK(done(cudaGetLastError(), "a kernel did not start"));
    return done(cudaStreamSynchronize(stream_), "a kernel failed");
  }

  struct Recorded final : Graph {
    explicit Recorded(cudaGraphExec_t e) : exec(e) {}
    ~Recorded() override { cudaGraphExecDestroy(exec); }
    cudaGraphExec_t exec;
  };
  Status begin_capture() override {
    return done(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "cannot record");
  }
  Result<std::unique_ptr<Graph>> end_capture() override {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    INVAR_CHECK_OK(done(cudaStreamEndCapture(stream_, &graph), "cannot record"));
    const cudaError_t e = cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphDestroy(graph);
    INVAR_CHECK_OK(done(e, "cannot record"));
    return std::unique_ptr<Graph>(std::make_unique<Recorded>(exec));
  }
  Status replay(const Graph& g) override {
    return done(cudaGraphLaunch(static_cast<const Recorded&>(g).exec, stream_), "cannot run a graph");
  }
  Status upload(const Graph& g) {
    return done(cudaGraphUpload(static_cast<const Recorded&>(g).exec, stream_), "cannot make a graph ready");
  }
  // Whether work of this GPU can use the memory of another one, from now on.
  bool reach(int other) {
    int can = 0;
    if (cudaDeviceCanAccessPeer(&can, info_.index, other) != cudaSuccess || !can) return false;
    make_current();
    const cudaError_t e = cudaDeviceEnablePeerAccess(other, 0);
    cudaGetLastError();  // it may be enabled already
    return e == cudaSuccess || e == cudaErrorPeerAccessAlreadyEnabled;
  }
  Result<double> time(const Graph& g) override {
    struct Event {
      Event() { cudaEventCreate(&event); }
      ~Event() { cudaEventDestroy(event); }
      cudaEvent_t event = nullptr;
    } start, stop;
    INVAR_CHECK_OK(done(cudaEventRecord(start.event, stream_), "cannot time"));
    INVAR_CHECK_OK(replay(g));
    INVAR_CHECK_OK(done(cudaEventRecord(stop.event, stream_), "cannot time"));
    INVAR_CHECK_OK(wait());
    float milliseconds = 0;
    INVAR_CHECK_OK(done(cudaEventElapsedTime(&milliseconds, start.event, stop.event), "cannot time"));
    return milliseconds * 1e-3;
  }

 private:
  std::string where() const { return "cuda:" + std::to_string(info_.index) + " (" + info_.name + ")"; }
  Status done(cudaError_t e, std::string what) const {
    if (e == cudaSuccess) return {};
    for (cudaError_t fault : {cudaErrorIllegalAddress, cudaErrorMisalignedAddress, cudaErrorLaunchFailure,
                              cudaErrorIllegalInstruction, cudaErrorHardwareStackError,
                              cudaErrorECCUncorrectable, cudaErrorLaunchTimeout})
      if (e == fault) what = "a kernel failed, and this process cannot use the device any more";
    return Error{Code::bad_input, where() + ": " + what + ": " + text(e) + "; --device cpu still works"};
  }

  // Memory of another GPU: from now on copies to it go directly, if there is a path between the
  // two.
  void reach(const void* memory) {
    cudaPointerAttributes at{};
    if (others_ == 0 || cudaPointerGetAttributes(&at, memory) != cudaSuccess) return;
    if (at.device < 0 || at.device == info_.index || asked_.contains(at.device)) return;
    asked_.insert(at.device);
    reach(at.device);
  }

  Info info_;
  cudaStream_t stream_ = nullptr;
  int others_ = 0;       // GPUs beside this one
  std::set<int> asked_;  // of these, the ones that copies went to
};

}  // namespace

// Asks the driver about a GPU, whether or not a program uses it.
static Result<Device::Info> info_of(int index) {
  Device::Info info;
  info.index = index;
  int count = 0;
  const cudaError_t e = cudaGetDeviceCount(&count);
  cudaRuntimeGetVersion(&info.runtime);
  cudaDriverGetVersion(&info.driver);
  if (e == cudaErrorInsufficientDriver && info.driver != 0)
    return bad_input("the CUDA driver is too old: it serves CUDA " + version(info.driver) +
                     ", this program needs " + version(info.runtime) +
                     "; update the driver, or use the device cpu");
  if (e == cudaErrorInsufficientDriver || info.driver == 0)
    return bad_input("no CUDA driver is installed; install NVIDIA's driver, or use the device cpu");
  if (e == cudaErrorNoDevice || (e == cudaSuccess && count == 0))
    return bad_input("there is no CUDA device here; use the device cpu");
  if (e != cudaSuccess) return bad_input("CUDA does not start: " + text(e) + "; use the device cpu");
  if (index < 0 || index >= count)
    return bad_input("there is no device cuda:" + std::to_string(index) + "; this machine has cuda:0" +
                     (count > 1 ? " ... cuda:" + std::to_string(count - 1) : ""));
  cudaDeviceProp p;
  if (const cudaError_t bad = cudaGetDeviceProperties(&p, index); bad != cudaSuccess)
    return bad_input("cuda:" + std::to_string(index) + " does not answer: " + text(bad) +
                     "; use the device cpu");
  info.name = p.name;
  info.compute = p.major * 10 + p.minor;
  info.processors = p.multiProcessorCount;
  info.memory = p.totalGlobalMem;
  if (!has_code(INVAR_CUDA_ARCHITECTURES, info.compute))
    return bad_input("this build has no code for cuda:" + std::to_string(index) + ", " + describe(info) +
                     ", but for " + capabilities(INVAR_CUDA_ARCHITECTURES) +
                     "; build again with --cuda all, or use the device cpu");
  return info;
}

std::future<void> start_device(const std::string& name) {
  const auto index = index_of(name);
  if (!index || !*index) return {};
  try {
    return std::async(std::launch::async, [name] { (void)Device::named(name); });
  } catch (const std::system_error&) {
    return {};  // the system refuses another thread
  }
}

std::string idle_gpu() {
  return ::access(kFirstGpu, F_OK) != 0
             ? ""
             : "an NVIDIA GPU is here and idle: --device cuda computes on it, the same bits; --cpu-only says "
               "that this is meant";
}

bool reach_memory(Device& from, Device& to) {
  const int other = to.info().index;
  return from.info().index != other && static_cast<Cuda&>(from).reach(other);
}

Status make_ready(Device& device, const Device::Graph& graph) {
  return static_cast<Cuda&>(device).upload(graph);
}

Status find_device(const std::string& name) {
  INVAR_TRY(const std::optional<int> index, index_of(name));
  if (!index) return {};
  const auto found = info_of(*index);
  return found ? Status() : found.error();
}

Result<std::shared_ptr<Device>> Device::open(int index) {
  INVAR_TRY(Info info, info_of(index));
  auto device = std::make_shared<Cuda>(std::move(info));
  INVAR_CHECK_OK(device->start());
  return std::shared_ptr<Device>(std::move(device));
}

}  // namespace invar

#endif
