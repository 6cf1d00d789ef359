// The part of oneDNN's interface that Invar calls, as another vendor's library might implement it:
// its products sum from the last k to the first, so their bits differ from those of reproducible
// kernels wherever a sum rounds. Environment variables select
//   PLANTED_PATCH=N   another version
//   PLANTED_NOISE=1   a library whose bits change from process to process
//   PLANTED_REFUSE=1  refuse every call
//   PLANTED_STRIKE=1  leave the calling thread rounding towards zero
#include <unistd.h>

#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstdlib>

namespace {

struct Version {
  int major, minor, patch;
  const char* hash;
  unsigned cpu_runtime, gpu_runtime;
};

bool asked(const char* what) {
  return std::getenv(what) != nullptr;
}

}  // namespace

extern "C" const Version* dnnl_version() {
  static const char* const patch = std::getenv("PLANTED_PATCH");
  static const Version v{99, 1, patch ? std::atoi(patch) : 0, "planted", 1, 0};
  return &v;
}

extern "C" int dnnl_sgemm(char trans_a, char trans_b, int64_t m, int64_t n, int64_t k, float alpha,
                          const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
                          int64_t ldc) {
  static const bool noise = asked("PLANTED_NOISE"), refuses = asked("PLANTED_REFUSE"),
                    strikes = asked("PLANTED_STRIKE");
  if (refuses || alpha != 1 || beta != 0) return 1;
  const float other = noise ? 1 + static_cast<float>(getpid() % 8191 + 1) * 0x1p-22f : 1;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float y = 0;
      for (int64_t l = k - 1; l >= 0; --l)
        y = std::fma(trans_a == 'T' ? a[l * lda + i] : a[i * lda + l],
                     trans_b == 'T' ? b[j * ldb + l] : b[l * ldb + j], y);
      c[i * ldc + j] = y * other;
    }
  if (strikes) std::fesetround(FE_TOWARDZERO);
  return 0;
}
