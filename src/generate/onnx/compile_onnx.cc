#include "generate/onnx/compile_onnx.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include "base/file/file.h"
#include "generate/tensors/table.h"
#ifdef INVAR_COMPILER
#include "compiler/compiler.h"
#include "onnx/onnx.h"
#include "onnx/recipe.h"
#include "onnx/strings.h"
#include "onnx/tensor.h"
#endif

namespace invar::generate {

namespace fs = std::filesystem;

bool may_be_in_plan(DType dtype, size_t bytes) {
  constexpr size_t kMostValues = 16;
  const bool is_float =
      dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16 || dtype == DType::bf16;
  return !is_float && bytes <= kMostValues * size_of(dtype);
}

#ifndef INVAR_COMPILER
Result<CompiledModel> compile_onnx(const TensorProgram&, OperationSet, bool, Observer&) {
  return not_covered(
      "this build has no compiler: make the plan elsewhere with `invar compile` and pass it with --plan");
}
Result<TableEdges> table_edges(const std::string& model) {
  return not_covered(model + ": this build has no compiler, which reads models: tables need one");
}
#else
namespace {

// Links what the plan's weights need: files beside the model, or the folders that hold them.
Status link_weights(const plan::Plan& plan, const std::string& from, const std::string& to) {
  std::set<std::string> entries;
  for (const plan::Weight& w : plan.weights)
    if (w.file != kOnnxConstants) entries.insert(w.file.substr(0, w.file.find('/')));
  std::error_code ec;
  const fs::path folder = fs::absolute(from, ec);
  for (const std::string& entry : entries) {
    if (!ec) fs::create_symlink(folder / entry, fs::path(to) / entry, ec);
    if (ec) return bad_input(to + "/" + entry + ": cannot be made: " + ec.message());
  }
  return {};
}

// Logits of half precision are read as f32, which is exact (onnx.32).
void widen_logits(onnx::Graph& graph) {
  constexpr int32_t kFloat = 1, kFloat16 = 10, kBfloat16 = 16;  // TensorProto.DataType
  for (onnx::ValueInfo& output : graph.outputs) {
    if (output.name != "logits" || (output.data_type != kFloat16 && output.data_type != kBfloat16)) continue;
    const std::string narrow = "logits.narrow";
    for (onnx::Node& node : graph.nodes) {
      std::replace(node.outputs.begin(), node.outputs.end(), output.name, narrow);
      std::replace(node.inputs.begin(), node.inputs.end(), output.name, narrow);
    }
    onnx::Node cast;
    cast.name = "logits.widen", cast.op_type = "Cast";
    cast.inputs = {narrow}, cast.outputs = {output.name};
    cast.attributes["to"] = int64_t{kFloat};
    graph.nodes.push_back(std::move(cast));
    output.data_type = kFloat;
  }
}

// Chooses the branch of Optimum's merged decoders without past keys (onnx.32): there are none.
Status choose_branch(onnx::Graph& graph) {
  constexpr int32_t kBool = 9;  // TensorProto.DataType
  const std::string choice = "use_cache_branch";
  const auto input = std::find_if(graph.inputs.begin(), graph.inputs.end(), [&](const onnx::ValueInfo& v) {
    return v.name == choice && v.data_type == kBool;
  });
  if (input == graph.inputs.end()) return {};
  const uint8_t no = 0;
  INVAR_CHECK_OK(
      onnx::bind_input(graph, choice, DType::boolean, std::vector<int64_t>(input->shape.size(), 1), &no));
  for (const onnx::ValueInfo& v : graph.inputs)
    if (v.name.starts_with("past") && v.shape.size() == 4 && !v.shape[2].name.empty()) {
      const std::string symbol = v.shape[2].name;
      return onnx::fix_dims(graph, {{symbol, 0}});
    }
  return {};
}

// How many nodes of this graph have states, by the exporter of the package, which writes them as
// inputs and outputs (onnx.37); 0: it is no such graph, or has none.
Result<size_t> states_of_exporter(const onnx::Graph& graph) {
  const auto found = graph.metadata.find(onnx::kExporterStates);
  size_t count = 0;
  if (found == graph.metadata.end()) return count;
  const std::string& text = found->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size())
    return bad_input(std::string("metadata ") + onnx::kExporterStates +
                     " is no number: export the model again");
  return count;
}

// What the exporter said has become so: no past is a tensor, no state is missing.
Status check_states(const plan::Plan& plan, size_t expected, const std::string& model) {
  for (const plan::Port& input : plan.inputs)
    if (input.name != "input_ids" && input.name != "position_ids")
      return bad_input(model + ": input " + input.name +
                       " is no state: its shape or what reads it is not as invar.exporter writes it; export "
                       "the model again");
  if (plan.states.size() != expected)
    return bad_input(model + ": " + std::to_string(plan.states.size()) + " of " + std::to_string(expected) +
                     " states are in it: export the model again");
  return {};
}

// What is known of the inputs when a model is compiled (onnx.40): what the file says; the shapes of
// the call, too; and the values of few integers and booleans, too.
enum class Known { file, sizes, values };

Result<onnx::Graph> graph_with(Known known, onnx::Graph graph, const run::Function::NamedTensors& call) {
  std::vector<onnx::CallInput> shapes;
  for (const auto& [name, t] : call) shapes.push_back({name, t.dtype, t.shape});
  INVAR_CHECK_OK(onnx::fix_shapes(graph, shapes));
  if (known == Known::values)
    for (const auto& [name, t] : call) {
      if (!may_be_in_plan(t.dtype, t.bytes.size())) continue;
      INVAR_CHECK_OK(onnx::bind_input(graph, name, t.dtype, t.shape, t.bytes.data()));
    }
  return graph;
}

// For all calls, or else for the one that is given. Other errors than refusals end it: a file that
// cannot be read is the same with sizes.
Result<compiler::CompiledProgram> compile_for_call(const onnx::Graph& graph, compiler::Options options,
                                                   const run::Function::NamedTensors* call, bool& of_call) {
  Result<compiler::CompiledProgram> compiled = compiler::compile(graph, options);
  const auto may_help = [&] {
    return !compiled &&
           (compiled.error().code == Code::not_covered || compiled.error().code == Code::bad_input);
  };
  if (!call || !may_help()) return compiled;
  options.program_graph = &graph, options.make_stateful = false, of_call = true;
  for (const Known known : {Known::sizes, Known::values}) {
    if (known == Known::values && std::none_of(call->begin(), call->end(), [](const auto& input) {
          return may_be_in_plan(input.second.dtype, input.second.bytes.size());
        }))
      break;
    INVAR_TRY(const onnx::Graph known_graph, graph_with(known, graph, *call));
    compiled = compiler::compile(known_graph, options);
    if (!may_help()) break;
  }
  return compiled;
}

}  // namespace

