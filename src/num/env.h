// The floating-point environment of a thread: round to nearest even, gradual underflow
// (spec/formats.md formats.4). Libraries change it: loading anything linked with -ffast-math sets
// flush-to-zero for the thread.
#pragma once

#include <cstdint>

namespace invar::num {

// Restores the environment of this thread if it is no longer as specified. Takes a few cycles, so
// that a thread can call it for every piece of work: a library's hooks or a signal handler may have
// changed it in between.
void mend_arithmetic_env();

// Keeps a program going where an exception that a library or a debugger unmasked traps (SIGFPE).
// The operation that trapped, and all after it, run in the environment as specified. A division of
// integers by zero ends the process as before.
void survive_traps();

// Sets the environment of this thread for its lifetime and restores what it found.
struct ArithmeticEnv {
  ArithmeticEnv();
  ~ArithmeticEnv();
  ArithmeticEnv(const ArithmeticEnv&) = delete;
  ArithmeticEnv& operator=(const ArithmeticEnv&) = delete;

 private:
  uint64_t saved_;
};

// True if this thread computes as specified. Looks at results of arithmetic, not only at control
// registers.
bool arithmetic_env_ok();

}  // namespace invar::num
