// The C interface of cuBLAS 12 and 13, loaded at run time; declarations follow its headers.
#include "kernels/vendor/cublas.h"

#include <atomic>
#include <map>
#include <type_traits>

#include "base/sync/mutex.h"
#include "device/shared_library.h"

namespace invar::ops::cublas {
namespace {

struct Context;  // what a cublasHandle_t points to
using Handle = Context*;
enum Operation { kAsItIs = 0, kTransposed = 1 };        // cublasOperation_t
enum DataType { kF32 = 0, kBf16 = 14 };                 // cudaDataType
enum Compute { kCompute32 = 68, kCompute32Tf32 = 77 };  // cublasComputeType_t
constexpr int kDefaultMath = 0, kNoAtomics = 0, kDefaultAlgorithm = -1;
enum Property { kMajor, kMinor, kPatch };  // libraryPropertyType

struct Functions {
  int (*create)(Handle*) = nullptr;
  int (*destroy)(Handle) = nullptr;
  int (*set_stream)(Handle, Stream) = nullptr;
  int (*set_workspace)(Handle, void*, size_t) = nullptr;
  int (*set_math)(Handle, int) = nullptr;
  int (*set_atomics)(Handle, int) = nullptr;
  int (*gemm)(Handle, int, int, int64_t, int64_t, int64_t, const void*, const void*, int, int64_t,
              const void*, int, int64_t, const void*, void*, int, int64_t, int, int) = nullptr;
  std::string version;

  Functions() {
    void* const library = open_library({"libcublas.so.13", "libcublas.so.12"});
    if (!library) return;
    const auto get = [library](auto*& f, const char* name) {
      f = function_of<std::remove_pointer_t<std::remove_reference_t<decltype(f)>>>(library, name);
      return f != nullptr;
    };
    int (*property)(int, int*) = nullptr;
    if (!get(create, "cublasCreate_v2") || !get(destroy, "cublasDestroy_v2") ||
        !get(set_stream, "cublasSetStream_v2") || !get(set_workspace, "cublasSetWorkspace_v2") ||
        !get(set_math, "cublasSetMathMode") || !get(set_atomics, "cublasSetAtomicsMode") ||
        !get(gemm, "cublasGemmEx_64") || !get(property, "cublasGetProperty"))
      return;
    for (const Property p : {kMajor, kMinor, kPatch}) {
      int value = 0;
      property(p, &value);
      version += (p == kMajor ? "" : ".") + std::to_string(value);
    }
  }
};
const Functions& functions() {
  static const Functions f;
  return f;
}
const std::string& version() {
  return functions().version;
}

std::atomic<bool> g_failed{false};
bool failed() {
  return g_failed.exchange(false);
}

// One handle per stream; streams come and go with their sessions.
struct Handles {
  Mutex mutex;
  std::map<Stream, Handle> of;
};
Handles& handles() {
  static Handles h;
  return h;
}

std::shared_ptr<void> attach(Stream stream) {
  const Functions& f = functions();
  Handle handle = nullptr;
  if (f.create(&handle) != 0) return nullptr;
  if (f.set_stream(handle, stream) != 0 || f.set_math(handle, kDefaultMath) != 0 ||
      f.set_atomics(handle, kNoAtomics) != 0) {
    f.destroy(handle);
    return nullptr;
  }
  {
    const std::lock_guard lock(handles().mutex);
    handles().of[stream] = handle;
  }
  return std::shared_ptr<void>(handle, [stream](void* p) {
    {
      const std::lock_guard lock(handles().mutex);
      if (const auto it = handles().of.find(stream); it != handles().of.end() && it->second == p)
        handles().of.erase(it);
    }
    functions().destroy(static_cast<Handle>(p));
  });
}

Handle handle_of(Stream stream) {
  const std::lock_guard lock(handles().mutex);
  const auto it = handles().of.find(stream);
  return it == handles().of.end() ? nullptr : it->second;
}

}  // namespace

const Library library = {"cuBLAS", version, failed, attach};

// cuBLAS is column-major: it computes c^T = b^T a^T.
void enqueue(const Product& p, Stream stream) {
  const Functions& f = functions();
  const float one = 1, zero = 0;
  const Handle handle = handle_of(stream);
  const int type = p.type == Type::bf16 ? kBf16 : kF32;
  if (!handle || f.set_workspace(handle, p.workspace, kWorkspace) != 0 ||
      f.gemm(handle, p.trans_b ? kTransposed : kAsItIs, kAsItIs, p.n, p.m, p.k, &one, p.b, type, p.ldb, p.a,
             type, p.lda, &zero, p.c, kF32, p.n, p.tf32 ? kCompute32Tf32 : kCompute32,
             kDefaultAlgorithm) != 0)
    g_failed = true;
}

}  // namespace invar::ops::cublas
