// The C interface of oneDNN 2 and 3, loaded at run time; declarations follow its headers.
#include "kernels/vendor/onednn.h"

#include <atomic>
#include <type_traits>

#include "device/shared_library.h"
#include "num/env.h"

namespace invar::ops::onednn {
namespace {

struct Version {  // dnnl_version_t
  int major, minor, patch;
  const char* hash;
  unsigned cpu_runtime, gpu_runtime;
};
constexpr unsigned kSequential = 1, kOpenMp = 2;  // dnnl_cpu_runtime

struct Functions {
  int (*sgemm)(char, char, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*, int64_t,
               float, float*, int64_t) = nullptr;
  void (*set_threads)(int) = nullptr;
  std::string version;

  Functions() {
    void* const library = open_library({"libdnnl.so.3", "libdnnl.so.2"});
    if (!library) return;
    auto* const version_of = function_of<const Version*()>(library, "dnnl_version");
    sgemm = function_of<std::remove_pointer_t<decltype(sgemm)>>(library, "dnnl_sgemm");
    set_threads = function_of<void(int)>(library, "omp_set_num_threads");
    const Version* const v = version_of ? version_of() : nullptr;
    // Other runtimes start threads that this process cannot count.
    if (!v || !sgemm || !(v->cpu_runtime == kSequential || (v->cpu_runtime == kOpenMp && set_threads)))
      return;
    version = std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
  }
};
const Functions& functions() {
  static const Functions f;
  return f;
}

std::atomic<uint32_t> g_failed{0};  // not a byte: an atomic byte exchange needs a library on riscv64
bool failed() {
  return g_failed.exchange(0) != 0;
}

const std::string& version() {
  return functions().version;
}

}  // namespace

const Library library = {"oneDNN", version, failed};

void product(const Product& p) {
  const Functions& f = functions();
  if (f.set_threads) f.set_threads(1);  // of this thread
  if (f.sgemm(p.trans_a, p.trans_b, p.m, p.n, p.k, 1, p.a, p.lda, p.b, p.ldb, 0, p.c, p.ldc) != 0)
    g_failed = 1;
  num::mend_arithmetic_env();
}

}  // namespace invar::ops::onednn
