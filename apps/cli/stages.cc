// export, compile, encode, decode: each stage of the journey alone, its artifact on disk.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "artifacts.h"
#include "base/file/temporary_file.h"
#include "base/hash/sha256.h"
#include "commands.h"
#include "console.h"
#include "generate/generate.h"
#include "generate/model_folder.h"
#include "generate/task_cache.h"
#include "plan/memory_report.h"
#include "plan/stages.h"
#ifdef INVAR_COMPILER
#include "checkpoint/checkpoint.h"
#include "compiler/compiler.h"
#include "onnx/onnx.h"
#endif

namespace invar::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

#ifdef INVAR_COMPILER
Status do_export(const ExportCommand& c) {
  Console console(false);
  INVAR_TRY(const auto location, generate::obtain({c.model_name}, console));
  const auto exporting = console.phase("export");
  INVAR_TRY(std::string path, checkpoint::export_checkpoint(location.folder, c.output, {c.colocate_tensors}));
  exporting->done("");
  return deliver("", c.json ? line_of({{"model", path}}) : path_for_stdout(path) + "\n");
}

json json_of(const std::vector<plan::RankCost>& parts) {
  json rows = json::array();
  for (const plan::RankCost& r : parts)
    rows.push_back({{"partition", r.partition},
                    {"rank", r.rank},
                    {"first_layer", r.first_layer},
                    {"layers", r.layers},
                    {"weights_bytes", r.cost.weights},
                    {"state_bytes_per_token", r.cost.state},
                    {"handed_over_bytes_per_token", r.cost.handed_over},
                    {"products_per_token", r.cost.products},
                    {"gathers", r.gathers}});
  return rows;
}

// Where the plan goes. A folder that cannot be written is no place.
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
  for (const plan::Weight& w : plan.weights) {
    const std::string entry = w.file.substr(0, w.file.find('/'));
    const fs::path from = fs::absolute(fs::path(model_folder) / entry, ec),
                   to = fs::path(folder_of(output)) / entry;
    if (!fs::exists(from, ec) || fs::equivalent(from, to, ec)) continue;  // constants lie beside the plan
    if (fs::exists(fs::symlink_status(to, ec)) && !fs::is_symlink(to, ec))
      return bad_input(to.string() + ": is another file than the model's weights: choose another folder");
    if (const int error = replace_file(to.string(), [&](const std::string& temporary) {
          return ::symlink(from.c_str(), temporary.c_str()) == 0 ? 0 : errno;
        }))
      return bad_input(to.string() + ": cannot be made: " + std::strerror(error));
  }
  return {};
}

Status do_compile(const CompileCommand& c) {
  INVAR_TRY(const auto set, generate::operation_set(c.operation_set));
  INVAR_TRY(onnx::Graph graph, onnx::read(c.model));
  INVAR_TRY(const auto dims, sizes_from("--dim", c.dims));
  INVAR_CHECK_OK(onnx::fix_dims(graph, dims));
  INVAR_TRY(const run::Function::NamedTensors bound, tensors_from("--bind", c.bound));
  for (const auto& [name, t] : bound)
    INVAR_CHECK_OK(onnx::bind_input(graph, name, t.dtype, t.shape, t.bytes.data()));
  compiler::Options options;
  options.folder = folder_of(c.model), options.operation_set = set.value_or(OperationSet::reproducible);
  if (c.opt >= 0) options.opt = c.opt;
  options.choices = c.choices, options.stateless = c.stateless;
  options.trusts_recipe = c.dims.empty() && c.bound.empty() && !c.stateless;
  if (!c.emit.empty()) {
    INVAR_TRY(std::string text, compiler::emit(graph, options, c.emit));
    return deliver(c.output, text);
  }
  if (c.report) {  // on paper: the weights need not be here
    options.threads = -1;
    INVAR_TRY(const compiler::CompiledProgram program, compiler::compile(graph, options));
    INVAR_TRY(const auto stages, plan::split(program.plan, std::max(c.partitions, 1), c.tensor_parallel));
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
    json out = {{"path", output}, {"plan", to_hex(plan::digest(plan))}, {"memory", memory}};
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
Status do_compile(const CompileCommand&) {
  return not_covered("this build has no compiler: use a full build");
}
#endif

// Of a hub model the weights are not downloaded.
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
  return deliver("", line_of(c.json ? json{{"tokens", tokens}} : json(tokens)));
}

Status do_render(const RenderCommand& c) {
  ChatOptions options = c.chat;
  INVAR_CHECK_OK(generate::read_tools(c.tools, options));
  INVAR_TRY(const std::string messages, generate::read_chat_file(file_from(c.messages)));
  INVAR_TRY(const std::string chat, generate::chat_input(messages, c.messages, options));
  INVAR_TRY(const auto location, generate::resolve(c.model_name));
  INVAR_TRY(const auto templates, generate::open_chat_templates(location));
  INVAR_TRY(const auto rendered, prompt::render_chat(templates, chat, c.messages));
  if (!c.json) return deliver("", rendered.text);
  return deliver("", line_of(json{{"prompt", rendered.text}, {"chat", rendered.input}}));
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
  return exit_code(do_compile(c));
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
