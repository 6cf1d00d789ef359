// Arithmetic on weights alone, such as the standardisation of a convolution's weights, is done when a model is compiled: the rows that
// would run it on this machine make the bytes that they would make in every call. Results are constants of the program.
//
// What only moves elements or converts them stays, since other rewrites see to it, and so does what would make a program much larger: a
// result has at most as many bytes as the weights that it is made of, all results together as many as the program's weights.
#include <algorithm>
#include <set>

#include "base/endian.h"
#include "base/file/file.h"
#include "compiler/dialects/constant_data.h"
#include "compiler/passes/constant_evaluator.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/canonicalize/patterns.h"
#include "num/env.h"

namespace invar::compiler {
namespace {

constexpr int64_t kMostMade = int64_t{2}
                              << 30;  // bytes of results: they are in memory when the program is written
constexpr int64_t kWork = 64;         // bytes computed, intermediate ones too, for each of the weights'
constexpr size_t kMostSteps = 4096;   // operations behind one result
constexpr int64_t kWide = 4;          // bytes of an intermediate value for each of the weights behind it

// A value that depends on weights alone: operations in the order of the program, and what they read.
struct Part {
  llvm::SetVector<Operation*> steps;
  llvm::SetVector<Operation*> weights;
  int64_t bytes = 0;      // of the weights
  bool computes = false;  // more than copies and conversions
};

class EvaluateWeights : public PassWrapper<EvaluateWeights, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(EvaluateWeights)
  explicit EvaluateWeights(Storage* storage) : storage_(storage) {}
  EvaluateWeights(const EvaluateWeights& other) : PassWrapper(other), storage_(other.storage_) {}
  StringRef getArgument() const final { return "repro-evaluate"; }
  StringRef getDescription() const final { return "Arithmetic on weights alone, once"; }
  void runOnOperation() final {
    if (!storage_) return;
    Block& block = getOperation().front();
    find(block);
    std::vector<Operation*> roots;
    for (Operation& op : block)
      if (constant_.contains(&op) &&
          llvm::any_of(op.getUsers(), [&](Operation* user) { return !constant_.contains(user); }))
        roots.push_back(&op);
    for (Operation* root : roots) settle(root);
    remove_dead(block);
    constant_.clear(), files_.clear(), made_ = computed_ = weights_ = 0, pool_.reset();
  }

 private:
  void find(Block&);
  bool collect(Operation* root, Part&);
  void settle(Operation* root);
  std::optional<Memory> result_of(const Part&);
  std::optional<std::string_view> stored(ReproWeightOp, std::string& own);
  void replace(Operation* root, const Memory&);

