// export, compile, encode, decode: each stage of the journey alone, its artifact on disk.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>

#include "artifacts.h"
#include "base/file/file.h"
#include "base/file/temporary_file.h"
#include "base/hash/sha256.h"
#include "base/text/display.h"
#include "commands.h"
#include "console.h"
#include "exporter/transformers_export.h"
#include "generate/cache/task_cache.h"
#include "generate/engine/accuracy.h"
#include "generate/model/model_folder.h"
#include "generate/requests/request.h"
#include "outputs/folders.h"
#include "plan/memory_report.h"
#include "plan/stages.h"
#include "run/weights_needed.h"
#ifdef INVAR_COMPILER
#include "checkpoint/checkpoint.h"
#include "compiler/compiler.h"
#include "onnx/onnx.h"
#endif

namespace invar::cli {
namespace {

namespace fs = std::filesystem;
using json::Value;

#ifdef INVAR_COMPILER
constexpr FileKind kPromptsFile{"a file of prompts", uint64_t{64} << 20};
constexpr double kAccuracyBound = -8;  // log2: about what bf16 makes of a trained model
#endif

#ifdef INVAR_COMPILER
Status do_export(const ExportCommand& c) {
  Console console(false);
  INVAR_TRY(const auto location, generate::obtain({c.model_name}, console));
  if (!c.python.empty() && !c.with_transformers)
    return bad_input("--python: it goes with --with-transformers");
  if (c.with_transformers && !c.adapter.empty())
    return bad_input("--adapter: a model that transformers exports takes none: merge it with peft before");
  if (c.with_transformers) {
    if (c.colocate_tensors)
      return bad_input("--colocate-tensors: an export with transformers has its own weights");
    INVAR_TRY(const std::string path, export_with_transformers(location.folder, c.output, c.python, console));
    return deliver("", c.json ? line_of({{"model", path}}) : path_for_stdout(path) + "\n");
  }
  INVAR_TRY(const std::string adapter, generate::obtain_adapter(c.adapter, false, console));
  if (c.merge && c.adapter.empty()) return bad_input("--merge: give the adapter with --adapter FOLDER");
  if (c.merge) {
    if (c.colocate_tensors || c.long_context)
      return bad_input("--merge: it writes a checkpoint, so leave --colocate-tensors and --long-context out");
    INVAR_TRY(const std::string merged, checkpoint::merge_adapter(location.folder, adapter, c.output));
    return deliver("", c.json ? line_of({{"model", merged}}) : path_for_stdout(merged) + "\n");
  }
  const auto exporting = console.phase("export");
  INVAR_TRY(std::string path, checkpoint::export_checkpoint(location.folder, c.output,
                                                            {.colocate_tensors = c.colocate_tensors,
                                                             .long_context = c.long_context,
                                                             .adapter = adapter}));
  exporting->done("");
  return deliver("", c.json ? line_of({{"model", path}}) : path_for_stdout(path) + "\n");
}

Value json_of(const std::vector<plan::RankCost>& parts) {
  Value rows = Value::array;
  for (const plan::RankCost& r : parts)
    rows.add({{"partition", r.partition},
              {"rank", r.rank},
              {"first_layer", r.first_layer},
              {"layers", r.layers},
              {"weights_bytes", r.cost.weights},
              {"state_bytes_per_token", r.cost.state},
              {"state_bytes_per_sequence", r.cost.fixed_state},
              {"handed_over_bytes_per_token", r.cost.handed_over},
              {"products_per_token", r.cost.products},
              {"gathers", r.gathers}});
  return rows;
}

// The path of the plan. A folder that cannot be written is no place.
Result<std::string> place_of_plan(const CompileCommand& c, Console& console) {
  if (!c.output.empty()) return c.output;
  const std::string beside = folder_of(c.model);
  if (::access(beside.c_str(), W_OK) == 0) return beside + "/plan.invar";
  const std::string root = generate::tasks_folder("");
  if (root.empty())
    return bad_input(beside +
                     ": cannot be written, and there is no cache: say where the plan goes with --output");
  std::error_code ec;
  const std::string whole = fs::weakly_canonical(c.model, ec).string();
  const std::string folder =
      root + "/" + fs::path(c.model).stem().string() + "-" + to_hex(sha256(whole)).substr(0, 16);
  fs::create_directories(folder, ec);
  if (ec)
    return bad_input(folder + ": cannot be made: " + ec.message() +
                     ": say where the plan goes with --output");
  console.note("plan", beside + " cannot be written: the plan goes to " + folder);
  return folder + "/plan.invar";
}

// A plan names the files of its weights from its own folder on: elsewhere than beside the model
// links stand for them.
Status link_weights(const plan::Plan& plan, const std::string& output, const std::string& model_folder) {
  std::error_code ec;
  if (fs::equivalent(folder_of(output), model_folder, ec)) return {};
  const std::string constants = fs::path(output).filename().string() + ".constants";
  for (const plan::Weight& w : plan.weights) {
    const std::string entry = w.file.substr(0, w.file.find('/'));
    if (entry == constants) continue;  // lies beside the plan
    const fs::path from = fs::absolute(fs::path(model_folder) / entry, ec),
                   to = fs::path(folder_of(output)) / entry;
    if (!fs::exists(from, ec) || fs::equivalent(from, to, ec)) continue;
    if (fs::exists(fs::symlink_status(to, ec)) && !fs::is_symlink(to, ec))
      return bad_input(to.string() + ": is another file than the model's weights: choose another folder");
    if (const int error = replace_file(to.string(), [&](const std::string& temporary) {
          return ::symlink(from.c_str(), temporary.c_str()) == 0 ? 0 : errno;
        }))
      return bad_input(to.string() + ": cannot be made: " + std::strerror(error));
  }
  return {};
}

// The tokenizer beside the model, or beside the checkpoint's weights to which its own are links.
Result<prompt::Tokenizer> tokenizer_beside(const std::string& model, const onnx::Graph& graph) {
  const std::string folder = folder_of(model);
  auto beside = generate::read_tokenizer({"", "", folder});
  if (beside) return beside;
  std::error_code ec;
  for (const onnx::TensorRef& t : graph.initializers)
    if (!t.file.empty()) {
      const fs::path file = fs::weakly_canonical(fs::path(folder) / t.file, ec);
      if (auto linked = generate::read_tokenizer({"", "", file.parent_path().string()})) return linked;
      break;
    }
  return beside;
}

// The prompts of --check-accuracy: a JSON list of ids, a list of those, or a text in each line.
Result<std::vector<std::vector<int32_t>>> accuracy_prompts(const CompileCommand& c,
                                                           const onnx::Graph& graph) {
  std::vector<std::vector<int32_t>> prompts;
  INVAR_TRY(const std::string text, read_file(file_from(c.accuracy_file), kPromptsFile));
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin != text.npos && text[begin] == '[') {
    auto list = json::read(text, c.accuracy_file);
    if (!list) return bad_input(c.accuracy_file + ": not well-formed JSON");
    const bool several = !list->empty() && list->items[0].is_array();
    if (!several) *list = json::list({std::move(*list)});
    for (const Value& one : list->items) {
      INVAR_TRY(prompts.emplace_back(), ids_of(one, c.accuracy_file));
    }
  } else {
    const auto tokenizer = tokenizer_beside(c.model, graph);
    if (!tokenizer)
      return bad_input("--check-accuracy " + c.accuracy_file +
                       ": texts need the model's tokenizer beside it: " + tokenizer.error().message +
                       "; or give a JSON list of ids");
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.empty()) continue;
      INVAR_TRY(prompts.emplace_back(), tokenizer->encode(line));
    }
  }
  if (prompts.empty()) return bad_input("--check-accuracy " + c.accuracy_file + ": no prompt in it");
  return prompts;
}

