// Options that several commands have. The files of this folder alone include CLI11 (6 s of compile
// time).
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

#include "commands.h"
#include "help/suggest.h"

namespace invar::cli {

// Those of every command, before or behind its name.
void add_global(CLI::App& app);
void preset_display(const Words& words);
void add_model(CLI::App& app, ModelOptions& o);
void add_operation_set(CLI::App& app, std::string& set);
void add_numerics(CLI::App& app, std::optional<Profile>& profile);
CLI::Validator whole(uint64_t least, uint64_t most);
void add_decimal(CLI::App& app, const std::string& name, std::optional<float>& value, const char* help);
CLI::Validator seconds(double most);
// --name: what receipts call the model.
void add_name(CLI::App&, std::string& name);
void add_execution(CLI::App& app, ExecutionOptions& o);
// Thrown where the command ran in other processes, with their exit code.
struct Launched {
  int code;
};
// What a decoder's partitions are; in commands that run one.
void add_partitions(CLI::App& app, ExecutionOptions& o);
void add_explain(CLI::App& app, ExecutionOptions& o);
void add_sampling(CLI::App& app, SamplingOptions& o);

// The commands that read receipts or write more of them: validate, verify, show, digest, keygen,
// sign, redact, seal, trace, diff, answer, dispute.
struct ReceiptCommands {
  ReceiptCommand validate, verify, show;
  DigestCommand digest;
  KeyCommand keygen;
  SealCommand sign, redact, seal;
  DisputeCommand trace, diff, answer, dispute;
};
struct EncoderCommands {
  EncoderCommand embed, rerank;
};

// What the options of each command are read into.
struct Commands {
  RunCommand run;
  ExportCommand export_model;
  CompileCommand compile;
  TokensCommand encode, decode;
  ChatCommand chat;
  RenderCommand render;
  InferCommand infer;
  EncoderCommands encoders;
  ReceiptCommands receipts;
  DownloadCommand download;
  CacheCommand cache;
  DoctorCommand doctor;
  BenchCommand bench;
};
void add_commands(CLI::App& app, Commands& c, int& result);
void add_encoder_commands(CLI::App& app, EncoderCommands& c, int& result);
void add_receipt_commands(CLI::App& app, ReceiptCommands& c, int& result);

// tui, which hands over to a program of its own.
void add_tui(CLI::App& app, int& result);
// help and completion, of all that `app` has when they run.
void add_help(CLI::App& app, int& result);
// What the definitions say; `above`: the name of the command around it.
CommandText describe(const CLI::App& app, const std::string& above = "");

}  // namespace invar::cli
