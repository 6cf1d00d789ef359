// The instruction sets and extensions of cmake/isa.cmake that this machine can run.
#pragma once
#include <string_view>
#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace invar {

#if defined(__x86_64__)
// A bit of CPUID leaf 7: registers eax, ebx, ecx, edx are 0 ... 3.
inline bool has_feature(unsigned subleaf, int word, int bit) {
  unsigned r[4];
  if (!__get_cpuid_count(7, 0, &r[0], &r[1], &r[2], &r[3]) || r[0] < subleaf) return false;
  return __get_cpuid_count(7, subleaf, &r[0], &r[1], &r[2], &r[3]) && (r[word] >> bit & 1);
}
// Whether this process may use tile registers: the system gives them to those that ask.
inline bool may_use_tiles() {
#if defined(__linux__)
  constexpr long kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  static const bool given = syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
  return given;
#else
  return false;
#endif
}
#endif

inline bool runs_here([[maybe_unused]] std::string_view isa) {
#if defined(__x86_64__)
  if (isa == "avx512_amx")  // bits amx-tile and amx-int8
    return runs_here("avx512_vnni") && has_feature(0, 3, 24) && has_feature(0, 3, 25) && may_use_tiles();
  if (isa == "avx512_vnni") return runs_here("avx512") && has_feature(0, 2, 11);
  if (isa == "avx2_vnni") return runs_here("avx2") && has_feature(1, 0, 4);
  if (isa == "avx512")
    return runs_here("avx2") && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (isa == "avx2") {
    unsigned a, b, c, d;  // clang's __builtin_cpu_supports does not know f16c
    return runs_here("scalar") && __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) &&
           (c & bit_F16C);
  }
  if (isa == "scalar") return __builtin_cpu_supports("fma");
#elif defined(__aarch64__) && defined(__linux__)
  if (isa == "neon_i8mm") return getauxval(AT_HWCAP2) & 1 << 13;  // HWCAP2_I8MM
  if (isa == "neon_dot") return getauxval(AT_HWCAP) & 1 << 20;    // HWCAP_ASIMDDP
#elif defined(__aarch64__)
#if !defined(__ARM_FEATURE_MATMUL_INT8)
  if (isa == "neon_i8mm") return false;
#endif
#if !defined(__ARM_FEATURE_DOTPROD)
  if (isa == "neon_dot") return false;
#endif
#endif
  return true;  // reference; elsewhere what is built is the architecture's base
}

}  // namespace invar
