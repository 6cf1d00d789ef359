// Reads, sets and checks the floating-point control word of a thread.
#include "num/env.h"

#if defined(__x86_64__)
#include <signal.h>
#include <ucontext.h>
#include <xmmintrin.h>
#elif !defined(__aarch64__) && !defined(__riscv) && !defined(__powerpc64__) && !defined(__s390x__)
#include <cfenv>
#endif

namespace invar::num {
namespace {

// The control word, the one in which nothing is flushed, rounded otherwise, or trapped, and the
// bits of it that arithmetic itself sets: sticky flags of exceptions.
#if defined(__x86_64__)
uint64_t read_control() {
  return _mm_getcsr();
}
void write_control(uint64_t word) {
  _mm_setcsr(static_cast<unsigned>(word));
}
constexpr uint64_t kControl = 0x1f80;  // all exceptions masked; FTZ, DAZ, rounding and sticky flags 0
constexpr uint64_t kSticky = 0x3f;

// No arithmetic of ours runs in the x87 unit, but the C library reads its rounding mode when it
// turns text into numbers.
uint64_t read_x87() {
  uint16_t word;
  asm volatile("fnstcw %0" : "=m"(word));
  return word;
}
void write_x87(uint64_t word) {
  const auto w = static_cast<uint16_t>(word);
  asm volatile("fldcw %0" : : "m"(w));
}
constexpr uint64_t kX87 = 0x37f;  // all exceptions masked, 64-bit precision, to nearest
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
constexpr uint64_t kSticky = 0;   // they have a register of their own
#elif defined(__riscv)
uint64_t read_control() {
  uint64_t word;
  asm volatile("frcsr %0" : "=r"(word));
  return word;
}
void write_control(uint64_t word) {
  asm volatile("fscsr %0" : : "r"(word));
}
constexpr uint64_t kControl = 0;  // rounding; there is nothing to flush or trap
constexpr uint64_t kSticky = 0x1f;
#elif defined(__powerpc64__)
uint64_t read_control() {
  double word;
  asm volatile("mffs %0" : "=f"(word));
  return __builtin_bit_cast(uint64_t, word);
}
void write_control(uint64_t word) {
  asm volatile("mtfsf 255, %0" : : "f"(__builtin_bit_cast(double, word)));
}
constexpr uint64_t kControl = 0;  // RN, NI (flushing), enabled traps: all off
constexpr uint64_t kSticky =
    0xffffffffffffff00;  // all but VE, OE, UE, ZE, XE, NI, RN; decimal rounding is not used
#elif defined(__s390x__)
uint64_t read_control() {
  uint32_t word;
  asm volatile("efpc %0" : "=d"(word));
  return word;
}
void write_control(uint64_t word) {
  asm volatile("sfpc %0" : : "d"(static_cast<uint32_t>(word)));
}
constexpr uint64_t kControl = 0;          // binary rounding, masks of traps
constexpr uint64_t kSticky = 0x00ffff70;  // flags, data exception code, decimal rounding
#else
uint64_t read_control() {
  return static_cast<uint64_t>(std::fegetround());
}
void write_control(uint64_t word) {
  std::fesetround(static_cast<int>(word));
}
const uint64_t kControl = FE_TONEAREST;
constexpr uint64_t kSticky = 0;
#endif

}  // namespace

void mend_arithmetic_env() {
  if ((read_control() & ~kSticky) != kControl) write_control(kControl);
}

#if defined(__x86_64__)
ArithmeticEnv::ArithmeticEnv() : saved_(read_control() | read_x87() << 32) {
  write_control(kControl);
  write_x87(kX87);
}
ArithmeticEnv::~ArithmeticEnv() {
  write_control(saved_ & 0xffffffff);
  write_x87(saved_ >> 32);
}
#else
ArithmeticEnv::ArithmeticEnv() : saved_(read_control()) {
  write_control(kControl);
}
ArithmeticEnv::~ArithmeticEnv() {
  write_control(saved_);
}
#endif

#if defined(__x86_64__)
namespace {

void mend_trapped(int number, siginfo_t* info, void* context) {
  auto* const state = static_cast<ucontext_t*>(context)->uc_mcontext.fpregs;
  if (info->si_code == FPE_INTDIV || info->si_code == FPE_INTOVF || info->si_code <= 0 || !state) {
    ::signal(number, SIG_DFL);  // the operation is repeated, and ends the process
    if (info->si_code <= 0) ::raise(number);
    return;
  }
  state->mxcsr = static_cast<uint32_t>(kControl);
  state->cwd = static_cast<uint16_t>(kX87);
  state->swd &= 0x7f00;  // what is pending traps again otherwise
}

}  // namespace

void survive_traps() {
  struct sigaction action = {};
  action.sa_sigaction = mend_trapped;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGFPE, &action, nullptr);
}
#else
void survive_traps() {}  // Linux unmasks none there
#endif

bool arithmetic_env_ok() {
  if ((read_control() & ~kSticky) != kControl) return false;  // an exception that traps would end the process
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
