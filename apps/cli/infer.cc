// invar infer: a plan on its own. Token ids -> new ids or logits; tensors -> tensors.
#include <cstdio>

#include "artifacts.h"
#include "base/endian.h"
#include "base/file/file.h"
#include "base/file/temporary_file.h"
#include "commands.h"
#include "console.h"
#include "generate/cache/task_cache.h"
#include "generate/engine/execution.h"
#include "generate/engine/generation_loop.h"
#include "generate/onnx/compile_onnx.h"
#include "generate/tensors/table.h"
#include "generate/tensors/tensors.h"
#include "outputs/folders.h"
#include "plan/plan.h"
#include "run/npy.h"

namespace invar::cli {
namespace {

using json::Value;

// Several sequences: a text of ids for each, or a file with a list of lists.
Result<std::vector<std::vector<int32_t>>> sequences_from(const std::vector<std::string>& given,
                                                         const std::string& file,
                                                         const std::string& option = "--tokens") {
  std::vector<std::vector<int32_t>> all;
  if (given.empty() || !file.empty()) {
    INVAR_TRY(Value list, tokens_in(file));
    const bool several = list.is_array() && !list.empty() && list.items[0].is_array();
    if (!several) list = json::list({std::move(list)});
    for (const Value& one : list.items) {
      INVAR_TRY(std::vector<int32_t> ids, ids_of(one, file));
      all.push_back(std::move(ids));
    }
    return all;
  }
  for (const std::string& text : given) {
    const auto list = json::read("[" + text + "]", "");
    if (!list) return bad_input(option + " " + text + ": not token ids, comma separated, such as 0,5,7");
    INVAR_TRY(std::vector<int32_t> ids, ids_of(*list, option + " " + text));
    all.push_back(std::move(ids));
  }
  return all;
}

std::string gigabytes(uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f GB", static_cast<double>(bytes) * 1e-9);
  return text;
}

// Refuses settings that choose new tokens where no tokens are made.
Status check_chooses_nothing(const InferCommand& c, const std::string& option) {
  const generate::GenerationSettings& chooses = c.sampling;
  if (chooses == generate::GenerationSettings() && c.stop_tokens.empty()) return {};
  return bad_input(
      option + " generates no tokens: leave --max-new-tokens, --stop-tokens and the options of sampling out");
}

// Bytes of f32, or of a name in .npy an array of them.
std::string file_of_logits(const std::string& name, const std::string& bytes, int64_t vocab) {
  if (!name.ends_with(".npy")) return bytes;
  const auto row = static_cast<size_t>(vocab) * sizeof(float);
  run::Tensor t{DType::f32, {static_cast<int64_t>(bytes.size() / row), vocab}, {}};
  t.bytes.resize(bytes.size());
  copy_little_endian(t.bytes.data(), bytes.data(), bytes.size(), sizeof(float));
  return run::npy_of(t);
}

// What the encoder reads for each sequence; empty: nobody gave anything.
struct Sources {
  std::vector<std::vector<int32_t>> tokens;
  std::vector<run::Tensor> features;