// One profile of the model, compiled in the folder and loaded.
Result<run::Session> open_profile(const onnx::Graph& graph, compiler::Options options, bool exact16,
                                  const std::string& folder, int64_t positions) {
  options.exact16 = exact16;
  const std::string path = folder + (exact16 ? "/exact16" : "/fp32");
  INVAR_TRY(plan::Plan plan, compiler::compile_to(graph, options, path));
  INVAR_CHECK_OK(link_weights(plan, path, options.folder));
  run::Options how;
  how.capacity = positions;
  return run::Session::open(std::move(plan), folder, how);
}

std::string accuracy_text(const generate::Accuracy& a, double log2_error, double bound) {
  char text[320];
  std::snprintf(text, sizeof text,
                "prompts   %lld, %lld tokens\nlogits    relative error 2^%.1f of fp32, bound 2^%g\n"
                "loss      %.6f fp32, %.6f exact16\nagreement %lld of %lld most likely tokens\n",
                static_cast<long long>(a.sequences), static_cast<long long>(a.tokens), log2_error, bound,
                a.loss, a.other_loss, static_cast<long long>(a.agreeing), static_cast<long long>(a.tokens));
  return text;
}

// The exit code: an error's where the bound does not hold, which the one object of --json says.
Result<int> check_accuracy(const CompileCommand& c, const onnx::Graph& graph,
                           const compiler::Options& options) {
  if (c.profile != Profile::exact16)
    return bad_input("--check-accuracy compares exact16 with fp32: give --numerics exact16");
  INVAR_TRY(const auto prompts, accuracy_prompts(c, graph));
  size_t longest = 0;
  for (const auto& tokens : prompts) longest = std::max(longest, tokens.size());
  INVAR_TRY(const TemporaryFolder folder, TemporaryFolder::make());
  Console console(c.json);
  const auto compiling = console.phase("compile");
  const auto positions = static_cast<int64_t>(longest);
  INVAR_TRY(run::Session fp32, open_profile(graph, options, false, folder.path(), positions));
  INVAR_TRY(run::Session exact16, open_profile(graph, options, true, folder.path(), positions));
  compiling->done("fp32 and exact16");
  const auto comparing = console.phase("compare");
  const auto total = static_cast<int64_t>(prompts.size());
  INVAR_TRY(const generate::Accuracy a, generate::compare_accuracy(fp32, exact16, prompts, [&](int64_t done) {
              comparing->progress(done, total, "prompts");
            }));
  comparing->done("");
  const double bound = c.accuracy_bound.value_or(kAccuracyBound);
  const double log2_error = std::log2(a.error);
  const bool holds = a.error == 0 || log2_error <= bound;  // false for NaN, too
  const Value log2 = log2_error;                           // null: equal, or no number
  std::optional<Error> error;
  if (std::isnan(a.error)) {
    error = Error{Code::failed, c.model + ": logits of fp32 or exact16 are NaN or infinite: no accuracy"};
  } else if (!holds) {
    char text[160];
    std::snprintf(text, sizeof text,
                  ": the logits under exact16 differ from those of fp32 by 2^%.1f, more than 2^%g",
                  log2_error, bound);
    error = Error{Code::failed, c.model + text};
  }
  Value object = error ? object_of(*error) : Value::object;
  object.update({{"prompts", a.sequences},
                 {"tokens", a.tokens},
                 {"log2_error", log2},
                 {"bound", bound},
                 {"loss", {{"fp32", a.loss}, {"exact16", a.other_loss}}},
                 {"agreeing", a.agreeing},
                 {"holds", holds}});
  INVAR_CHECK_OK(deliver("", c.json ? line_of(object) : accuracy_text(a, log2_error, bound)));
  return error ? complain(*error) : 0;
}

