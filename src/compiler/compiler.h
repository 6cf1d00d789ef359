// Compiles an ONNX graph to a plan. The only library that links MLIR.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/attributes.h"
#include "base/dtype.h"
#include "base/file/byte_progress.h"
#include "base/hash/digest_cache.h"
#include "base/status.h"
#include "onnx/onnx.h"
#include "plan/plan.h"
#include "shape/dim_expr.h"

namespace invar::compiler {

// Optimization levels. Every level computes the same bytes.
//   0: only the passes that a plan requires.
//   1: weights fold into the operands that read them, and chains of operations are fused.
//   2: canonicalization: identity copies, casts of casts and equal operations are removed.
//   3: transposes move to where they cancel.
inline constexpr int kMaxOptLevel = 3;

// The source of a torch.nn.Module that computes what the plan does: none, one that calls Invar's
// operations, or one that calls torch's own, of whose bits nothing is promised.
enum class TorchModule { none, reproducible, plain };

using PresumedDigests = std::map<std::string, Digest, std::less<>>;

struct Options {
  std::string folder;  // of the graph's external files; weights are hashed from there
  int threads = 0;     // for hashing; 0: one per core; -1: weights are not read, for a plan on paper
  std::string constants_file = "constants.bin";  // the plan's name for the file of CompiledProgram::constants
  int opt = kMaxOptLevel;
  std::string artifacts;  // a folder that receives the text of every stage; empty: none
  // Recorded in the plan. All operation sets compile to the same program.
  OperationSet operation_set = OperationSet::reproducible;
  // The profile exact16 (exact16.7), of reproducible programs alone.
  bool exact16 = false;
  std::string choices = "all";  // allowed numerics choices: all, none, or names separated by commas
  // Past keys and values stay inputs and outputs: the plan is a pure function of tensors instead of
  // a session's program (onnx.20).
  bool stateless = false;
  // A decoder whose plan would be computed over the whole sequence keeps its keys and values
  // between steps where that is shown to give the same bits (plan.20). Goes with `stateless`.
  bool make_stateful = false;
  // Whether the recipe in the graph's metadata names the program. Only for a graph that is as an
  // exporter of ours made it; otherwise the graph itself is the program.
  bool trusts_recipe = false;
  // The graph whose program the plan is of, where the given one is that graph with the sizes and
  // values of one call (onnx.40). Null: the given one.
  const onnx::Graph* program_graph = nullptr;
  TorchModule torch_module = TorchModule::none;
  DigestCache* hashed = nullptr;  // receives the digests that were computed; may be null
  // Digests of the graph's external tensors, by name, that the caller compares with the bytes of
  // the plan's weights before it believes them. Such weights are not hashed. Null: all are.
  const PresumedDigests* presumed = nullptr;
  ByteProgress progress = {};  // of hashing weights, on the caller's thread; may be empty
  // Receives what the file says wrongly and compilation goes on without; may be empty.
  std::function<void(const std::string&)> remark = {};
};

struct CompiledProgram {
  plan::Plan plan;
  // The bytes of constants that no external file holds: those of the model file and computed ones.
  // If not empty, the caller writes them as Options::constants_file beside the plan.
  std::string constants;
  std::string program_text;   // of plan.source (spec/program.md); empty if there is none
  std::string why_stateless;  // why Options::make_stateful changed nothing; else empty
  std::string torch_module;   // Python, for Options::torch_module; it reads weights where the plan does
};

// Nodes without a reproducible lowering are refused together: the error has one item for each
// reason (not_covered).
Result<CompiledProgram> compile(const onnx::Graph&, const Options&);
// Compiles and writes PATH and, if there are constants (onnx.19), PATH.constants.
// Options::artifacts receives copies. Weight files in the plan are relative to Options::folder, so
// PATH belongs there or where they are linked. With Options::torch_module the module's source lies
// beside it.
inline constexpr char kTorchModuleFile[] = "module.py";
Result<plan::Plan> compile_to(const onnx::Graph&, Options, const std::string& path);
// The stages that emit() accepts: the dialects "onnx", "repro" and "torch", each after its last
// pass, "plan", and the passes by name.
std::vector<std::string> stages();
// The MLIR text after a stage, which invar-opt reads; for "plan" the plan's text; for "program" the
// text of spec/program.md; for "torch-module" the source of a torch.nn.Module. The stages of torch
// are stateless, and for the operation set "default" they have torch's own operations.
Result<std::string> emit(const onnx::Graph&, Options, const std::string& stage);

struct TensorType {
  DType dtype;
  std::vector<int64_t> shape;
};
// Infers the result type of a reproducible operation, or verifies `wanted` if it is given. `attrs`
// exclude numerics and version. Errors: not_covered if the operation does not infer its type or
// does not support the operands; bad_input if operands do not fit together or an attribute is
// unknown.
Result<TensorType> infer_type(const std::string& op, const Attributes& attrs,
                              const std::vector<TensorType>& operands,
                              const std::optional<TensorType>& wanted = {});
// The same for sizes that are expressions of symbols. What holds for some of their values, the
// kernels check. not_covered also where the operation needs a size to be a number.
struct SymbolicType {
  DType dtype;
  std::vector<DimExpr> shape;
};
Result<SymbolicType> infer_type(const std::string& op, const Attributes& attrs,
                                const std::vector<SymbolicType>& operands);

// The expression by which torch's own functions compute an operation; {0}, {1}, ... are its
// operands. not_covered: torch has none for it, or not for these types.
Result<std::string> torch_expression(const std::string& op, const Attributes& attrs,
                                     const std::vector<TensorType>& operands, const TensorType& result);

}  // namespace invar::compiler
