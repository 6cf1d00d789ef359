// Which instruction sets of cmake/isa.cmake this processor and its system can run.
#pragma once
#include <string_view>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace invar {

inline bool runs_here([[maybe_unused]] std::string_view isa) {
#if defined(__x86_64__)
  if (isa == "avx512")
    return runs_here("avx2") && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (isa == "avx2") {
    unsigned a, b, c, d;  // clang's __builtin_cpu_supports does not know f16c
    return runs_here("scalar") && __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) &&
           (c & bit_F16C);
  }
  if (isa == "scalar") return __builtin_cpu_supports("fma");
#endif
  return true;  // reference; elsewhere what is built is the architecture's base
}

}  // namespace invar
