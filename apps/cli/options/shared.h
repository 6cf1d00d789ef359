// Options that several commands have. The files of this folder alone include CLI11 (6 s of compile
// time).
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

#include "commands.h"

namespace invar::cli {

void add_model(CLI::App& app, ModelOptions& o);
void add_operation_set(CLI::App& app, std::string& set);
CLI::Validator whole(uint64_t least, uint64_t most);
void add_decimal(CLI::App& app, const std::string& name, std::optional<float>& value, const char* help);
CLI::Validator seconds(double most);
void add_execution(CLI::App& app, ExecutionOptions& o);
// Thrown where the command ran in other processes, with their exit code.
struct Launched {
  int code;
};
// What a decoder's partitions are; in commands that run one.
void add_partitions(CLI::App& app, ExecutionOptions& o);
void add_explain(CLI::App& app, ExecutionOptions& o);
void add_sampling(CLI::App& app, SamplingOptions& o);

// The commands that read receipts or write more of them: validate, verify, keygen, sign, redact,
// seal, trace, diff, answer, dispute.
struct ReceiptCommands {
  ReceiptCommand validate, verify;
  KeyCommand keygen;
  SealCommand sign, redact, seal;
  DisputeCommand trace, diff, answer, dispute;
};
struct EncoderCommands {
  EncoderCommand embed, rerank;
};
void add_encoder_commands(CLI::App& app, EncoderCommands& c, int& result);
void add_receipt_commands(CLI::App& app, ReceiptCommands& c, int& result);

}  // namespace invar::cli
