// ONNX graph -> IR -> plan. The only folder that links MLIR.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/attributes.h"
#include "base/dtype.h"
#include "base/hash/digest_cache.h"
#include "base/status.h"
#include "onnx/onnx.h"
#include "plan/plan.h"

namespace invar::compiler {

// How much is rewritten; the bytes that a program computes are those of every level. 0: what a plan needs; 1: weights fold into the
// operands that read them, operations of several steps become one; 2: copies of nothing, casts of casts and equal operations go;
// 3: transposes move to where they cancel.
inline constexpr int kMostOpt = 3;

struct Options {
  std::string folder;  // where the graph's external files lie; weights are hashed from there
  int threads = 0;     // for hashing; 0 = one per core
  std::string constants_file = "constants.bin";  // the plan's name for the file of Program::constants
  int opt = kMostOpt;
  std::string artifacts;  // a folder that takes the text of every stage; empty: none
  OperationSet operation_set = OperationSet::reproducible;  // the plan's; all sets compile the same program
  std::string choices =
      "all";  // numerics choices that may be applied: all, none, or names separated by commas
  // Past keys and values stay inputs and outputs: a function of tensors, not a session's program (onnx.20).
  bool stateless = false;
  // Takes the digests that were computed.
  Hashed* hashed = nullptr;
};

struct Program {
  plan::Plan plan;
  // The bytes of constants that lie in the model file itself (no other file holds them). Where not empty, the caller
  // writes them as Options::constants_file beside the plan; the plan's weights point into it.
  std::string constants;
};

// What has no reproducible kernel is refused with the whole list, one per line after the first (not_covered).
Result<Program> compile(const onnx::Graph&, const Options&);
// Compiles and writes PATH and, for constants that have no place in a file (onnx.19), PATH.constants; the same into Options::artifacts.
// The plan's weight files are named relative to Options::folder, so PATH belongs there, or where they are linked.
Result<plan::Plan> compile_to(const onnx::Graph&, Options, const std::string& path);
// What emit() knows: "onnx", "repro", "plan" (the dialects, when all of their passes are done), and the passes by name.
std::vector<std::string> stages();
// The IR after a stage as MLIR text that the same stage's tools can read again.
Result<std::string> emit(const onnx::Graph&, const Options&, const std::string& stage);

struct TensorType {
  DType dtype;
  std::vector<int64_t> shape;
};
// The type of the result of a reproducible operation, or, where `wanted` is given, that one, checked. attrs: without numerics
// and version. not_covered where the operation does not infer it or takes no such operands, bad_input where they do not fit
// together or the operation has no such attribute.
Result<TensorType> infer(const std::string& op, const Attrs& attrs, const std::vector<TensorType>& operands,
                         const std::optional<TensorType>& wanted = {});

}  // namespace invar::compiler
