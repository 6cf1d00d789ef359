// The subcommands, as tools/options/generate.py makes them of options/commands.toml. Each returns
// the process exit code (docs/reference/cli.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/load/load.h"
#include "bench/run.h"
#include "conformance/machine.h"
#include "generate/options.h"
#include "receipt/receipt.h"

namespace invar::cli {

using generate::ChatOptions;
using generate::ExecutionOptions;
using generate::ModelOptions;
using generate::SamplingOptions;

// RunCommand and so on: the options of each command. run() and so on, Commands: all of them.
#include "options/commands.inc"

// Parses and runs. environment_was_good: num::arithmetic_env_ok() as the program found it.
int parse_and_run(int argc, char** argv, bool environment_was_good);

}  // namespace invar::cli
