// Receipts of tensors: how they are made and verified, see tensors.h.
#include "generate/tensors/tensors.h"

#include <algorithm>
#include <filesystem>

#include "generate/engine/execution.h"
#include "generate/onnx/compile_onnx.h"
#include "generate/requests/receipt_file.h"
#include "generate/tensors/tensor_function.h"
#include "num/env.h"
#include "plan/weight_provenance.h"
#include "receipt/seal.h"

namespace invar::generate {
namespace {

using run::Function;

std::string names_of(const std::vector<receipt::TensorDigest>& tensors) {
  std::string names;
  for (const receipt::TensorDigest& t : tensors) names += (names.empty() ? "" : ", ") + t.name;
  return names;
}

Result<CompiledModel> program_of(const TensorProgram& program, const receipt::Receipt& claimed,
                                 const Function::NamedTensors& inputs, Observer& observer) {
  const OperationSet set = operation_set_from(claimed.operation_set).value();
  if (program.plan.empty() && !program.encoder.model_name.empty()) {
    ModelOptions options = program.encoder;
    options.operation_set = set, options.profile = profile_from(claimed.profile);
    INVAR_TRY(const ModelLocation location,
              obtain({options.model_name, options.revision, options.offline}, observer));
    return prepare(location, options, observer, CachePolicy::none);
  }
  if (program.plan.empty()) {
    TensorProgram claimed_program = program;
    claimed_program.profile = profile_from(claimed.profile).value_or(Profile::fp32);
    claimed_program.call = &inputs;
    return compile_onnx(claimed_program, set, /*keeps_memory=*/false, observer);
  }
  return given_plan(program.plan);
}

// receipt.18: whether this is the kind of machine that the receipt's promise is about. After a run,
// which decides the kernels.
Status check_kind(const receipt::Receipt& claimed, const std::string& name, const LoadedFunction& loaded) {
  if (operation_set_from(claimed.operation_set) == OperationSet::reproducible) return {};
  std::string differing;
  for (const auto& [key, here] : describe_kind(loaded.function, loaded.device.get())) {
    const auto it = claimed.execution.find(key);
    const std::string there = it == claimed.execution.end() ? "" : it->second;
    if (there != here)
      differing += (differing.empty() ? "" : "; ") + key + ": the receipt has '" + there + "', here it is '" +
                   here + "'";
  }
  if (differing.empty()) return {};
  return not_covered(name +
                     ": the operation set deterministic promises the same bits on the same hardware and "
                     "software alone, and this is other: " +
                     differing);
}

// The inputs that a plan reads: one for a call takes no input whose value is in the plan.
Function::NamedTensors inputs_of(const CompiledModel& program, const Function::NamedTensors& given) {
  if (!program.of_call) return given;
  Function::NamedTensors read;
  for (const auto& input : given)
    if (std::any_of(program.plan.inputs.begin(), program.plan.inputs.end(),
                    [&](const plan::Port& port) { return port.name == input.first; }))
      read.push_back(input);
  return read;
}

// Everything from the model on. What is compared first decides whether the rest is worth computing.
Status examine(const receipt::Receipt& claimed, const TensorProgram& program,
               const Function::NamedTensors& inputs, const ExecutionOptions& execution, Observer& observer,
               Verdict& v) {
  INVAR_TRY(CompiledModel compiled, program_of(program, claimed, inputs, observer));
  INVAR_TRY(receipt::Receipt mine, describe_program(compiled.plan, claimed.model_name));
  v.findings = receipt::compare_model(claimed, mine);
  if (!v.ok()) return {};
  mine = receipt::seal(std::move(mine), digests_of(inputs), {}, {});
  v.findings = receipt::compare_inputs(claimed, mine);
  if (!v.ok()) return {};
  if (operation_set_from(claimed.operation_set) == OperationSet::any)
    return not_covered(
        v.receipt +
        ": nobody can verify a run of the operation set default, which promises nothing about "
        "bits: model, program and inputs are those of the receipt, outputs were not computed again");
  INVAR_TRY(LoadedFunction loaded,
            open_function(compiled.plan, compiled.folder, execution, compiled.hashed.get()));
  INVAR_TRY(const Function::NamedTensors outputs, loaded.function.run(inputs_of(compiled, inputs)));
  INVAR_CHECK_OK(check_kind(claimed, v.receipt, loaded));
  INVAR_CHECK_OK(loaded.function.weights_unchanged());
  mine = receipt::seal(std::move(mine), mine.input_tensors, digests_of(outputs), {});
  v.findings = receipt::compare_outputs(claimed, mine);
  v.add("model", std::to_string(mine.tensors.size()) + " tensors: equal");
  v.add("weights", to_hex(mine.weights));
  v.compared.push_back(
      {"program",
       mine.recipe + ", " + to_hex(mine.program).substr(0, 16) + " (numerics " + mine.numerics +
           (mine.profile == name_of(Profile::exact16) ? ", exact16), " : "), ") +
           (program.plan.empty()
                ? "compiled from " + (program.model.empty() ? program.encoder.model_name : program.model) +
                      ": equal"
                : "the plan " + program.plan + ", as it was given: equal"),
       compiled.given});
  v.add("inputs", std::to_string(mine.input_tensors.size()) + " tensors: equal");
  v.add("outputs", std::to_string(mine.output_tensors.size()) + " tensors recomputed: equal");
  return {};
}

}  // namespace

Result<TensorAnswer> infer_tensors(CompiledModel program, const std::string& path,
                                   const Function::NamedTensors& inputs, const ExecutionOptions& execution,
                                   const std::optional<std::string>& receipt_path, Observer& observer) {
  const plan::Plan& plan = program.plan;
  receipt::Receipt described;
  DiskReservation space;
  if (receipt_path) {
    // A label, also where the folder holds other models.
    const Result<ModelLocation> location = resolve(folder_of(path));
    const std::string folder = std::filesystem::weakly_canonical(folder_of(path)).filename().string();
    const Status bound = program.given ? plan::check_weight_provenance(plan, path) : Status();
    if (!bound && bound.error().code != Code::not_covered) return bound.error();
    // Whoever verifies the receipt compiles the model, which computes these constants.
    if (!bound) observer.note("plan", bound.error().message);
    INVAR_TRY(described, describe_program(plan, location ? location->name : folder));
    INVAR_TRY(space, reserve_receipt(*receipt_path, receipt::print(described).size()));
  }
  INVAR_TRY(LoadedFunction loaded, open_function(plan, program.folder, execution, program.hashed.get()));
  Function& function = loaded.function;
  TensorAnswer answer;
  INVAR_TRY(answer.outputs, function.run(inputs_of(program, inputs)));
  INVAR_CHECK_OK(function.weights_unchanged());
  answer.operation_set = plan.operation_set;
  answer.isa = function.isa(), answer.libraries = function.libraries();
  if (!receipt_path) return answer;
  const receipt::Receipt sealed =
      receipt::seal(std::move(described), digests_of(inputs), digests_of(answer.outputs),
                    describe_execution(function, loaded.device.get(), plan));
  space.shrink(0);
  INVAR_CHECK_OK(save_receipt(*receipt_path, receipt::print(sealed), observer));
  answer.receipt_hash = to_hex(receipt::receipt_hash(sealed));
  return answer;
}

bool is_tensor_receipt(std::string_view text) {
  if (text.find("invar-tensor-receipt") == text.npos) return false;  // most receipts: read once
  receipt::Receipt claimed;
  return receipt::validate(text, "", &claimed) && claimed.format == receipt::kTensorFormat;
}

Result<Verdict> verify_tensors(std::string_view text, const std::string& name, Reader& reader,
                               const InBatch* batch, const TensorProgram& program,
                               const Function::NamedTensors& inputs, const ExecutionOptions& execution,
                               Observer& observer) {
  const num::ArithmeticEnv env;
  receipt::Receipt claimed;
  INVAR_TRY(Verdict v, reader.read(text, name, claimed, batch));
  const bool repeats = operation_set_from(claimed.operation_set) == OperationSet::deterministic;
  const bool no_program = program.plan.empty() && program.model.empty() && program.encoder.model_name.empty();
  if (v.ok() && (no_program || (inputs.empty() && !claimed.input_tensors.empty())))
    return bad_input(name +
                     ": a receipt of tensors: give the model with --model FILE.onnx, or a plan, and each "
                     "input with --input NAME=FILE.npy: " +
                     names_of(claimed.input_tensors) + "; of embed and rerank --model-name and the texts");
  if (v.ok()) {
    INVAR_CHECK_OK(examine(claimed, program, inputs, execution, observer, v));
  }
  v.verdict = v.ok() ? (repeats ? "REPEATED ON THIS MACHINE" : "VERIFIED")
                     : (repeats ? "NOT REPEATED" : "NOT VERIFIED");
  if (v.ok() && !program.plan.empty()) v.verdict += kByGivenPlan;
  return v;
}

Result<Verdict> verify_any(std::string_view text, const std::string& name, const InBatch* batch,
                           Verifier& verifier, const TensorProgram& program,
                           const Function::NamedTensors& inputs, const ExecutionOptions& execution,
                           const receipt::StepSelection& selection, Observer& observer) {
  if (!is_tensor_receipt(text)) {
    if (program.model.empty() && inputs.empty()) return verifier.verify(text, name, batch);
    return bad_input(name + ": not a receipt of tensors: leave --model, --input and texts out");
  }
  if (!selection.all())
    return bad_input(name + ": a receipt of tensors has no steps: leave --spot and --steps out");
  return verify_tensors(text, name, verifier.reader(), batch, program, inputs, execution, observer);
}

}  // namespace invar::generate
