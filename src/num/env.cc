#include "num/env.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#elif !defined(__aarch64__)
#include <cfenv>
#endif

namespace invar::num {
namespace {

// The control word, and the one in which nothing is flushed, rounded otherwise, or trapped.
#if defined(__x86_64__)
uint64_t read_control() {
  return _mm_getcsr();
}
void write_control(uint64_t word) {
  _mm_setcsr(static_cast<unsigned>(word));
}
constexpr uint64_t kControl = 0x1f80;  // all exceptions masked; FTZ, DAZ, rounding and sticky flags 0
#elif defined(__aarch64__)
uint64_t read_control() {
  uint64_t word;
  asm volatile("mrs %0, fpcr" : "=r"(word));
  return word;
}
void write_control(uint64_t word) {
  asm volatile("msr fpcr, %0" : : "r"(word));
}
constexpr uint64_t kControl = 0;  // FZ, FZ16, DN, AHP, rounding, traps: all off
#else
uint64_t read_control() {
  return static_cast<uint64_t>(std::fegetround());
}
void write_control(uint64_t word) {
  std::fesetround(static_cast<int>(word));
}
const uint64_t kControl = FE_TONEAREST;
#endif

}  // namespace

ArithmeticEnv::ArithmeticEnv() : saved_(read_control()) {
  write_control(kControl);
}
ArithmeticEnv::~ArithmeticEnv() {
  write_control(saved_);
}

bool arithmetic_env_ok() {
  // volatile: computed now, by this thread's hardware, not by the compiler.
  volatile float least = 0x1p-149f, tiny = 0x1p-126f, half = 0.5f, one = 1.0f, big = 0x1p24f,
                 minus = -0x1p24f;
  volatile float flushed_input = least * big, flushed_output = tiny * half;
  volatile float tie_up = big + one, tie_down = minus - one;  // 2^24 + 1 is a tie: even is 2^24 on both sides
  volatile float above = big + 3.0f, below = minus - 3.0f;    // and 2^24 + 4 here
  volatile double tiny_d = 0x1p-1022;
  volatile double flushed_d = tiny_d * 0.5;
  return flushed_input == 0x1p-125f && flushed_output == 0x1p-127f && tie_up == 0x1p24f &&
         tie_down == -0x1p24f && above == 0x1.000004p24f && below == -0x1.000004p24f &&
         flushed_d == 0x1p-1023;
}

}  // namespace invar::num
