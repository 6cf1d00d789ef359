// Types, groups and choices of options, groups and examples of commands.
#include <algorithm>
#include <string>

#include "help/command_text.h"

namespace invar::cli {
namespace {

constexpr const char *kModel = "Model", *kPrompt = "Prompt", *kSampling = "Sampling", *kDevice = "Device",
                     *kOutput = "Output", *kReceipt = "Receipt", *kCheck = "Checks", *kCompile = "Program",
                     *kEvery = "Every command";

// A name "COMMAND OPTION" stands before the name alone.
constexpr OptionWords kOptions[] = {
    {"model-name", "MODEL", kModel},
    {"revision", "REVISION", kModel},
    {"name", "NAME", kModel},
    {"offline", "", kModel},
    {"infer plan", "FILE", kModel},
    {"plan", "FILE", kModel},
    {"task-dir", "FOLDER", kModel},
    {"tasks-root", "FOLDER", kModel},
    {"colocate-tensors", "", kModel},
    {"numerics", "PROFILE", kModel, "fp32|exact16"},
    {"operation-set", "SET", kModel, "default|deterministic|reproducible"},
    {"download model", "MODEL", kModel},
    {"digest model", "MODEL", kModel},
    {"model", "FILE", kModel},
    {"bind", "NAME=FILE", kCompile},
    {"dim", "NAME=N", kCompile},
    {"choices", "CHOICES", kCompile, "all|none|..."},
    {"check-accuracy", "FILE", kCompile},
    {"accuracy-bound", "NUMBER", kCompile},
    {"opt", "LEVEL", kCompile, "0|1|2|3"},
    {"stateless", "", kCompile},
    {"size", "NAME=N", kOutput},
    {"emit", "STAGE", kOutput, "onnx|repro|plan|torch|program|torch-module|..."},
    {"prompt-text", "TEXT", kPrompt},
    {"prompt-file", "FILE", kPrompt},
    {"messages", "FILE", kPrompt},
    {"user", "TEXT", kPrompt},
    {"batch-size", "N", kPrompt},
    {"tools", "FILE", kPrompt},
    {"system", "TEXT", kPrompt},
    {"enable-thinking", "", kPrompt},
    {"no-enable-thinking", "", kPrompt},
    {"date", "DATE", kPrompt},
    {"tokens", "IDS", kPrompt},
    {"tokens-file", "FILE", kPrompt},
    {"input", "NAME=FILE", kPrompt},
    {"text", "TEXT", kPrompt},
    {"text-file", "FILE", kPrompt},
    {"prompt-name", "NAME", kPrompt},
    {"query", "TEXT", kPrompt},
    {"document", "TEXT", kPrompt},
    {"documents", "FILE", kPrompt},
    {"context", "N", kPrompt},
    {"no-history", "", kPrompt},
    {"decode file", "FILE", kPrompt},
    {"max-new-tokens", "N", kSampling},
    {"min-new-tokens", "N", kSampling},
    {"temperature", "NUMBER", kSampling},
    {"top-k", "N", kSampling},
    {"top-p", "NUMBER", kSampling},
    {"min-p", "NUMBER", kSampling},
    {"repetition-penalty", "NUMBER", kSampling},
    {"no-repeat-ngram-size", "N", kSampling},
    {"suppress-tokens", "IDS", kSampling},
    {"seed", "N", kSampling},
    {"do-sample", "", kSampling},
    {"no-do-sample", "", kSampling},
    {"short-circuit-length", "N", kSampling},
    {"short-circuit-token", "ID", kSampling},
    {"stop", "TEXT", kSampling},
    {"stop-tokens", "IDS", kSampling},
    {"no-generation-config", "", kSampling},
    {"bench device", "DEVICE", kDevice, "cpu|cuda|..."},
    {"device", "DEVICE", kDevice, "cpu|cuda|..."},
    {"cpu-only", "", kDevice},
    {"n-partitions", "N", kDevice},
    {"partitions", "N", kDevice},
    {"workers", "WORKERS", kDevice},
    {"worker-timeout", "SECONDS", kDevice},
    {"worker-model", "FOLDER", kDevice},
    {"tensor-parallel", "N", kDevice},
    {"weights-memory", "SIZE", kDevice},
    {"bench threads", "LIST", kDevice},
    {"threads", "N", kDevice},
    {"isa", "ISA", kDevice, "reference|scalar|avx2|avx512|neon|..."},
    {"prefill-chunk", "N", kDevice},
    {"no-kv-cache", "", kDevice},
    {"explain", "", kOutput},
    {"receipt-path", "FILE", kReceipt},
    {"receipts", "FOLDER", kReceipt},
    {"record-model-path", "", kReceipt},
    {"sign", "FILE", kReceipt},
    {"salt-prompt", "", kReceipt},
    {"previous", "FILE", kReceipt},
    {"receipt", "FILE", kReceipt},
    {"last", "", kReceipt},
    {"key", "FILE", kReceipt},
    {"require-key", "KEY", kCheck},
    {"spot", "N", kCheck},
    {"salt", "TEXT", kCheck},
    {"steps", "A:B", kCheck},
    {"rows", "N", kCheck},
    {"values", "VALUE:ROW", kCheck},
    {"close", "", kCheck},
    {"question", "FILE", kReceipt},
    {"case", "FOLDER", kReceipt},
    {"a", "FILE", kReceipt},
    {"b", "FILE", kReceipt},
    {"path", "FILE", kReceipt},
    {"export output", "FOLDER", kOutput},
    {"output", "FILE", kOutput},
    {"logits-output", "FILE", kOutput},
    {"tensors-output", "FOLDER", kOutput},
    {"json", "", kOutput},
    {"report", "FILE", kOutput},
    {"plot", "FILE", kOutput},
    {"older-than", "DAYS", kCheck},
    {"max-size", "SIZE", kCheck},
    {"all", "", kCheck},
    {"rooms", "FOLDER", kCheck},
    {"soak", "SECONDS", kCheck},
    {"suites", "SUITE", kCheck, "math|norm|gemm|conv|decode|attention|move|model|all"},
    {"op", "NAME", kCheck},
    {"shape", "TEXT", kCheck},
    {"seconds", "SECONDS", kCheck},
    {"peer", "LIBRARY", kCheck, "torch"},
    {"python", "FILE", kCheck},
    {"shell", "SHELL", kOutput, "bash|zsh|fish"},
    {"command", "COMMAND", kOutput},
    {"man", "", kOutput},
    {"man-pages", "FOLDER", kOutput},
    {"progress", "FORM", kEvery, "auto|bar|lines|json|none"},
    {"color", "WHEN", kEvery, "auto|always|never"},
    {"quiet", "", kEvery},
    {"verbose", "", kEvery},
    {"help", "", kEvery},
    {"version", "", kEvery},
};

}  // namespace

const OptionWords* words_for(std::string_view name, std::string_view command) {
  const std::string of_command = std::string(command) + " " + std::string(name);
  for (const std::string_view wanted : {std::string_view(of_command), name})
    for (const OptionWords& w : kOptions)
      if (wanted == w.name) return &w;
  return nullptr;
}

const std::vector<const char*>& option_groups() {
  static const std::vector<const char*> groups = {kModel,   kPrompt, kSampling, kCompile,  kDevice,
                                                  kReceipt, kCheck,  kOutput,   "Options", kEvery};
  return groups;
}

const std::vector<CommandWords>& command_words() {
  static constexpr const char *kRun = "Run a model", *kProve = "Receipts", *kStages = "Stages of a run",
                              *kDispute = "Why results differ", *kMachine = "This machine";
  static const std::vector<CommandWords> all = {
      {"run",
       kRun,
       {"invar run --model-name models/shakespeare-4m --prompt-text \"ROMEO:\" --max-new-tokens 64",
        "invar run --model-name org/name --prompt-file prompts.jsonl --receipt-path r.json --batch-size 8",
        "invar run --model-name org/name --user \"Who art thou?\" --system \"Be brief.\"",
        "echo \"ROMEO:\" | invar run --model-name models/shakespeare-4m --prompt-text -"}},
      {"chat",
       kRun,
       {"invar chat --model-name org/name", "invar chat --model-name org/name --system \"Be brief.\""}},
      {"tui", kRun, {"invar tui", "invar tui --model-name models/shakespeare-4m"}},
      {"embed", kRun, {"invar embed --model-name org/name \"a text\" \"another\" --output vectors.npy"}},
      {"rerank", kRun, {"invar rerank --model-name org/name --query \"a query\" --documents documents.txt"}},
      {"verify",
       kProve,
       {"invar verify receipt.json", "invar verify receipt.json --model-name models/shakespeare-4m",
        "invar verify receipt.json --spot 4", "invar verify --last"}},
      {"validate", kProve, {"invar validate receipt.json", "invar validate *.json --require-key alice.pub"}},
      {"show", kProve, {"invar show receipt.json", "invar show --last --json"}},
      {"digest", kProve, {"invar digest models/shakespeare-4m"}},
      {"keygen", kProve, {"invar keygen alice.key"}},
      {"sign", kProve, {"invar sign receipt.json --key alice.key"}},
      {"redact", kProve, {"invar redact receipt.json --output public.json"}},
      {"seal", kProve, {"invar seal receipts/*.json --output receipts/batch.json --sign alice.key"}},
      {"trace", kDispute, {"invar trace receipt.json --output trace.json"}},
      {"diff",
       kDispute,
       {"invar diff receipt.json other.json", "invar diff receipt.json", "invar diff old-model new-model"}},
      {"answer", kDispute, {"invar answer case/question.json --receipt receipt.json --output case/a/1.json"}},
      {"dispute", kDispute, {"invar dispute case --receipt receipt.json"}},
      {"download", kStages, {"invar download org/name@main"}},
      {"export", kStages, {"invar export --model-name models/shakespeare-4m --output task"}},
      {"compile",
       kStages,
       {"invar compile task/model.onnx", "invar compile model.onnx --dim batch=1 --emit=repro"}},
      {"render", kStages, {"invar render --model-name org/name --messages chat.json"}},
      {"encode", kStages, {"invar encode --model-name models/shakespeare-4m --prompt-text \"ROMEO:\""}},
      {"infer",
       kStages,
       {"invar infer task/plan.invar --tokens 0,5,7 --max-new-tokens 8",
        "invar infer plan.invar --input x=x.npy --tensors-output results"}},
      {"decode", kStages, {"invar decode --model-name models/shakespeare-4m --tokens 5,7"}},
      {"cache", kMachine, {}},
      {"cache list", kMachine, {"invar cache list"}},
      {"cache prune", kMachine, {"invar cache prune --older-than 30", "invar cache prune --max-size 20GB"}},
      {"doctor", kMachine, {"invar doctor", "invar doctor --report report.json"}},
      {"bench", kMachine, {"invar bench gemm decode --threads 1", "invar bench model --device cuda"}},
      {"help", kMachine, {"invar help run"}},
      {"completion", kMachine, {"source <(invar completion bash)"}},
  };
  return all;
}

const CommandWords* words_for_command(std::string_view command) {
  for (const CommandWords& w : command_words())
    if (command == w.name) return &w;
  return nullptr;
}

const std::vector<ExitCode>& exit_codes() {
  static const std::vector<ExitCode> codes = {{0, "done, or verified"},
                                              {1, "a verification ran and did not hold"},
                                              {2, "bad usage or bad input"},
                                              {3, "outside the guarantee: refused by name"},
                                              {70, "a defect of Invar: please report it"}};
  return codes;
}

bool says_all(const std::vector<std::string>& names, std::string_view text) {
  return std::ranges::all_of(names, [&](const std::string& name) { return text.find(name) != text.npos; });
}

bool OptionText::named(std::string_view name) const {
  return std::ranges::count(longs, name) > 0 || std::ranges::count(shorts, name) > 0;
}

std::string OptionText::shown_position() const {
  std::string name = position;
  std::ranges::transform(name, name.begin(), [](char c) { return c >= 'a' && c <= 'z' ? c - 32 : c; });
  return name;
}

const OptionText* find_option(const CommandText& command, std::string_view name) {
  for (const OptionText& o : command.options)
    if (o.named(name)) return &o;
  return nullptr;
}

const CommandText* find_command(const CommandText& command, std::string_view name) {
  for (const CommandText& c : command.commands)
    if (c.name == name || c.name.ends_with(" " + std::string(name)) ||
        std::ranges::count(c.aliases, name) > 0)
      return &c;
  return nullptr;
}

const CommandText* command_named(const CommandText& program, std::string_view name) {
  for (const CommandText& c : program.commands) {
    if (c.name == name) return &c;
    for (const CommandText& deeper : c.commands)
      if (deeper.name == name) return &deeper;
  }
  return &program;
}

}  // namespace invar::cli
