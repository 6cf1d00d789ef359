// repro-evaluate: evaluates arithmetic on weights alone at compile time, such as the
// standardization of a convolution's weights. The kernels are those that would run on this machine,
// so the bytes are those of every call. Results become constants of the program.
//
// Data movement and casts alone stay, since other rewrites handle them; but not the transpose of
// bytes that products of integers alone read, so that their kernels pack it once. So does what
// would enlarge the program much: a result has at most as many bytes as its weights, and all
// results together at most as many as all weights of the program. Weights in blocks that no kernel
// reads as they are packed may grow, since every call would unpack them.
#include <algorithm>
#include <set>

#include "base/endian.h"
#include "base/file/file.h"
#include "compiler/dialects/origin.h"
#include "compiler/passes/canonicalize/patterns.h"
#include "compiler/passes/constant_evaluator.h"
#include "compiler/passes/passes.h"
#include "kernels/registry.h"
#include "num/env.h"
#include "weights/weight_file.h"

namespace invar::compiler {
namespace {

// Bytes of all results. They are held in memory until the program is written.
constexpr int64_t kMaxResultBytes = int64_t{2} << 30;
// Bytes computed, with intermediate values, for each byte of the program's weights.
constexpr int64_t kMaxWorkFactor = 64;
// Bytes of one intermediate value for each byte of the weights that it depends on.
constexpr int64_t kMaxIntermediateFactor = 4;
constexpr size_t kMaxOpsPerResult = 4096;
// f32 of integers of 2 bits have 16 times their bytes.
constexpr int64_t kUnpackedFactor = 16;

// How many times the bytes above a result may have.
int64_t growth_of(Operation* root) {
  const std::string op = origin_of(root->getLoc()).op;
  return op == "MatMulNBits" || op == "QMoE" ? kUnpackedFactor : 1;
}

// The operations that compute one value from weights alone, in program order, and those weights.
struct ConstantSubgraph {
  llvm::SetVector<Operation*> ops;
  llvm::SetVector<Operation*> weights;
  int64_t weight_bytes = 0;
  bool has_arithmetic = false;  // more than copies and casts
};

class EvaluateWeights : public PassWrapper<EvaluateWeights, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(EvaluateWeights)
  explicit EvaluateWeights(WeightStorage* storage) : storage_(storage) {}
  EvaluateWeights(const EvaluateWeights& other) : PassWrapper(other), storage_(other.storage_) {}
  StringRef getArgument() const final { return "repro-evaluate"; }
  StringRef getDescription() const final { return "Evaluate arithmetic on weights at compile time"; }
  void runOnOperation() final {
    if (!storage_) return;
    Block& block = getOperation().front();
    find_constant_ops(block);
    std::vector<Operation*> roots;
    for (Operation& op : block)
      if (constant_.contains(&op) &&
          llvm::any_of(op.getUsers(), [&](Operation* user) { return !constant_.contains(user); }))
        roots.push_back(&op);
    for (Operation* root : roots) fold(root);
    erase_dead_ops(block);
    constant_.clear(), result_bytes_ = work_bytes_ = weight_bytes_ = 0, pool_.reset();
  }

 private:
  void find_constant_ops(Block&);
  bool collect(Operation* root, ConstantSubgraph&);
  void fold(Operation* root);
  std::optional<AlignedBuffer> evaluate(const ConstantSubgraph&, int64_t growth);
  std::optional<std::string_view> weight_data(ReproWeightOp);
  void replace(Operation* root, const AlignedBuffer&);

