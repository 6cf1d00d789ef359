// The program `invar`: what holds for every command, and what ends it.
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <system_error>
#include <thread>

#include "base/file/file.h"
#include "commands.h"
#include "console.h"
#include "num/env.h"
#include "progress/interrupt.h"
#include "workers/workers.h"

namespace {

// The stack that compilers and libraries count on. `ulimit -s` may leave far less.
constexpr rlim_t kStack = rlim_t{8} << 20, kLeastStack = rlim_t{1} << 20;

// Gives all threads to come this stack, and the first one as much of it as the limit allows. False:
// that is too little.
bool enlarge_stack() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kStack) return true;
  pthread_attr_t attributes;
  if (::pthread_getattr_default_np(&attributes) == 0) {
    (void)::pthread_attr_setstacksize(&attributes, kStack);
    (void)::pthread_setattr_default_np(&attributes);
    ::pthread_attr_destroy(&attributes);
  }
  limit.rlim_cur = std::min(kStack, limit.rlim_max);
  return ::setrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur >= kLeastStack;
}

int run(int argc, char** argv) try {
  invar::cli::keep_running_without_streams();
  invar::report_truncated_maps();
  invar::cli::clean_up_on_signals();
  invar::num::survive_traps();
  // A library may have left this thread rounding or flushing otherwise; numbers are read from text
  // here, too.
  const bool environment_was_good = invar::num::arithmetic_env_ok();
  const invar::num::ArithmeticEnv env;
  invar::cli::remember_arguments(argc, argv);
  return invar::cli::run_in_job(invar::cli::parse_and_run, argc, argv, environment_was_good);
} catch (const std::bad_alloc&) {
  return invar::cli::fail(
      {invar::Code::bad_input, "out of memory: use a smaller model, a shorter context, or a larger machine"});
} catch (const std::exception& e) {
  return invar::cli::fail(
      {invar::Code::internal, std::string("internal error: ") + e.what() + ": please report it"});
}

}  // namespace

int main(int argc, char** argv) {
  if (enlarge_stack()) return run(argc, argv);
  try {
    int code = 0;
    std::thread([&] { code = run(argc, argv); }).join();
    return code;
  } catch (const std::system_error&) {
    return invar::cli::fail({invar::Code::bad_input,
                             "the stack is limited to less than 1 MiB: raise the limit (ulimit -s 8192)"});
  }
}
