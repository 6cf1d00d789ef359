// The program `invar`: what holds for every command, and what ends it.
#include <exception>
#include <new>
#include <string>

#include "base/file/file.h"
#include "commands.h"
#include "console.h"
#include "num/env.h"
#include "progress/interrupt.h"
#include "workers/workers.h"

int main(int argc, char** argv) try {
  invar::cli::keep_running_without_streams();
  invar::report_truncated_maps();
  invar::cli::clean_up_on_signals();
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
