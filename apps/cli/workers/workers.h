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

// Runs the command again under mpirun, if --workers asks for it and this is not one of its
// processes. Returns its exit code, or none: go on here. `ends_with_terminal`: whether SIGHUP ends
// the command.
std::optional<int> run_under_mpirun(const ExecutionOptions& o, bool ends_with_terminal);

// Calls `program` in process 0, and the worker's loop in the others; alone, `program`.
int run_in_job(int (*program)(int argc, char** argv, bool), int argc, char** argv, bool environment_was_good);

}  // namespace invar::cli
