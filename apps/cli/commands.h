// The subcommands. Each returns the process exit code (docs/reference/cli.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file/file.h"

namespace invar::cli {

// Files that are read at once. A receipt has a digest of 64 digits for each token, and a line for each tensor.
inline constexpr FileKind kReceiptFile{"a receipt", uint64_t{256} << 20, true},
    kPromptFile{"a prompt file", uint64_t{256} << 20, true},
    kTokensFile{"a file of tokens", uint64_t{64} << 20, true},
    kConfigFile{"a file of settings", uint64_t{16} << 20}, kTokenizerFile{"a tokenizer", uint64_t{256} << 20};

struct ModelOptions {      // where the model and its compiled form are
  std::string model_name;  // folder, or org/name in the local Hugging Face cache
  std::string plan;        // an existing plan: nothing is exported or compiled
  std::string task_dir;    // where exports and plans go; "" = one per model under tasks_root
  std::string tasks_root;  // "" = $XDG_CACHE_HOME/invar/tasks
  bool colocate_tensors = false;
  std::string operation_set;  // of the plan; "" = that of an existing plan, reproducible for a new one
};

struct ExecutionOptions {  // tuning: never changes a bit
  std::string device = "cpu";
  bool cpu_only = false;
  std::string isa;
  int threads = 0;
  int64_t prefill_chunk = 0;
  bool no_kv_cache = false;
};

constexpr int64_t kMaxNewTokens = 128;  // where neither the user nor the checkpoint says it

struct SamplingOptions {  // absent = the checkpoint's generation_config.json, else greedy
  std::optional<int64_t> max_new_tokens;
  std::optional<float> temperature, top_p;
  std::optional<int32_t> top_k;
  uint64_t seed = 0;
  bool no_do_sample = false;
  bool no_generation_config = false;  // take no defaults from it
};

struct RunOptions {
  ModelOptions model;
  ExecutionOptions execution;
  SamplingOptions sampling;
  std::optional<std::string> prompt_text;
  std::string prompt_file;
  std::string receipt_path = "receipt.json";
  bool record_model_path = false;  // into the receipt's execution section
  bool json = false;
};

struct ExportCommand {
  std::string model_name, output;
  bool colocate_tensors = false;
};
struct CompileCommand {
  std::string model, output, emit;
  std::vector<std::string> bound;  // NAME=FILE.npy: inputs that become constants
  std::string operation_set;
  int opt = -1;                    // the compiler's default
  std::vector<std::string> sizes;  // NAME=N: of symbols, for the report of memory
  std::vector<std::string> dims;   // NAME=N: dimensions that are fixed
  std::string choices = "all";     // numerics choices that may be applied
  bool stateless = false;          // past keys and values stay tensors
};
struct InferCommand {
  std::string plan;
  std::vector<std::string> tokens;  // of each sequence: ids, comma separated
  std::string tokens_file;          // a JSON list of ids, an object with "tokens", or a list of lists of ids
  ExecutionOptions execution;
  SamplingOptions sampling;
  std::vector<int32_t> stop_tokens;
  std::string output;               // JSON, a line for each sequence; "" = stdout
  std::string logits_output;        // raw little-endian f32 [tokens given, vocab], sequence after sequence
  std::vector<std::string> inputs;  // NAME=FILE.npy: the plan as a function of tensors
  std::string tensors_output;       // folder for NAME.npy of each output; "" = digests alone
};
struct TokensCommand {  // encode, decode
  std::string model_name, text, file;
  std::vector<int32_t> tokens;
};
struct ReceiptCommand {  // validate, verify
  std::string receipt;
  ModelOptions model;
  ExecutionOptions execution;
  bool json = false;
};

struct DoctorCommand {
  std::string rooms;                 // the rooms' texts from this folder; "" = those of the build
  int threads = 0;                   // 0 = one per core
  double soak = 0;                   // seconds to go on checking
  bool environment_was_good = true;  // of the main thread, before Invar set it
  bool json = false;
};

struct BenchCommand {
  std::vector<std::string> suites;
  std::string op, shape, peer, python, model_name, plot, device = "cpu";
  std::vector<int> threads;
  std::vector<std::string> isas;
  double seconds = 0.4;
  bool json = false;
};

int run(const RunOptions&);
int export_model(const ExportCommand&);
int compile(const CompileCommand&);
int infer(const InferCommand&);
int encode(const TokensCommand&);
int decode(const TokensCommand&);
int validate(const ReceiptCommand&);
int verify(const ReceiptCommand&);
int doctor(const DoctorCommand&);
int bench(const BenchCommand&);

}  // namespace invar::cli
