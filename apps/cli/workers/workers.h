// Several processes for one run (--workers): the command that the user gave starts mpirun, which
// starts the same command once for each partition. Process 0 is the run, the others are workers.
#pragma once

#include <optional>
#include <string>

#include "commands.h"

namespace invar::cli {

// Keeps the arguments of the program; to be called first.
void remember_arguments(int argc, char** argv);

// The value of --worker-model: the checkpoint's folder on the workers' hosts.
std::string& model_of_workers();

// What signals do to a command.
struct SignalMeaning {
  bool hangup_ends = false;   // SIGHUP
  bool first_drains = false;  // the first SIGTERM or Ctrl-C lets it end what it has begun
};

// Runs the command again under mpirun, if --workers asks for it and this is not one of its
// processes. Returns its exit code, or none: go on here.
std::optional<int> run_under_mpirun(const ExecutionOptions& o, SignalMeaning meaning);

// Whether this is a process that mpirun started. Process 0 of a command that drains is asked for it
// by SIGUSR1, since mpirun ends all of them at SIGTERM.
bool is_in_job();

// Calls `program` in process 0, and the worker's loop in the others; alone, `program`.
int run_in_job(int (*program)(int argc, char** argv, bool), int argc, char** argv, bool environment_was_good);

}  // namespace invar::cli
