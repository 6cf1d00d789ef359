// export, compile, encode, decode: each stage of the journey alone, its artifact on disk.
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "artifacts.h"
#include "base/file/temporary_file.h"
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

using nlohmann::json;

#ifdef INVAR_COMPILER
Status do_export(const ExportCommand& c) {
  Console console(false);
  INVAR_TRY(const auto location, generate::obtain({c.model_name}, console));
  INVAR_TRY(std::string path, checkpoint::export_checkpoint(location.folder, c.output, {c.colocate_tensors}));
  return deliver("", path_for_stdout(path) + "\n");
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
    INVAR_TRY(const auto parts, plan::split_by_layers(program.plan, c.partitions));
    return deliver("", plan::stage_report(parts, {}));
  }
  Console console(false);
  INVAR_TRY(options.artifacts, generate::artifacts_folder(console));
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
  INVAR_TRY(const std::string memory, plan::memory_report(plan, sizes));
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
  INVAR_TRY(std::vector<int32_t> tokens, tokenizer.encode(c.text));
  return deliver("", line_of(json(tokens)));
}

Status do_render(const RenderCommand& c) {
  ChatOptions options = c.chat;
  INVAR_CHECK_OK(generate::read_tools(c.tools, options));
  INVAR_TRY(const std::string messages, generate::read_chat_file(c.messages));
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
  return deliver("", tokenizer.decode(tokens) + "\n");
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