  WeightStorage* storage_;
  llvm::DenseSet<Operation*> constant_;  // operations that depend on weights alone
  std::unique_ptr<Pool> pool_;
  int64_t weight_bytes_ = 0, result_bytes_ = 0, work_bytes_ = 0;
};

void EvaluateWeights::find_constant_ops(Block& block) {
  std::set<std::string> names;
  for (Operation& op : block) {
    if (auto weight = dyn_cast<ReproWeightOp>(op))
      if (names.insert(weight.getName().str()).second)
        weight_bytes_ += static_cast<int64_t>(weight.getLength());
    if (!isa<ReproOp>(op) || op.hasAttr("state") || op.hasAttr(kMaterialized) || op.getNumResults() != 1 ||
        op.getNumOperands() == 0 || !static_view(op.getResult(0).getType(), kMaxResultBytes))
      continue;
    if (llvm::all_of(op.getOperands(), [&](Value v) {
          auto weight = v.getDefiningOp<ReproWeightOp>();
          return weight ? !weight.getTransposed() : constant_.contains(v.getDefiningOp());
        }))
      constant_.insert(&op);
  }
}

// Collects the operations that `root` depends on. False if they are too many.
bool EvaluateWeights::collect(Operation* root, ConstantSubgraph& subgraph) {
  std::vector<Operation*> open = {root};
  while (!open.empty()) {
    Operation* op = open.back();
    open.pop_back();
    if (auto weight = dyn_cast<ReproWeightOp>(op)) {
      if (subgraph.weights.insert(op)) subgraph.weight_bytes += static_cast<int64_t>(weight.getLength());
      continue;
    }
    if (!subgraph.ops.insert(op)) continue;
    if (subgraph.ops.size() > kMaxOpsPerResult) return false;
    subgraph.has_arithmetic |= !cast<ReproOp>(op).copies() && !isa<CastOp>(op);
    for (Value v : op->getOperands()) open.push_back(v.getDefiningOp());
  }
  SmallVector<Operation*> ordered(subgraph.ops.begin(), subgraph.ops.end());
  llvm::sort(ordered, [](Operation* a, Operation* b) { return a->isBeforeInBlock(b); });
  subgraph.ops = llvm::SetVector<Operation*>(ordered.begin(), ordered.end());
  return true;
}

bool feeds_integer_products(Operation* op) {
  return isa<TransposeOp>(op) &&
         llvm::all_of(op->getUsers(), [](Operation* user) { return isa<MatmulIntegerOp>(user); });
}

void EvaluateWeights::fold(Operation* root) {
  ConstantSubgraph subgraph;
  const int64_t growth = growth_of(root);
  if (work_bytes_ > growth * kMaxWorkFactor * weight_bytes_ || !collect(root, subgraph) ||
      (!subgraph.has_arithmetic && !feeds_integer_products(root)))
    return;
  const std::optional<ops::View> view =
      static_view(root->getResult(0).getType(), growth * subgraph.weight_bytes);
  if (!view) return;
  const auto bytes = static_cast<int64_t>(byte_size(*view));
  if (result_bytes_ + bytes > std::min(growth * weight_bytes_, kMaxResultBytes)) return;
  if (std::optional<AlignedBuffer> memory = evaluate(subgraph, growth))
    result_bytes_ += bytes, replace(root, *memory);
}

// The bytes of a weight, little-endian; nothing if they cannot be read.
std::optional<std::string_view> EvaluateWeights::weight_data(ReproWeightOp weight) {
  const auto length = static_cast<size_t>(weight.getLength());
  if (weight.getData()) {
    const std::string_view bytes(*weight.getData());
    return bytes.size() == length ? std::optional(bytes) : std::nullopt;
  }
  const std::string name = weight.getFile().str();
  if (name.empty()) return storage_->inline_constants.range(weight.getOffset(), weight.getLength());
  if (weights::is_index(name)) return std::nullopt;  // they stay packed
  auto& files = storage_->read;
  auto file = files.find(name);
  if (file == files.end()) {
    Result<MappedFile> opened =
        MappedFile::open(storage_->folder.empty() ? name : storage_->folder + "/" + name);
    if (!opened) return std::nullopt;  // reported when weights are hashed
    file = files.emplace(name, *std::move(opened)).first;
  }
  const std::string_view all = file->second.text();
  const auto offset = static_cast<size_t>(weight.getOffset());
  if (offset > all.size() || length > all.size() - offset) return std::nullopt;
  // The operands are hashed here and now: nobody who loads the result could compare them.
  storage_->presumed.erase({name, offset, length});
  return all.substr(offset, length);
}

std::optional<AlignedBuffer> EvaluateWeights::evaluate(const ConstantSubgraph& subgraph, int64_t growth) {
  llvm::DenseMap<Operation*, int> uses;  // remaining
  for (Operation* op : subgraph.ops)
    for (Value v : op->getOperands()) ++uses[v.getDefiningOp()];
  std::map<Operation*, std::pair<AlignedBuffer, ops::View>> values;
  const auto allocate = [&](Operation* op, int64_t max_bytes) -> ops::View* {
    const std::optional<ops::View> view = static_view(op->getResult(0).getType(), max_bytes);
    if (!view) return nullptr;
    auto& [buffer, stored] = values[op];
    buffer = aligned_buffer(byte_size(*view)), stored = *view, stored.data = buffer.data();
    return &stored;
  };
  for (Operation* op : subgraph.weights) {
    auto weight = cast<ReproWeightOp>(op);
    const std::optional<std::string_view> bytes = weight_data(weight);
    ops::View* view = bytes ? allocate(op, static_cast<int64_t>(bytes->size())) : nullptr;
    if (!view || byte_size(*view) != bytes->size()) return std::nullopt;
    copy_little_endian(view->data, bytes->data(), bytes->size(), size_of(view->dtype));
  }
  if (!pool_)
    pool_ = std::make_unique<Pool>(storage_->threads > 0 ? storage_->threads : available_cores(),
                                   [](const std::function<void()>& work) {
                                     const num::ArithmeticEnv env;
                                     work();
                                   });
  for (Operation* op : subgraph.ops) {
    const ops::CpuKernel* row = ops::find_cpu_kernel(std::string_view(op->getName().stripDialect()));
    ops::View* out =
        row ? allocate(op, growth * kMaxIntermediateFactor * std::max(subgraph.weight_bytes, kSmallConstant))
            : nullptr;
    if (!out) return std::nullopt;
    work_bytes_ += static_cast<int64_t>(byte_size(*out)) + 64;
    std::vector<ops::View> in;
    for (Value v : op->getOperands()) in.push_back(values.at(v.getDefiningOp()).second);
    if (!run_kernel(op, *row, in, *out, pool_.get())) return std::nullopt;
    for (Value v : op->getOperands())
      if (--uses[v.getDefiningOp()] == 0) values.erase(v.getDefiningOp());
  }
  return std::move(values.at(subgraph.ops.back()).first);
}

void EvaluateWeights::replace(Operation* root, const AlignedBuffer& memory) {
  const auto type = cast<RankedTensorType>(root->getResult(0).getType());
  const ops::View view = *static_view(type, kMaxResultBytes);
  std::string bytes(byte_size(view), '\0');
  copy_little_endian(bytes.data(), memory.data(), bytes.size(), size_of(view.dtype));
  OpBuilder build(root);
  Value made;
  if (static_cast<int64_t>(bytes.size()) <= kSmallConstant) {
    made = make_constant(build, root->getLoc(), bytes, view.dtype, type.getShape());
  } else {
    std::string name = std::string(name_of(view.dtype)) + " ";  // describes the content
    for (int d = 0; d < view.rank; ++d) name += (d ? "x" : "") + std::to_string(view.dim[d]);
    name += " " + to_hex(sha256(bytes));
    const auto length = static_cast<int64_t>(bytes.size());
    auto [at, is_new] = storage_->inline_constants.computed.try_emplace(name, 0);
    if (is_new) {
      std::string& owned = storage_->inline_constants.owned.emplace_back().inline_data;
      owned = std::move(bytes);
      at->second = storage_->inline_constants.add(owned);
    }
    made = build.create<ReproWeightOp>(root->getLoc(), type, build.getStringAttr(name),
                                       build.getStringAttr(""), build.getI64IntegerAttr(at->second),
                                       build.getI64IntegerAttr(length), StringAttr(), UnitAttr());
  }
  root->getResult(0).replaceAllUsesWith(made);
}

}  // namespace

std::unique_ptr<Pass> evaluate_weights_pass(WeightStorage* storage) {
  return std::make_unique<EvaluateWeights>(storage);
}

}  // namespace invar::compiler
