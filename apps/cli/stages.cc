// export, compile, encode, infer, decode: each stage of the journey alone, its artifact on disk.
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/endian.h"
#include "base/file/file.h"
#include "base/file/temporary_file.h"
#include "commands.h"
#include "console.h"
#include "generate.h"
#include "model.h"
#include "npy.h"
#include "plan/keywords.h"
#include "prepare.h"
#ifdef INVAR_COMPILER
#include "compiler/compiler.h"
#include "checkpoint/checkpoint.h"
#include "onnx/onnx.h"
#endif

namespace invar::cli {
namespace {

using nlohmann::json;

// Prints to stdout, or writes the file.
Status deliver(const std::string& output, const std::string& text) {
  return output.empty() ? write_stdout(text) : write_file(output, text);
}

// Where ids are not given: from a file, a JSON list, or an object with "tokens".
Result<json> tokens_in(const std::string& file) {
  if (file.empty()) return bad_input("no tokens: pass --tokens 0,5,7 or a JSON file of ids");
  INVAR_TRY(std::string text, read_file(file, kTokensFile));
  json j = json::parse(text, nullptr, false);
  if (j.is_object()) j = j.value("tokens", json());
  return j;
}
Result<std::vector<int32_t>> ids_of(const json& list, const std::string& file) {
  if (!list.is_array())
    return bad_input(file + ": neither a JSON list of token ids nor an object with \"tokens\"");
  std::vector<int32_t> ids;
  for (const json& t : list) {
    if (!t.is_number_integer() || t.get<int64_t>() < 0 || t.get<int64_t>() > INT32_MAX)
      return bad_input(file + ": entry " + std::to_string(ids.size()) + " is not a token id");
    ids.push_back(t.get<int32_t>());
  }
  return ids;
}
Result<std::vector<int32_t>> tokens_from(const std::vector<int32_t>& given, const std::string& file) {
  if (!given.empty() && file.empty()) return given;
  INVAR_TRY(const json list, tokens_in(file));
  return ids_of(list, file);
}

// Several sequences: a text of ids for each, or a file with a list of lists.
Result<std::vector<std::vector<int32_t>>> sequences_from(const std::vector<std::string>& given,
                                                         const std::string& file) {
  std::vector<std::vector<int32_t>> all;
  if (given.empty() || !file.empty()) {
    INVAR_TRY(const json list, tokens_in(file));
    const bool several = list.is_array() && !list.empty() && list[0].is_array();
    for (const json& one : several ? list : json::array({list})) {
      INVAR_TRY(std::vector<int32_t> ids, ids_of(one, file));
      all.push_back(std::move(ids));
    }
    return all;
  }
  for (const std::string& text : given) {
    const json list = json::parse("[" + text + "]", nullptr, false);
    if (list.is_discarded())
      return bad_input("--tokens " + text + ": not token ids, comma separated, such as 0,5,7");
    INVAR_TRY(std::vector<int32_t> ids, ids_of(list, "--tokens " + text));
    all.push_back(std::move(ids));
  }
  return all;
}

// NAME=FILE.npy, each.
Result<run::Function::NamedTensors> tensors_from(const std::string& option, const std::vector<std::string>& given) {
  run::Function::NamedTensors tensors;
  for (const std::string& one : given) {
    const size_t equal = one.find('=');
    if (equal == one.npos || equal == 0) return bad_input(option + " " + one + ": not NAME=FILE.npy");
    INVAR_TRY(run::Tensor t, read_npy(one.substr(equal + 1)));
    tensors.emplace_back(one.substr(0, equal), std::move(t));
  }
  return tensors;
}

std::string gigabytes(uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f GB", static_cast<double>(bytes) * 1e-9);
  return text;
}

#ifdef INVAR_COMPILER
// NAME=N, each. Names may hold '='.
Result<std::vector<std::pair<std::string, int64_t>>> sizes_from(const std::string& option,
                                                                const std::vector<std::string>& given) {
  std::vector<std::pair<std::string, int64_t>> sizes;
  for (const std::string& one : given) {
    const size_t equal = one.rfind('=');
    int64_t size = -1;
    if (equal != one.npos) {
      const char* end = one.data() + one.size();
      const auto [at, error] = std::from_chars(one.data() + equal + 1, end, size);
      if (error != std::errc() || at != end) size = -1;
    }
    if (size < 0 || equal == 0) return bad_input(option + " " + one + ": not NAME=N, such as seq=128");
    sizes.emplace_back(one.substr(0, equal), size);
  }
  return sizes;
}

// What the plan needs where its dimensions have these sizes.
Result<std::string> memory_of(const plan::Plan& plan, const std::map<std::string, int64_t>& sizes) {
  INVAR_TRY(const plan::Footprint f, plan::footprint(plan, sizes));
  std::string text = std::to_string(f.weights + f.live) + " bytes: weights " + std::to_string(f.weights) +
                     ", alive together " + std::to_string(f.live) + " (buffers " + std::to_string(f.buffers) +
                     ")";
  std::string at;
  for (const std::string& name : plan.symbols) {
    if (!plan::is_name(name)) continue;
    const auto it = sizes.find(name);
    at += (at.empty() ? " at " : ", ") + name + "=" +
          std::to_string(it == sizes.end() ? plan::kTypical : it->second);
  }
  return at.empty() ? text : text + at + "; alive there " + f.formula;
}

Status do_export(const ExportCommand& c) {
  INVAR_TRY(Place place, resolve(c.model_name));
  INVAR_TRY(std::string path, checkpoint::export_checkpoint(place.folder, c.output, {c.colocate_tensors}));
  return deliver("", path_for_stdout(path) + "\n");
}

Status do_compile(const CompileCommand& c) {
  INVAR_TRY(const OperationSet set, operation_set(c.operation_set));
  INVAR_TRY(onnx::Graph graph, onnx::read(c.model));
  INVAR_TRY(const auto dims, sizes_from("--dim", c.dims));
  INVAR_CHECK_OK(onnx::fix_dims(graph, dims));
  INVAR_TRY(const run::Function::NamedTensors bound, tensors_from("--bind", c.bound));
  for (const auto& [name, t] : bound)
    INVAR_CHECK_OK(onnx::bind_input(graph, name, t.dtype, t.shape, t.bytes.data()));
  compiler::Options options;
  options.folder = folder_of(c.model), options.operation_set = set;
  if (c.opt >= 0) options.opt = c.opt;
  options.choices = c.choices, options.stateless = c.stateless;
  if (!c.emit.empty()) {
    INVAR_TRY(std::string text, compiler::emit(graph, options, c.emit));
    return deliver(c.output, text);
  }
  INVAR_TRY(options.artifacts, artifacts_folder());
  const std::string output = c.output.empty() ? options.folder + "/plan.invar" : c.output;
  std::error_code ec;
  if (!std::filesystem::equivalent(folder_of(output), options.folder, ec))
    return bad_input(output +
                     ": a plan lies beside its model, whose folder holds the weights: write it into " +
                     options.folder);
  INVAR_TRY(const auto given, sizes_from("--size", c.sizes));
  std::map<std::string, int64_t> sizes;
  for (const auto& [name, size] : given) sizes[name] = size;
  INVAR_TRY(plan::Plan plan, compiler::compile_to(graph, options, output));
  INVAR_TRY(const std::string memory, memory_of(plan, sizes));
  return deliver(
      "", path_for_stdout(output) + "\nprogram " + to_hex(plan::digest(plan)) + "\nmemory " + memory + "\n");
}
#else
Status do_export(const ExportCommand&) {
  return not_covered("this build has no exporter: use a full build");
}
Status do_compile(const CompileCommand&) {
  return not_covered("this build has no compiler: use a full build");
}
#endif

// What chooses new tokens has nothing to choose where none are made.
Status check_chooses_nothing(const InferCommand& c, const std::string& option) {
  const SamplingOptions& s = c.sampling;
  if (!s.max_new_tokens && !s.temperature && !s.top_k && !s.top_p && !s.no_do_sample && c.stop_tokens.empty())
    return {};
  return bad_input(
      option + " generates no tokens: leave --max-new-tokens, --stop-tokens and the options of sampling out");
}

Status do_infer(const InferCommand& c) {
  if (!c.logits_output.empty()) {
    INVAR_CHECK_OK(check_chooses_nothing(c, "--logits-output"));
  }
  INVAR_TRY(plan::Plan plan, plan::load(c.plan));
  INVAR_TRY(const auto sequences, sequences_from(c.tokens, c.tokens_file));
  size_t rows = 0;
  for (const auto& tokens : sequences) rows = std::max(rows, tokens.size());
  const bool only_logits = !c.logits_output.empty();
  const int64_t max_new = c.sampling.max_new_tokens.value_or(kMaxNewTokens);
  const std::string of_set = plan.operation_set == OperationSet::reproducible
                                 ? ""
                                 : ", operation set " + std::string(name_of(plan.operation_set));
  uint64_t weights = 0;
  for (const plan::Weight& w : plan.weights) weights += w.length;
  Phase loading("load", false);
  INVAR_TRY(run::Session session,
            run::Session::open(
                std::move(plan), folder_of(c.plan),
                session_options(c.execution, static_cast<int64_t>(rows) + (only_logits ? 0 : max_new),
                                only_logits ? 1 : static_cast<int64_t>(sequences.size()))));
  loading.done(gigabytes(weights) + " of weights, memory " + gigabytes(session.peak_bytes()));
  report_threads(session.threads(), c.execution);
  if (only_logits) {
    std::string all;
    for (const auto& tokens : sequences) {
      session.reset();
      INVAR_TRY(std::span<const float> logits, session.step(tokens, /*all=*/true));
      const size_t at = all.size();
      all.resize(at + logits.size_bytes());
      copy_little_endian(all.data() + at, logits.data(), logits.size_bytes(), sizeof(float));
    }
    INVAR_CHECK_OK(session.weights_unchanged());
    return write_file(c.logits_output, all);
  }
  sample::Params params;
  params.do_sample =
      !c.sampling.no_do_sample && (c.sampling.temperature || c.sampling.top_k || c.sampling.top_p);
  if (params.do_sample) {
    params.temperature = c.sampling.temperature.value_or(1.0f);
    params.top_k = c.sampling.top_k.value_or(0);
    params.top_p = c.sampling.top_p.value_or(1.0f);
    params.seed = c.sampling.seed;
  }
  INVAR_CHECK_OK(sample::check(params));
  std::vector<Generation> all;
  if (sequences.size() == 1) {
    INVAR_TRY(Generation g, generate(session, sequences[0], max_new, params, c.stop_tokens, [](int32_t) {}));
    all.push_back(std::move(g));
  } else {
    INVAR_TRY(all, generate_many(session, sequences, max_new, params, c.stop_tokens));
  }
  INVAR_CHECK_OK(session.weights_unchanged());
  size_t count = 0;
  std::string text;
  for (size_t i = 0; i < all.size(); ++i) {
    const Generation& g = all[i];
    count += g.tokens.size();
    json out = {{"prompt_tokens", sequences[i]}, {"tokens", g.tokens}, {"finish_reason", g.finish_reason}};
    for (const Digest& d : g.logits) out["logits"].push_back(to_hex(d));
    text += line_of(out);
  }
  std::fprintf(stderr, "  sampling  %s, at most %lld new tokens\n", sample::describe(params).c_str(),
               static_cast<long long>(max_new));
  std::fprintf(stderr, "  infer     %zu tokens after %.3f s, %.1f tokens/s (%s%s)\n", count,
               all[0].prefill_seconds, all[0].decode_tokens_per_second, std::string(session.isa()).c_str(),
               of_set.c_str());
  return deliver(c.output, text);
}

// The plan as a function: tensors from files -> a digest of each output, and files.
Status do_infer_tensors(const InferCommand& c) {
  if (!c.tokens.empty() || !c.tokens_file.empty() || !c.logits_output.empty())
    return bad_input("--input gives tensors: leave --tokens, --tokens-file and --logits-output out");
  INVAR_CHECK_OK(check_chooses_nothing(c, "--input"));
  INVAR_TRY(plan::Plan plan, plan::load(c.plan));
  const OperationSet set = plan.operation_set;
  INVAR_TRY(const run::Function::NamedTensors inputs, tensors_from("--input", c.inputs));
  INVAR_TRY(run::Function function,
            run::Function::open(std::move(plan), folder_of(c.plan), run_options(c.execution)));
  INVAR_TRY(const run::Function::NamedTensors outputs, function.run(inputs));
  INVAR_CHECK_OK(function.weights_unchanged());
  json out;
  for (const auto& [name, t] : outputs) {
    std::string bytes(t.bytes.size(), '\0');
    copy_little_endian(bytes.data(), t.bytes.data(), bytes.size(), size_of(t.dtype));
    out["outputs"][name] = {
        {"dtype", name_of(t.dtype)}, {"shape", t.shape}, {"sha256", to_hex(sha256(bytes))}};
    if (c.tensors_output.empty()) continue;
    if (name.empty() || std::filesystem::path(name).filename() != name || name.starts_with('.') ||
        name.find('\0') != name.npos)
      return bad_input("output '" + name + "': no name of a file: leave --tensors-output out");
    INVAR_CHECK_OK(write_file(c.tensors_output + "/" + name + ".npy", npy_of(t)));
  }
  out["isa"] = function.isa();
  if (set != OperationSet::reproducible)
    out["operation_set"] = name_of(set), out["libraries"] = function.libraries();
  return deliver(c.output, line_of(out));
}

Status do_encode(const TokensCommand& c) {
  INVAR_TRY(const Place place, resolve(c.model_name));
  INVAR_TRY(Model model, open_model(place));
  INVAR_TRY(std::vector<int32_t> tokens, model.tokenizer.encode(c.text));
  return deliver("", line_of(json(tokens)));
}

Status do_decode(const TokensCommand& c) {
  INVAR_TRY(const Place place, resolve(c.model_name));
  INVAR_TRY(Model model, open_model(place));
  INVAR_TRY(std::vector<int32_t> tokens, tokens_from(c.tokens, c.file));
  for (const int32_t t : tokens)
    if (t < 0 || t >= model.tokenizer.vocab_size())
      return bad_input("token " + std::to_string(t) + ": outside the vocabulary of " +
                       std::to_string(model.tokenizer.vocab_size()));
  return deliver("", model.tokenizer.decode(tokens) + "\n");
}

int code(const Status& s) {
  return s ? 0 : fail(s.error());
}

}  // namespace

int export_model(const ExportCommand& c) {
  return code(do_export(c));
}
int compile(const CompileCommand& c) {
  return code(do_compile(c));
}
int infer(const InferCommand& c) {
  return code(c.inputs.empty() && c.tensors_output.empty() ? do_infer(c) : do_infer_tensors(c));
}
int encode(const TokensCommand& c) {
  return code(do_encode(c));
}
int decode(const TokensCommand& c) {
  return code(do_decode(c));
}

}  // namespace invar::cli
