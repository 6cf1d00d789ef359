// How a program is run, and what a receipt says of it in its execution section.
#pragma once

#include <cstdint>
#include <future>
#include <map>
#include <string>

#include "base/operation_set.h"
#include "generate/observer.h"
#include "generate/options.h"
#include "run/function.h"

namespace invar::generate {

// The options that sessions and functions have in common.
run::Options run_options(const ExecutionOptions&);
// The options of a session with memory for `sequences` of `capacity` positions each.
run::Options session_options(const ExecutionOptions&, int64_t capacity, int64_t sequences = 1);

// Starts the GPU, if there is one to start, while the caller does something else.
[[nodiscard]] std::future<void> start(const ExecutionOptions&);

// A note where the system started fewer threads than were wanted.
void report_threads(int started, const ExecutionOptions&, Observer&);

// Informational fields: device, isa, threads, version, machine, digest of the plan, and model_path
// where it is not empty.
// Of a set that is not reproducible also those of describe_kind(), and how the prompt was cut into
// steps (receipt.17).
std::map<std::string, std::string> describe_execution(const run::Session&, const std::string& model_path,
                                                      const plan::Plan&, const Digest& of_plan,
                                                      const ExecutionOptions&);
// A deterministic program repeats its bits where these are the same: hardware, versions, kernels
// (receipt.18).
std::map<std::string, std::string> describe_kind(const run::Session&);

// The same of a function of tensors; `device` is null on the host.
std::map<std::string, std::string> describe_execution(const run::Function&, const Device* device,
                                                      const plan::Plan&);
std::map<std::string, std::string> describe_kind(const run::Function&, const Device* device);

}  // namespace invar::generate
