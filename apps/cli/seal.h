// The receipt of a run, filled from what was run.
#pragma once

#include "model.h"
#include "plan/plan.h"
#include "receipt/receipt.h"
#include "run/run.h"

namespace invar::cli {

// Model and program fields: what `run` seals and what `verify` compares a claim with.
receipt::Receipt describe(const Model&, const plan::Plan&);

// Informational fields: device, isa, threads, version, machine.
std::map<std::string, std::string> describe_execution(const run::Session&, const std::string& model_path);

}  // namespace invar::cli
