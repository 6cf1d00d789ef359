// The receipt of a run, filled from what was run.
#pragma once

#include "commands.h"
#include "model.h"
#include "plan/plan.h"
#include "receipt/receipt.h"
#include "run/session.h"

namespace invar::cli {

// Model and program fields: what `run` seals and what `verify` compares a claim with.
receipt::Receipt describe(const Model&, const plan::Plan&);

// Informational fields: device, isa, threads, version, machine; model_path where it is not empty. Of a set that is not reproducible also those of
// describe_kind(), and how the prompt was cut into steps.
std::map<std::string, std::string> describe_execution(const run::Session&, const std::string& model_path,
                                                      OperationSet, const ExecutionOptions&);
// What has to be the same for a deterministic program to repeat its bits: hardware, versions, kernels.
std::map<std::string, std::string> describe_kind(const run::Session&);

}  // namespace invar::cli