Status compile_onnx_into(const std::string& folder, const TensorProgram& program, OperationSet set,
                         bool keeps_memory, Observer& observer, CompiledModel& made,
                         onnx::Graph* read_before) {
  const auto compiling = observer.phase("compile");
  INVAR_TRY(onnx::Graph graph, read_before ? std::move(*read_before) : onnx::read(program.model));
  INVAR_CHECK_OK(onnx::fix_dims(graph, program.dims));
  std::vector<std::string> given;
  for (const auto& input : program.bound) given.push_back(input.first);
  if (program.call)
    for (const auto& input : *program.call) given.push_back(input.first);
  INVAR_TRY(made.of_call, onnx::fix_lists(graph, given));
  if (made.of_call && program.call) {  // a plan for a call reads some of its inputs
    INVAR_TRY([[maybe_unused]] const onnx::Graph fits, graph_with(Known::sizes, graph, *program.call));
  }
  for (const auto& [name, t] : program.bound)
    INVAR_CHECK_OK(onnx::bind_input(graph, name, t.dtype, t.shape, t.bytes.data()));
  if (keeps_memory) {
    INVAR_CHECK_OK(choose_branch(graph));
    widen_logits(graph);
  }
  made.hashed = std::make_shared<DigestCache>();
  compiler::Options options;
  options.folder = folder_of(program.model), options.operation_set = set, options.choices = program.choices;
  options.exact16 = program.profile == Profile::exact16;
  INVAR_TRY(const size_t states, states_of_exporter(graph));
  const bool has_states = keeps_memory && states != 0;
  options.stateless = !has_states, options.make_stateful = keeps_memory && !has_states;
  options.progress = bytes_of(*compiling);
  options.remark = [&observer](const std::string& text) { observer.note("model", text); };
  options.hashed = made.hashed.get(), options.constants_file = kOnnxConstants;
  INVAR_TRY(options.artifacts, artifacts_folder(observer));
  INVAR_TRY(compiler::CompiledProgram compiled, compile_for_call(graph, options, program.call, made.of_call));
  if (has_states) {
    INVAR_CHECK_OK(check_states(compiled.plan, states, program.model));
  }
  if (!compiled.why_stateless.empty())
    observer.note("memory", kWholePrefix + std::string(": ") + compiled.why_stateless);
  INVAR_CHECK_OK(link_weights(compiled.plan, options.folder, folder));
  if (!compiled.constants.empty()) {
    INVAR_CHECK_OK(write_file(folder + "/" + kOnnxConstants, compiled.constants));
  }
  INVAR_CHECK_OK(write_file(folder + "/plan.invar", plan::print(compiled.plan)));
  made.plan = std::move(compiled.plan);
  compiling->done(made.plan.source ? "program " + to_hex(made.plan.source->program).substr(0, 16) : "");
  return {};
}

Result<CompiledModel> compile_onnx(const TensorProgram& program, OperationSet set, bool keeps_memory,
                                   Observer& observer) {
  CompiledModel made;
  INVAR_TRY(TemporaryFolder folder, TemporaryFolder::make());
  INVAR_CHECK_OK(compile_onnx_into(folder.path(), program, set, keeps_memory, observer, made));
  made.folder = folder.path();
  made.temporary = std::make_shared<TemporaryFolder>(std::move(folder));
  return made;
}

Result<TableEdges> table_edges(const std::string& model) {
  INVAR_TRY(onnx::Graph graph, onnx::read(model));
  TableEdges edges;
  edges.columns = onnx::column_names(graph);
  INVAR_TRY(std::optional<onnx::NumberedGraph> numbered, onnx::number_strings(graph));
  if (numbered) {
    edges.strings = std::move(numbered->table.strings);
    edges.inputs = std::move(numbered->table.inputs), edges.outputs = std::move(numbered->table.outputs);
    graph = std::move(numbered->graph);
  }
  for (const onnx::ValueInfo& input : graph.inputs) {
    const std::optional<DType> dtype = onnx::dtype_of(input.data_type);
    if (!dtype)
      return not_covered(model + ": input \"" + input.name + "\" has a type that tables do not have");
    const auto dim = [&](size_t i) { return i < input.shape.size() ? input.shape[i].value : -1; };
    edges.ports.push_back({input.name, *dtype, input.has_shape ? input.shape.size() : 2, dim(0), dim(1)});
  }
  return edges;
}
#endif

}  // namespace invar::generate
