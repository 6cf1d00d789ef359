// The floating-point environment is set, restored, and recognized when it is wrong.
#include "num/env.h"

#include <gtest/gtest.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif
#include <cfenv>
#include <csignal>
#include <cstdlib>
#include <string>

#include "base/text/read_float.h"

namespace invar::num {
namespace {

TEST(Env, SetsAndRestoresRounding) {
  ASSERT_TRUE(arithmetic_env_ok());
  for (int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    std::fesetround(mode);
    EXPECT_FALSE(arithmetic_env_ok());
    {
      ArithmeticEnv env;
      EXPECT_TRUE(arithmetic_env_ok());
    }
    EXPECT_EQ(std::fegetround(), mode);
  }
  std::fesetround(FE_TONEAREST);
  EXPECT_TRUE(arithmetic_env_ok());
}

TEST(Env, MendsWhatChanged) {
  for (int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    std::fesetround(mode);
    EXPECT_FALSE(arithmetic_env_ok());
    mend_arithmetic_env();
    EXPECT_TRUE(arithmetic_env_ok());
  }
  std::fesetround(FE_TONEAREST);
}

// The C library rounds as it is told to when it reads text: 0.1 downwards is another double.
TEST(Env, NumbersAreReadToNearest) {
  volatile const char* text = "0.1";
  auto read = [&] { return std::strtod(const_cast<const char*>(text), nullptr); };
  const double nearest = read();
  std::fesetround(FE_DOWNWARD);
  {
    ArithmeticEnv env;
    EXPECT_EQ(read(), nearest);
    EXPECT_EQ(std::fegetround(), FE_TONEAREST);
  }
  EXPECT_EQ(std::fegetround(), FE_DOWNWARD);
  std::fesetround(FE_TONEAREST);
}

// Nobody may have set an environment: settings of a model are read between system calls.
TEST(Env, OurReaderRoundsToNearest) {
  const std::string text = "0.8";
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    float single = 0;
    double both = 0;
    std::fesetround(mode);
    read_float(text.data(), text.data() + text.size(), single);
    read_float(text.data(), text.data() + text.size(), both);
    EXPECT_EQ(std::fegetround(), mode);
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(single, 0x1.99999ap-1f) << mode;
    EXPECT_EQ(both, 0x1.999999999999ap-1) << mode;
  }
}

// Sticky flags are no change: arithmetic raises them all the time.
TEST(Env, LeavesRaisedFlags) {
  std::feclearexcept(FE_ALL_EXCEPT);
  std::feraiseexcept(FE_INEXACT | FE_UNDERFLOW);
  mend_arithmetic_env();
  EXPECT_EQ(std::fetestexcept(FE_INEXACT | FE_UNDERFLOW), FE_INEXACT | FE_UNDERFLOW);
  EXPECT_TRUE(arithmetic_env_ok());
}

#if defined(__x86_64__)
TEST(Env, TrapsAreSurvived) {
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before & ~0x1f80u);
  EXPECT_FALSE(arithmetic_env_ok());  // without a trap
  _mm_setcsr(before);
  survive_traps();
  volatile float three = 3, least = 0x1p-126f;
  _mm_setcsr(before & ~0x1f80u);
  const float third = 1 / three;
  const unsigned mended = _mm_getcsr();
  _mm_setcsr((before & ~0x1f80u) | 0x8000);  // and flushes
  const float subnormal = least / three;
  _mm_setcsr(before);
  EXPECT_EQ(third, 0x1.555556p-2f);
  EXPECT_EQ(mended & 0x1f80u, 0x1f80u);
  EXPECT_EQ(subnormal, 0x1.555558p-128f);
  const auto divide_by_zero = [] {
    asm volatile("xorl %%ecx, %%ecx\n xorl %%edx, %%edx\n divl %%ecx" ::: "eax", "ecx", "edx");
  };
  EXPECT_EXIT(divide_by_zero(), ::testing::KilledBySignal(SIGFPE), "");
  EXPECT_EXIT(std::raise(SIGFPE), ::testing::KilledBySignal(SIGFPE), "");
}

TEST(Env, SetsAndRestoresFlushing) {
  unsigned before = _mm_getcsr();
  for (unsigned flag : {0x8000u, 0x0040u}) {  // FTZ, DAZ
    _mm_setcsr(before | flag);
    EXPECT_FALSE(arithmetic_env_ok());
    {
      ArithmeticEnv env;
      EXPECT_TRUE(arithmetic_env_ok());
    }
    EXPECT_EQ(_mm_getcsr() & 0x8040u, flag);
    _mm_setcsr(before);
  }
}
#elif defined(__aarch64__)
TEST(Env, SetsAndRestoresFlushing) {
  uint64_t before, now;
  asm volatile("mrs %0, fpcr" : "=r"(before));
  asm volatile("msr fpcr, %0" : : "r"(before | uint64_t{1} << 24));  // FZ
  EXPECT_FALSE(arithmetic_env_ok());
  {
    ArithmeticEnv env;
    EXPECT_TRUE(arithmetic_env_ok());
  }
  asm volatile("mrs %0, fpcr" : "=r"(now));
  EXPECT_NE(now & uint64_t{1} << 24, 0u);
  asm volatile("msr fpcr, %0" : : "r"(before));
}
#endif

}  // namespace
}  // namespace invar::num
