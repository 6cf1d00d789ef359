// The stages of the compiler. Passes report through diagnostics and never throw.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash/sha256.h"
#include "base/hash/digest_cache.h"
#include "shape/dim_expr.h"
#include "base/status.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/Pass.h"
#include "onnx/onnx.h"
#include "plan/plan.h"

namespace invar::compiler {

// Loads the three dialects.
void load_dialects(mlir::MLIRContext&);

// Bytes of constants that lie in the model file, or were computed, and are too many to stand in the IR: there they have neither file nor data, and as
// their offset the place that they would have if all stood one behind the other.
struct Inlined {
  std::map<int64_t, std::string_view> bytes;  // by where they begin
  int64_t end = 0;
  int64_t add(std::string_view constant) {
    bytes.emplace(end, constant);
    const auto size = static_cast<int64_t>(constant.size());
    return std::exchange(end, end + size);
  }
  // Those of one constant, or of a part of it; nothing: there are none.
  std::optional<std::string_view> range(int64_t offset, int64_t length) const {
    auto at = bytes.upper_bound(offset);
    if (at == bytes.begin() || length < 0) return std::nullopt;
    const auto& [begin, constant] = *--at;
    const auto start = static_cast<size_t>(offset - begin), size = static_cast<size_t>(length);
    if (start > constant.size() || size > constant.size() - start) return std::nullopt;
    return constant.substr(start, size);
  }
  std::deque<onnx::TensorRef> own;      // what the graph does not hold as it is
  std::map<std::string, int64_t> made;  // by name: where what the compiler computed begins
};
// Names of inputs' dimensions that are others' or constants whatever the model file says (spec/onnx.md onnx.25).
using Settled = std::map<std::string, Polynomial>;
// ONNX graph -> onnx dialect. Total: whatever the graph holds has a form here. The graph must outlive `inlined`.
mlir::OwningOpRef<mlir::ModuleOp> import_graph(mlir::MLIRContext&, const onnx::Graph&, Inlined& inlined,
                                               const Settled& = {});

// onnx -> repro by the rules of the rooms, types inferred on the way. What cannot be converted is collected in
// `refused` (null: only reported as diagnostics) and fails the pass. stateless: Options::stateless.
// Where it fails because names of inputs' dimensions must be something, it adds to `settled` what they must be.
// Nodes of one operator that are refused for one reason are one refusal.
struct Refusal {
  Code code;
  std::string op;      // with its domain and opset; empty: no node is refused
  std::string node{};  // the name of the first
  std::string reason;
  int64_t nodes = 1;
};
struct Refusals {
  std::vector<Refusal> list{};
  Settled settled{};
  bool settles = true;  // else nothing is
};
std::unique_ptr<mlir::Pass> to_repro(Refusals* refused = nullptr, bool stateless = false);

// Numerics choices that may be applied, of "all", "none" or names separated by commas (spec/choices.md).
Result<std::vector<std::string>> choices_of(std::string_view);
// Patterns of these choices -> operations. The function's attribute kChoices names those that were found. Before any rewrite, so that
// what is found does not depend on the level.
std::unique_ptr<mlir::Pass> recover(std::vector<std::string> allowed);
inline constexpr char kChoices[] = "plan.choices";

// Bit-keeping rewrites of the rooms.
std::unique_ptr<mlir::Pass> fold();
// Those of src/compiler/rewrites.
std::unique_ptr<mlir::Pass> simplify();
std::unique_ptr<mlir::Pass> turn();
struct Storage;
// Arithmetic on weights alone (evaluate_weights.cc); without storage there are no weights to read.
std::unique_ptr<mlir::Pass> evaluate_weights(Storage*);
// Equal weights merged, dead code removed.
std::unique_ptr<mlir::Pass> settle();

// repro -> plan: weights hashed from `folder`, buffer slots assigned.
struct Storage {
  std::string folder, constants_file;
  int threads = 0;
  Hashed* hashed = nullptr;
  Inlined inlined;
  std::string constants;                                      // out: the content of constants_file
  std::map<std::pair<Digest, size_t>, int64_t> constants_at;  // bytes by digest and number, to where they are
  std::vector<Error> errors;                                  // out
};
std::unique_ptr<mlir::Pass> to_plan(Storage* storage);

// The plan dialect as data.
Result<plan::Plan> plan_from(mlir::ModuleOp);

}  // namespace invar::compiler