// A folder in the place of an ONNX model: what to give instead.
Status check_is_file(const std::string& model) {
  std::error_code ec;
  if (!fs::is_directory(model, ec)) return {};
  const fs::path folder(model);
  if (fs::is_regular_file(folder / "model.onnx", ec))
    return bad_input(model + ": a folder; give the ONNX model in it: " + (folder / "model.onnx").string());
  return bad_input(model +
                   ": a folder, where compile takes the file of an ONNX model. `invar run --model-name` "
                   "compiles a checkpoint itself; `invar export --model-name " +
                   model + " --output OUT` makes OUT/model.onnx of it");
}

// Names in a stage's text are no writing: on a terminal all that they hide shows.
std::string with_names_shown(const std::string& text) {
  std::istringstream lines(text);
  std::string out;
  for (std::string line; std::getline(lines, line);) out += printable(line) + "\n";
  return out;
}

Status do_compile(const CompileCommand& c, int& code) {
  OutputFolders folders;
  INVAR_CHECK_OK(folders.make_above("--output", c.output));
  INVAR_CHECK_OK(check_is_file(c.model));
  INVAR_TRY(onnx::Graph graph, onnx::read(c.model));
  INVAR_TRY(const auto dims, sizes_from("--dim", c.dims));
  INVAR_CHECK_OK(onnx::fix_dims(graph, dims));
  INVAR_TRY(const run::Function::NamedTensors bound, tensors_from("--bind", c.bound));
  std::vector<std::string> names;
  for (const auto& input : bound) names.push_back(input.first);
  INVAR_TRY([[maybe_unused]] const bool lists, onnx::fix_lists(graph, names));
  for (const auto& [name, t] : bound)
    INVAR_CHECK_OK(onnx::bind_input(graph, name, t.dtype, t.shape, t.bytes.data()));
  compiler::Options options;
  options.folder = folder_of(c.model),
  options.operation_set = c.operation_set.value_or(OperationSet::reproducible);
  options.exact16 = c.profile == Profile::exact16;
  if (c.opt >= 0) options.opt = c.opt;
  options.choices = c.choices, options.stateless = c.stateless;
  options.trusts_recipe = c.dims.empty() && c.bound.empty() && !c.stateless;
  options.remark = [&c](const std::string& text) { Console(c.json).note("model", text); };
  if (!c.accuracy_file.empty()) {
    INVAR_TRY(code, check_accuracy(c, graph, options));
    return {};
  }
  if (!c.emit.empty()) {
    INVAR_TRY(std::string text, compiler::emit(graph, options, c.emit));
    return deliver(c.output, c.output.empty() && stdout_is_terminal() ? with_names_shown(text) : text);
  }
  if (c.report) {  // on paper: the weights need not be here
    options.threads = -1;
    INVAR_TRY(const compiler::CompiledProgram program, compiler::compile(graph, options));
    INVAR_TRY(auto stages, plan::split(program.plan, std::max(c.partitions, 1), c.tensor_parallel));
    INVAR_CHECK_OK(run::measure_states(stages));
    const std::vector<plan::RankCost> parts = plan::rank_costs(stages);
    return deliver("", c.json ? line_of({{"partitions", json_of(parts)}}) : plan::stage_report(parts, {}));
  }
  Console console(c.json);
  INVAR_TRY(options.artifacts, generate::artifacts_folder(console));
  INVAR_TRY(const std::string output, place_of_plan(c, console));
  INVAR_TRY(const auto given, sizes_from("--size", c.sizes));
  std::map<std::string, int64_t> sizes;
  for (const auto& [name, size] : given) sizes[name] = size;
  const auto compiling = console.phase("compile");
  options.progress = generate::bytes_of(*compiling);
  INVAR_TRY(plan::Plan plan, compiler::compile_to(graph, options, output));
  INVAR_CHECK_OK(link_weights(plan, output, options.folder));
  compiling->done("");
  INVAR_TRY(const std::string memory, plan::memory_report(plan, sizes));
  if (c.json) {
    Value out = {{"path", output}, {"plan", to_hex(plan::digest(plan))}, {"memory", memory}};
    if (plan.source) out["program"] = to_hex(plan.source->program);
    return deliver("", line_of(out));
  }
  const std::string program = plan.source ? "\nprogram " + to_hex(plan.source->program) : "";
  return deliver("", path_for_stdout(output) + program + "\nplan " + to_hex(plan::digest(plan)) +
                         "\nmemory " + memory + "\n");
}
#else
Status do_export(const ExportCommand&) {
  return not_covered("this build has no exporter: use a full build");
}
Status do_compile(const CompileCommand&, int&) {
  return not_covered("this build has no compiler: use a full build");
}
#endif

