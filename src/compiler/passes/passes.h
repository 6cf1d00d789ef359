// The compiler's passes and the data that they share. Passes report errors through diagnostics and
// never throw.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/file/byte_progress.h"
#include "base/hash/digest_cache.h"
#include "base/hash/sha256.h"
#include "base/status.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/Pass.h"
#include "onnx/onnx.h"
#include "plan/plan.h"
#include "shape/dim_expr.h"

namespace invar::compiler {

// Loads the onnx, repro and torch dialects.
void load_dialects(mlir::MLIRContext&);

// The bytes of constants that no external file holds and that are too large for an attribute. A
// weight op refers to them with an empty file name and an offset into their concatenation.
struct InlineConstants {
  std::map<int64_t, std::string_view> bytes;  // by offset
  int64_t end = 0;
  int64_t add(std::string_view constant) {
    bytes.emplace(end, constant);
    const auto size = static_cast<int64_t>(constant.size());
    return std::exchange(end, end + size);
  }
  // A whole constant or a part of one; nothing if the range is outside of every constant.
  std::optional<std::string_view> range(int64_t offset, int64_t length) const {
    auto at = bytes.upper_bound(offset);
    if (at == bytes.begin() || length < 0) return std::nullopt;
    const auto& [begin, constant] = *--at;
    const auto start = static_cast<size_t>(offset - begin), size = static_cast<size_t>(length);
    if (start > constant.size() || size > constant.size() - start) return std::nullopt;
    return constant.substr(start, size);
  }
  std::deque<onnx::TensorRef> owned;        // bytes that the graph itself does not own
  std::map<std::string, int64_t> computed;  // name of a constant that a pass computed -> its offset
};

// Symbols of the inputs' dimensions that must equal an expression, although the model file does not
// say so (spec/onnx.md onnx.25).
using DimConstraints = std::map<std::string, DimExpr>;
// Imports an ONNX graph into the onnx dialect. Every graph has a form there. The graph must outlive
// `inline_constants`.
mlir::OwningOpRef<mlir::ModuleOp> import_graph(mlir::MLIRContext&, const onnx::Graph&,
                                               InlineConstants& inline_constants, const DimConstraints& = {});

// Names that passes had in earlier versions, each with the present one. emit() and invar-opt accept
// them.
llvm::ArrayRef<std::pair<llvm::StringRef, llvm::StringRef>> earlier_pass_names();

// The nodes of one operator that were refused for one reason.
struct RefusedNodes {
  Code code;
  std::string op;      // with domain and opset; empty: the refusal concerns no node
  std::string node{};  // the name of the first node
  std::string reason;
  int64_t nodes = 1;
};
// What becomes of an `If` whose branches give results of different ranks (onnx.23).
enum class DifferingRanks : uint8_t { refused, take_else, take_then };
struct ConversionReport {
  std::vector<RefusedNodes> refused{};
  DimConstraints constraints{};   // in: what holds; out: also what refused nodes imply
  bool learn_constraints = true;  // false: `constraints` stays as it is
  DifferingRanks differing_ranks = DifferingRanks::refused;
  bool ranks_differ = false;  // out: there was such an `If`
};
// onnx -> repro by the lowering rules of the rooms, with type inference. If a node cannot be
// converted, the pass fails and `report` says why; without a report, diagnostics do. stateless:
// Options::stateless.
std::unique_ptr<mlir::Pass> lower_onnx_pass(ConversionReport* report = nullptr, bool stateless = false);

// Parses "all", "none" or names separated by commas into numerics choices (spec/choices.md).
Result<std::vector<std::string>> choices_of(std::string_view);
// Replaces decomposed operations by single ones, as the allowed choices permit. The function
// attribute kChoicesAttr lists the choices that were applied. The pass runs before every rewrite,
// so that its result does not depend on the optimization level.
std::unique_ptr<mlir::Pass> recognize_idioms_pass(std::vector<std::string> allowed);
inline constexpr char kChoicesAttr[] = "plan.choices";

// The rooms' fusions: an operation reads its weight as stored, and chains become one operation. No
// bit changes.
std::unique_ptr<mlir::Pass> fuse_operations_pass();
// The rewrites of passes/canonicalize. No bit changes.
std::unique_ptr<mlir::Pass> canonicalize_pass();
// Moves transposes toward users where they cancel.
std::unique_ptr<mlir::Pass> sink_transposes_pass();
struct WeightStorage;
// Evaluates arithmetic on weights at compile time. Null: no weights can be read, so nothing
// happens.
std::unique_ptr<mlir::Pass> evaluate_weights_pass(WeightStorage*);
// Establishes what plans require: no dead operations, weights stored as typed, one weight per name.
std::unique_ptr<mlir::Pass> prepare_plan_pass();

// The place of weights, and the constants that the plan's own file receives.
struct WeightStorage {
  std::string folder, constants_file;
  int threads = 0;
  DigestCache* hashed = nullptr;
  std::map<std::tuple<std::string, uint64_t, uint64_t>, Digest> presumed = {};  // by file, offset, length
  ByteProgress progress = {};                                                   // of hashing
  InlineConstants inline_constants;
  std::map<std::string, MappedFile> read = {};                    // that bytes were computed from
  std::string constants;                                          // out: content of constants_file
  std::map<std::pair<Digest, size_t>, int64_t> constant_offsets;  // digest and size -> offset
  std::vector<Error> errors;                                      // out
};
// Hashes weights, and gives those without a file a place in `constants_file`. The attribute
// kSha256Attr of a weight holds its digest.
std::unique_ptr<mlir::Pass> store_weights_pass(WeightStorage*);
inline constexpr char kSha256Attr[] = "sha256";

// Translates a module after store_weights_pass().
Result<plan::Plan> translate_to_plan(mlir::ModuleOp);
// The attributes of an operation that a plan lists in braces: all but version and state.
llvm::SmallVector<mlir::NamedAttribute> params_of(mlir::Operation*);

}  // namespace invar::compiler