  size_t size() const { return tokens.size() + features.size(); }
  run::Source at(size_t i) const {
    if (!tokens.empty()) return {.tokens = tokens[i]};
    const std::vector<std::byte>& bytes = features[i].bytes;
    return {.features = {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)}};
  }
  // One for each sequence; one that was given is for all.
  std::vector<run::Source> of(size_t sequences) const {
    std::vector<run::Source> all;
    for (size_t i = 0; size() > 0 && i < sequences; ++i) all.push_back(at(size() == 1 ? 0 : i));
    return all;
  }
};

Result<Sources> sources_from(const InferCommand& c, size_t sequences) {
  Sources sources;
  if (!c.source_tokens.empty()) {
    INVAR_TRY(sources.tokens, sequences_from(c.source_tokens, "", "--source-tokens"));
  }
  for (const std::string& file : c.source_features) {
    INVAR_TRY(sources.features.emplace_back(), run::read_npy(file));
    if (sources.features.back().dtype != DType::f32)
      return bad_input("--source-features " + file + ": not an array of float32");
  }
  if (sources.size() > 1 && sources.size() != sequences)
    return bad_input(std::string(sources.tokens.empty() ? "--source-features: " : "--source-tokens: ") +
                     std::to_string(sources.size()) + " lists for " + std::to_string(sequences) +
                     " of --tokens");
  return sources;
}

bool is_onnx_model(const std::string& file) {
  return file.ends_with(".onnx");
}

Status make_folders(const InferCommand& c, OutputFolders& folders) {
  INVAR_CHECK_OK(folders.make_above("--output", c.output));
  INVAR_CHECK_OK(folders.make_above("--logits-output", c.logits_output));
  INVAR_CHECK_OK(folders.make_above("--output-path", c.output_path));
  return folders.make_above("--receipt-path", c.receipt_path.value_or(""));
}

Status do_infer(const InferCommand& c) {
  if (c.receipt_path)
    return bad_input("--receipt-path is for tensors (--input): `invar run` writes the receipt of an answer");
  if (!c.logits_output.empty()) {
    INVAR_CHECK_OK(check_chooses_nothing(c, "--logits-output"));
  }
  if (is_onnx_model(c.plan))
    return bad_input(c.plan + ": infer takes a model with --input; `invar run --model-name " + c.plan +
                     "` answers with a decoder, and `invar compile` makes a plan for --tokens");
  OutputFolders folders;
  INVAR_CHECK_OK(make_folders(c, folders));
  INVAR_TRY(plan::Plan plan, plan::load(c.plan));
  INVAR_CHECK_OK(generate::check_made_for(plan, c.plan, {}, c.profile));
  INVAR_TRY(const auto sequences, sequences_from(c.tokens, c.tokens_file));
  INVAR_TRY(const Sources given_sources, sources_from(c, sequences.size()));
  const std::vector<run::Source> sources = given_sources.of(sequences.size());
  size_t rows = 0, given = 0;
  for (const auto& tokens : sequences) rows = std::max(rows, tokens.size()), given += tokens.size();
  const bool only_logits = !c.logits_output.empty();
  const int64_t max_new = c.sampling.max_new_tokens.value_or(generate::kMaxNewTokens);
  const std::string of_set = plan.operation_set == OperationSet::reproducible
                                 ? ""
                                 : ", operation set " + std::string(name_of(plan.operation_set));
  uint64_t weights = 0;
  for (const plan::Weight& w : plan.weights) weights += w.length;
  Console console(false);
  const auto loading = console.phase("load");
  std::unique_ptr<generate::Phase> prefill, decoding;
  run::Options options =
      generate::session_options(c.execution, static_cast<int64_t>(rows) + (only_logits ? 0 : max_new),
                                only_logits ? 1 : static_cast<int64_t>(sequences.size()));
  options.load_progress = generate::bytes_of(*loading);
  options.progress = [&](int64_t done, int64_t total) {
    if (prefill) prefill->progress(done, total, "tokens");
  };
  INVAR_TRY(run::Session session, run::Session::open(std::move(plan), folder_of(c.plan), options));
  loading->done(gigabytes(weights) + " of weights, memory " + gigabytes(session.peak_bytes()));
  generate::report_threads(session.threads(), c.execution, console);
  prefill = console.phase("prefill");
  if (only_logits) {
    INVAR_TRY(const std::string all, generate::all_logits(session, sequences, sources));
    prefill->done(std::to_string(sequences.size()) + " sequences");
    INVAR_CHECK_OK(session.weights_unchanged());
    console.note("logits", c.logits_output + ": " + std::to_string(given) + " rows of " +
                               std::to_string(session.vocab()) + " numbers");
    return write_file(c.logits_output, file_of_logits(c.logits_output, all, session.vocab()));
  }
  INVAR_TRY(const sample::Params params, generate::sampling_params(c.sampling));
  const auto advanced = [&](int64_t made) {
    if (prefill) {
      prefill->done(std::to_string(sequences.size()) + " sequences");
      prefill.reset();
      decoding = console.phase("decode");
    }
    decoding->progress(made, max_new * static_cast<int64_t>(sequences.size()), "tokens");
  };
  INVAR_TRY(const auto all,
            generate::generate_many(session, sequences, max_new, params, c.stop_tokens, advanced, sources));
  if (decoding) decoding->done("");
  INVAR_CHECK_OK(session.weights_unchanged());
  size_t count = 0;
  std::string text;
  for (size_t i = 0; i < all.size(); ++i) {
    const generate::Generation& g = all[i];
    count += g.tokens.size();
    Value out = {{"prompt_tokens", sequences[i]}, {"tokens", g.tokens}, {"finish_reason", g.finish_reason}};
    for (const Digest& d : g.logits) out["logits"].add(to_hex(d));
    text += line_of(out);
  }
  console.note("sampling", sample::describe(params) + ", at most " + std::to_string(max_new) + " new tokens");
  char times[96];
  std::snprintf(times, sizeof times, "%zu tokens after %.3f s, %.1f tokens/s", count, all[0].prefill_seconds,
                all[0].decode_tokens_per_second);
  console.note("infer", std::string(times) + " (" + std::string(session.isa()) + of_set + ")");
  return deliver(c.output, text);
}

// NAME.npy. What no file name has is %XX, as in an address.
std::string file_of_output(const std::string& name) {
  std::string file;
  for (const char c : name) {
    const bool plain = static_cast<unsigned char>(c) >= ' ' && c != '/' && c != '%' && c != 127;
    if (plain && !(c == '.' && file.empty())) {
      file += c;
      continue;
    }
    char text[4];
    std::snprintf(text, sizeof text, "%%%02X", static_cast<unsigned>(static_cast<unsigned char>(c)));
    file += text;
  }
  return file + ".npy";
}

// The plan that was given, or that of the model for these inputs (onnx.40).
Result<generate::CompiledModel> program_for(const InferCommand& c, const run::Function::NamedTensors& inputs,
                                            Console& console) {
  if (is_onnx_model(c.plan)) {
    generate::TensorProgram program;
    program.model = c.plan, program.call = &inputs;
    program.profile = c.profile.value_or(Profile::fp32);
    return generate::prepare_call(program, console);
  }
  generate::CompiledModel given;
  INVAR_TRY(given.plan, plan::load(c.plan));
  INVAR_CHECK_OK(generate::check_made_for(given.plan, c.plan, {}, c.profile));
  given.folder = folder_of(c.plan), given.given = true;
  return given;
}

// The plan as a function: tensors from files -> a digest of each output, and files.
Status do_infer_tensors(const InferCommand& c) {
  if (!c.tokens.empty() || !c.tokens_file.empty() || !c.source_tokens.empty() || !c.source_features.empty() ||
      !c.logits_output.empty())
    return bad_input(
        "--input gives tensors: leave --tokens, --tokens-file, --source-tokens, --source-features and "
        "--logits-output out");
  INVAR_CHECK_OK(check_chooses_nothing(c, "--input"));
  OutputFolders folders;
  INVAR_CHECK_OK(make_folders(c, folders));
  Console console(true);
  generate::TableEdges edges;
  run::Function::NamedTensors inputs;
  size_t rows = 0;
  if (!c.table.empty()) {
    if (!is_onnx_model(c.plan))
      return bad_input(
          "--table is for a model: give the .onnx file, which knows its columns, in the place of " + c.plan);
    INVAR_TRY(edges, generate::table_edges(c.plan));
    INVAR_TRY(const generate::Table table, generate::read_csv(c.table));
    INVAR_TRY(inputs, generate::table_inputs(table, edges));
    rows = table.cells.size();
  } else {
    INVAR_TRY(inputs, tensors_from("--input", c.inputs));
  }
  INVAR_TRY(generate::CompiledModel program, program_for(c, inputs, console));
  INVAR_TRY(
      const generate::TensorAnswer answer,
      generate::infer_tensors(std::move(program), c.plan, inputs, c.execution, c.receipt_path, console));
  if (!c.table.empty()) {
    INVAR_TRY(const std::string csv, generate::csv_of(answer.outputs, edges, rows));
    INVAR_CHECK_OK(deliver(c.output_path, csv));
  }
  Value out;
  if (!c.tensors_output.empty()) {
    INVAR_CHECK_OK(folders.make("--tensors-output", c.tensors_output));
  }
  for (const auto& [name, t] : answer.outputs) {
    std::string bytes(t.bytes.size(), '\0');
    copy_little_endian(bytes.data(), t.bytes.data(), bytes.size(), size_of(t.dtype));
    out["outputs"][name] = {
        {"dtype", name_of(t.dtype)}, {"shape", t.shape}, {"sha256", to_hex(sha256(bytes))}};
    if (c.tensors_output.empty()) continue;
    INVAR_CHECK_OK(write_file(c.tensors_output + "/" + file_of_output(name), run::npy_of(t)));
  }
  out["isa"] = answer.isa;
  if (!answer.receipt_hash.empty()) out["receipt_hash"] = answer.receipt_hash;
  if (answer.operation_set != OperationSet::reproducible)
    out["operation_set"] = name_of(answer.operation_set), out["libraries"] = answer.libraries;
  // Standard output has the predictions.
  if (!c.table.empty() && c.output_path.empty() && c.output.empty()) return {};
  return deliver(c.output, line_of(out));
}

}  // namespace

int infer(const InferCommand& c) {
  const bool tensors = !c.inputs.empty() || !c.tensors_output.empty() || !c.table.empty();
  return exit_code(tensors ? do_infer_tensors(c) : do_infer(c));
}

}  // namespace invar::cli
