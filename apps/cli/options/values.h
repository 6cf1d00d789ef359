// Values that are checked before any work: devices, instruction sets.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>

#include "generate/options.h"
#include "help/suggest.h"

namespace invar::cli {

// Ends the parse with an error of its own.
struct Refused {
  Advice advice;
};

// --device: cpu, cuda or cuda:N; of a list all of them.
void check_device(CLI::Option* device, bool is_list);
// --isa: one of those that this CPU and build have; with a delimiter of the option each of a list.
void check_isa(CLI::Option* isa);

// Throws Refused where a GPU is asked for and does not answer. Of workers each process sees to its
// own.
void expect_devices(const generate::ExecutionOptions&);
void expect_device(const std::string& name);

}  // namespace invar::cli
