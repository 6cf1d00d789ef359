// The functions of src/num as one instruction set computes them, over arrays: what invar_prove and
// its tests look at. probe.cc is compiled once per instruction set, like a kernel.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace invar::prove {

using Map = void (*)(const float* x, float* y, int n);

struct Function {
  std::string_view name;
  Map map;
};

struct Probe {
  const char* isa;
  int lanes;
  std::span<const Function> functions;  // those of src/num/function_list.h
  void (*atan2)(const float* y, const float* x, float* result, int n);
  Map canonicalize;
  Map exp_stored;                                  // of x <= 0 or NaN
  void (*put_n)(float* y, const float* x, int n);  // load_n and put_n of a partial vector, n <= lanes
  void (*maximum)(const float* a, const float* b, float* y, int n);
  void (*minimum)(const float* a, const float* b, float* y, int n);
  void (*pow)(const float* a, const float* b, float* y, int n);
  // fma(a, b, c), then a + b, a - b, a * b, a / b, sqrt |a|, into y[0], y[n], ... y[5 n].
  void (*arithmetic)(const float* a, const float* b, const float* c, float* y, int n);
  void (*from_bf16)(const uint16_t* x, float* y, int n);
  void (*from_f16)(const uint16_t* x, float* y, int n);
  void (*to_bf16)(const float* x, uint16_t* y, int n);
  void (*to_f16)(const float* x, uint16_t* y, int n);
  float (*row_sum)(const float* x, int64_t n);
  float (*row_sum_squares)(const float* x, int64_t n);
  float (*block_sum)(const float* x, int n);
  // y[j] = contraction of a[0..k) with column j of b [k, 2 * lanes].
  void (*contract)(const float* a, const float* b, int64_t k, float* y);
};

// Instruction sets of this build that this CPU can run.
std::span<const Probe* const> probes();
const Probe* find_probe(std::string_view isa);
// Null: none of that name.
Map find_map(const Probe& probe, std::string_view function);

}  // namespace invar::prove