  Storage* storage_;
  llvm::DenseSet<Operation*>
      constant_;  // operations whose operands are weights or results of such operations
  std::map<std::string, MappedFile> files_;
  std::unique_ptr<Pool> pool_;
  int64_t weights_ = 0, made_ = 0, computed_ = 0;  // bytes
};

void EvaluateWeights::find(Block& block) {
  std::set<std::string> names;
  for (Operation& op : block) {
    if (auto weight = dyn_cast<ReproWeightOp>(op))
      if (names.insert(weight.getName().str()).second) weights_ += static_cast<int64_t>(weight.getLength());
    if (!isa<ReproOp>(op) || op.hasAttr("state") || op.hasAttr(kMeasured) || op.getNumResults() != 1 ||
        op.getNumOperands() == 0 || !view_of(op.getResult(0).getType(), kMostMade))
      continue;
    if (llvm::all_of(op.getOperands(), [&](Value v) {
          auto weight = v.getDefiningOp<ReproWeightOp>();
          return weight ? !weight.getTransposed() : constant_.contains(v.getDefiningOp());
        }))
      constant_.insert(&op);
  }
}

// False: more than may stand behind a result.
bool EvaluateWeights::collect(Operation* root, Part& part) {
  std::vector<Operation*> open = {root};
  while (!open.empty()) {
    Operation* op = open.back();
    open.pop_back();
    if (auto weight = dyn_cast<ReproWeightOp>(op)) {
      if (part.weights.insert(op)) part.bytes += static_cast<int64_t>(weight.getLength());
      continue;
    }
    if (!part.steps.insert(op)) continue;
    if (part.steps.size() > kMostSteps) return false;
    part.computes |= !cast<ReproOp>(op).copies() && !isa<CastOp>(op);
    for (Value v : op->getOperands()) open.push_back(v.getDefiningOp());
  }
  SmallVector<Operation*> ordered(part.steps.begin(), part.steps.end());
  llvm::sort(ordered, [](Operation* a, Operation* b) { return a->isBeforeInBlock(b); });
  part.steps = llvm::SetVector<Operation*>(ordered.begin(), ordered.end());
  return true;
}

void EvaluateWeights::settle(Operation* root) {
  Part part;
  if (computed_ > kWork * weights_ || !collect(root, part) || !part.computes) return;
  const std::optional<ops::View> view = view_of(root->getResult(0).getType(), part.bytes);
  if (!view) return;
  const auto bytes = static_cast<int64_t>(bytes_of(*view));
  if (made_ + bytes > std::min(weights_, kMostMade)) return;
  if (std::optional<Memory> memory = result_of(part)) made_ += bytes, replace(root, *memory);
}

// The bytes of a weight, little-endian, where they are there.
std::optional<std::string_view> EvaluateWeights::stored(ReproWeightOp weight, std::string& own) {
  const auto length = static_cast<size_t>(weight.getLength());
  if (weight.getData()) {
    std::optional<std::string> bytes = bytes_from_hex(*weight.getData());
    if (!bytes || bytes->size() != length) return std::nullopt;
    return own = *std::move(bytes);
  }
  const std::string name = weight.getFile().str();
  if (name.empty()) return storage_->inlined.range(weight.getOffset(), weight.getLength());
  auto file = files_.find(name);
  if (file == files_.end()) {
    Result<MappedFile> opened =
        MappedFile::open(storage_->folder.empty() ? name : storage_->folder + "/" + name);
    if (!opened) return std::nullopt;  // what reads it is refused when weights are hashed
    file = files_.emplace(name, *std::move(opened)).first;
  }
  const std::string_view all = file->second.text();
  const auto offset = static_cast<size_t>(weight.getOffset());
  if (offset > all.size() || length > all.size() - offset) return std::nullopt;
  return all.substr(offset, length);
}

std::optional<Memory> EvaluateWeights::result_of(const Part& part) {
  llvm::DenseMap<Operation*, int> uses;  // that are left
  for (Operation* op : part.steps)
    for (Value v : op->getOperands()) ++uses[v.getDefiningOp()];
  std::map<Operation*, std::pair<Memory, ops::View>> known;
  const auto place = [&](Operation* op, int64_t most) -> ops::View* {
    const std::optional<ops::View> view = view_of(op->getResult(0).getType(), most);
    if (!view) return nullptr;
    auto& [memory_of, of] = known[op];
    memory_of = memory(bytes_of(*view)), of = *view, of.data = memory_of.data();
    return &of;
  };
  for (Operation* op : part.weights) {
    auto weight = cast<ReproWeightOp>(op);
    std::string own;
    const std::optional<std::string_view> bytes = stored(weight, own);
    ops::View* view = bytes ? place(op, static_cast<int64_t>(bytes->size())) : nullptr;
    if (!view || bytes_of(*view) != bytes->size()) return std::nullopt;
    copy_little_endian(view->data, bytes->data(), bytes->size(), size_of(view->dtype));
  }
  if (!pool_)
    pool_ = std::make_unique<Pool>(storage_->threads > 0 ? storage_->threads : available_cores(),
                                   [](const std::function<void()>& work) {
                                     const num::ArithmeticEnv env;
                                     work();
                                   });
  for (Operation* op : part.steps) {
    const ops::Kernel* row = ops::find(std::string_view(op->getName().stripDialect()));
    ops::View* out = row ? place(op, kWide * std::max(part.bytes, kSmallConstant)) : nullptr;
    if (!out) return std::nullopt;
    computed_ += static_cast<int64_t>(bytes_of(*out)) + 64;
    std::vector<ops::View> in;
    for (Value v : op->getOperands()) in.push_back(known.at(v.getDefiningOp()).second);
    if (!compute(op, *row, in, *out, pool_.get())) return std::nullopt;
    for (Value v : op->getOperands())
      if (--uses[v.getDefiningOp()] == 0) known.erase(v.getDefiningOp());
  }
  return std::move(known.at(part.steps.back()).first);
}

void EvaluateWeights::replace(Operation* root, const Memory& memory) {
  const auto type = cast<RankedTensorType>(root->getResult(0).getType());
  const ops::View view = *view_of(type, kMostMade);
  std::string bytes(bytes_of(view), '\0');
  copy_little_endian(bytes.data(), memory.data(), bytes.size(), size_of(view.dtype));
  OpBuilder build(root);
  Value made;
  if (static_cast<int64_t>(bytes.size()) <= kSmallConstant) {
    made = make_constant(build, root->getLoc(), bytes, view.dtype, type.getShape());
  } else {
    std::string name = std::string(name_of(view.dtype)) + " ";  // one that says what it names
    for (int d = 0; d < view.rank; ++d) name += (d ? "x" : "") + std::to_string(view.dim[d]);
    name += " " + to_hex(sha256(bytes));
    const auto length = static_cast<int64_t>(bytes.size());
    auto [at, is_new] = storage_->inlined.made.try_emplace(name, 0);
    if (is_new) {
      std::string& kept = storage_->inlined.own.emplace_back().inline_data;
      kept = std::move(bytes);
      at->second = storage_->inlined.add(kept);
    }
    made = build.create<ReproWeightOp>(root->getLoc(), type, build.getStringAttr(name),
                                       build.getStringAttr(""), build.getI64IntegerAttr(at->second),
                                       build.getI64IntegerAttr(length), StringAttr(), UnitAttr());
  }
  root->getResult(0).replaceAllUsesWith(made);
}

}  // namespace

std::unique_ptr<Pass> evaluate_weights(Storage* storage) {
  return std::make_unique<EvaluateWeights>(storage);
}

}  // namespace invar::compiler