// Reads the tokenizer. The weights of a hub model are not downloaded.
Result<prompt::Tokenizer> tokenizer_of(const std::string& model_name) {
  Console console(false);
  INVAR_TRY(const auto location,
            generate::obtain({model_name, "", false, hub::Content::without_weights}, console));
  return generate::read_tokenizer(location);
}

Status do_encode(const TokensCommand& c) {
  INVAR_TRY(const prompt::Tokenizer tokenizer, tokenizer_of(c.model_name));
  INVAR_TRY(const std::string text, text_from("--prompt-text", c.text));
  INVAR_TRY(std::vector<int32_t> tokens, tokenizer.encode(text));
  return deliver("", line_of(c.json ? Value{{"tokens", tokens}} : Value(tokens)));
}

Status do_render(const RenderCommand& c) {
  ChatOptions options = c.chat;
  INVAR_CHECK_OK(generate::read_tools(c.tools, options));
  const std::string name = c.user ? "--user" : c.messages;
  INVAR_TRY(const std::string messages,
            c.user ? messages_from(name, *c.user) : generate::read_chat_file(file_from(c.messages)));
  INVAR_TRY(const std::string chat, generate::chat_input(messages, name, options));
  INVAR_TRY(const auto location, generate::resolve(c.model_name));
  INVAR_TRY(const auto templates, generate::open_chat_templates(location));
  INVAR_TRY(const auto rendered, prompt::render_chat(templates, chat, name));
  if (const std::string out = prompt::texts_left_out(templates, rendered); !out.empty())
    Console(false).note("template", name + ": " + out);
  if (!c.json) return deliver("", rendered.text);
  return deliver("", line_of({{"prompt", rendered.text}, {"chat", rendered.input}}));
}

Status do_decode(const TokensCommand& c) {
  INVAR_TRY(const prompt::Tokenizer tokenizer, tokenizer_of(c.model_name));
  INVAR_TRY(std::vector<int32_t> tokens, tokens_from(c.tokens, c.file));
  for (const int32_t t : tokens)
    if (t < 0 || t >= tokenizer.vocab_size())
      return bad_input("token " + std::to_string(t) + ": outside the vocabulary of " +
                       std::to_string(tokenizer.vocab_size()));
  const std::string text = tokenizer.decode(tokens);
  return deliver("", c.json ? line_of({{"text", text}}) : text + "\n");
}

}  // namespace

int export_model(const ExportCommand& c) {
  return exit_code(do_export(c));
}
int compile(const CompileCommand& c) {
  int code = 0;
  const Status done = do_compile(c, code);
  return done ? code : exit_code(done);
}
int encode(const TokensCommand& c) {
  return exit_code(do_encode(c));
}
int render(const RenderCommand& c) {
  return exit_code(do_render(c));
}
int decode(const TokensCommand& c) {
  return exit_code(do_decode(c));
}

}  // namespace invar::cli
