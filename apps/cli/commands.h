// The subcommands. Each returns the process exit code (docs/reference/cli.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/run.h"
#include "conformance/machine.h"
#include "generate/options.h"
#include "receipt/receipt.h"

namespace invar::cli {

using generate::ChatOptions;
using generate::ExecutionOptions;
using generate::ModelOptions;
using generate::SamplingOptions;

struct RunCommand {
  ModelOptions model;
  ExecutionOptions execution;
  SamplingOptions sampling;
  std::string operation_set;  // "" = that of an existing plan, reproducible for a new one
  std::optional<std::string> prompt_text, user;
  std::string prompt_file, messages;  // files
  int64_t batch_size = 1;             // prompts of the file that are computed together
  std::string tools;                  // a file
  ChatOptions chat;
  // Absent: receipt.json, or the first of receipt-2.json, ... that is not there.
  std::optional<std::string> receipt_path;
  bool record_model_path = false;  // into the receipt's execution section
  std::vector<std::string> sign;   // files of private keys
  bool salt_prompt = false;
  std::string previous;  // the receipt of the turn before
  bool json = false;
};
struct ExportCommand {
  std::string model_name, output;
  bool colocate_tensors = false;
  bool json = false;
};
struct CompileCommand {
  std::string model, output, emit;
  std::vector<std::string> bound;  // NAME=FILE.npy: inputs that become constants
  std::string operation_set;
  std::optional<Profile> profile;
  std::string accuracy_file;             // of prompts: --check-accuracy
  std::optional<double> accuracy_bound;  // as a power of two
  int opt = -1;                          // the compiler's default
  std::vector<std::string> sizes;        // NAME=N: of symbols, for the report of memory
  std::vector<std::string> dims;         // NAME=N: dimensions that are fixed
  std::string choices = "all";           // numerics choices that may be applied
  bool stateless = false;                // past keys and values stay tensors
  bool json = false;
  int partitions = 0;  // of the report of stages
  int tensor_parallel = 1;
  bool report = false;
};
struct InferCommand {
  std::string plan;
  std::optional<Profile> profile;   // that the plan must have
  std::vector<std::string> tokens;  // of each sequence: ids, comma separated
  std::string tokens_file;          // a JSON list of ids, an object with "tokens", or a list of lists of ids
  ExecutionOptions execution;
  SamplingOptions sampling;
  std::vector<int32_t> stop_tokens;
  std::string output;               // JSON, a line for each sequence; "" = stdout
  std::string logits_output;        // f32 [tokens given, vocab], sequence after sequence: .npy, or bytes
  std::vector<std::string> inputs;  // NAME=FILE.npy: the plan as a function of tensors
  std::string tensors_output;       // folder for NAME.npy of each output; "" = digests alone
  std::optional<std::string> receipt_path;  // of the tensors; absent: no receipt
};
struct TokensCommand {  // encode, decode
  std::string model_name, text, file;
  std::vector<int32_t> tokens;
  bool json = false;
};
struct ChatCommand {
  ModelOptions model;
  ExecutionOptions execution;
  SamplingOptions sampling;
  std::string operation_set;
  std::string tools;  // a file
  ChatOptions chat;
  std::string receipts = "receipts";  // a folder
  int64_t context = 4096;             // positions of the conversation, at most the model's
  bool no_history = false;            // of typed lines, from one conversation to the next
  bool record_model_path = false;
  bool json = false;
};
struct RenderCommand {
  std::string model_name, messages, tools;  // folder or hub name, files
  std::optional<std::string> user;
  ChatOptions chat;
  bool json = false;
};
struct ReceiptCommand {                    // validate, verify, show
  std::vector<std::string> receipts;       // at least one
  std::vector<std::string> receipt_paths;  // more of them, as REE names them
  bool last = false;                       // also the last one that a run of this user wrote
  ModelOptions model;
  ExecutionOptions execution;
  receipt::StepSelection selection;
  std::string steps;  // A:B
  std::vector<std::string> require_keys;
  // Of receipts of tensors, in verify: the ONNX model and how its program was made, and the inputs.
  std::string onnx_model, choices = "all";
  std::vector<std::string> dims, bound, inputs;
  // Of a receipt of embed or rerank, beside --model-name: the text, or the pair of texts.
  std::optional<std::string> text, query, document, prompt_name;
  bool json = false;
};
struct EncoderCommand {  // embed, rerank
  ModelOptions model;
  ExecutionOptions execution;
  std::string operation_set;
  std::vector<std::string> texts;  // rerank: the documents
  std::string text_file, query;
  std::optional<std::string> prompt_name, receipt_path;
  int64_t batch_size = 32;
  std::string output;
  bool json = false;
};
struct DigestCommand {
  ModelOptions model;
  std::string operation_set;
  bool json = false;
};
struct KeyCommand {  // keygen
  std::string path;
  bool json = false;
};
struct SealCommand {                  // sign, redact, seal
  std::vector<std::string> receipts;  // at least one
  std::vector<std::string> keys;      // files of private keys
  std::string output;
  bool json = false;
};
struct DisputeCommand {     // trace, diff, answer, dispute
  std::string file, other;  // diff: both files; answer: the question; dispute: the folder of the case
  std::string receipt;
  ModelOptions model;
  ExecutionOptions execution;
  int64_t rows = -1;   // of this value
  std::string values;  // VALUE:ROW
  std::string output;
  bool close = false;  // whoever has not answered loses
  bool json = false;
};
struct DoctorCommand {
  conformance::MachineOptions options;
  std::string report;  // a file
  bool json = false;
};
struct BenchCommand {
  bench::Settings settings;
  std::vector<std::string> suites;  // empty: all without "model"
  std::string model_name, plot;
  bool json = false;
};

struct DownloadCommand {
  std::string model_name, revision;
  bool json = false;
};
struct CacheCommand {
  std::string tasks_root;
  std::optional<uint64_t> days;
  std::string max_size;  // as parse_size() reads it; "" = no bound
  bool all = false;
  bool json = false;
};

struct TuiCommand {
  std::string model_name, receipts;
};

// Parses and runs. environment_was_good: num::arithmetic_env_ok() as the program found it.
int parse_and_run(int argc, char** argv, bool environment_was_good);

int run(const RunCommand&);
int export_model(const ExportCommand&);
int compile(const CompileCommand&);
int infer(const InferCommand&);
int encode(const TokensCommand&);
int decode(const TokensCommand&);
int render(const RenderCommand&);
int chat(const ChatCommand&);
int embed(const EncoderCommand&);
int rerank(const EncoderCommand&);
int validate(const ReceiptCommand&);
int verify(const ReceiptCommand&);
int show(const ReceiptCommand&);
int digest(const DigestCommand&);
int download(const DownloadCommand&);
int list_cache(const CacheCommand&);
int prune_cache(const CacheCommand&);
int keygen(const KeyCommand&);
int sign(const SealCommand&);
int redact(const SealCommand&);
int seal(const SealCommand&);
int trace(const DisputeCommand&);
int diff(const DisputeCommand&);
int answer(const DisputeCommand&);
int judge(const DisputeCommand&);
int doctor(const DoctorCommand&);
int bench(const BenchCommand&);
int tui(const TuiCommand&);

}  // namespace invar::cli
