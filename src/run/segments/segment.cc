// The executor of one plan segment, see segment.h.
#include "run/segments/segment.h"

#include <algorithm>

namespace invar::run {
namespace {

constexpr int64_t kLargestTrialSize = 4096;

// The plan with every symbol replaced by its size.
plan::Plan specialize(const plan::Plan& plan, const std::vector<int64_t>& sizes) {
  plan::Plan p = plan;
  for (plan::Value& v : p.values)
    for (plan::DimRef& d : v.shape)
      if (d.symbol >= 0) d = {sizes[d.symbol], -1};
  p.symbols.clear();
  return p;
}

}  // namespace

DimSymbols::DimSymbols(const plan::Plan& plan) : exprs_(plan.symbols) {
  for (size_t i = 0; i < exprs_.size(); ++i)
    if (const std::string* name = exprs_[i].as_symbol()) names_[*name] = i;
}

int64_t DimSymbols::evaluate(int symbol, const std::vector<int64_t>& sizes) const {
  if (is_name(symbol)) return sizes[static_cast<size_t>(symbol)];
  const auto lookup = [&](const std::string& name) -> std::optional<int64_t> {
    const auto at = names_.find(name);
    const int64_t size = at == names_.end() ? -1 : sizes[at->second];
    return size < 0 ? std::nullopt : std::optional(size);
  };
  return std::max<int64_t>(exprs_[static_cast<size_t>(symbol)].evaluate(lookup).value_or(-1), -1);
}

SegmentExecutor::SegmentExecutor(plan::Segment segment) : segment_(std::move(segment)) {
  std::vector<bool> occurs(segment_.symbols.size());
  for (const plan::Value& v : segment_.plan.values)
    for (const plan::DimRef& d : v.shape)
      if (d.symbol >= 0) occurs[d.symbol] = true;
  for (size_t s = 0; s < occurs.size(); ++s)
    if (occurs[s]) symbols_.push_back(static_cast<size_t>(segment_.symbols[s]));
}

// The kernels that read the weights, which are packed for them.
static std::vector<ops::KernelRef> kernels_of_weights(const Executable& executable) {
  std::vector<ops::KernelRef> kernels;
  for (const Weights::Use& u : executable.weight_uses()) kernels.push_back(u.kernel);
  return kernels;
}

Result<std::shared_ptr<const Executable>> SegmentExecutor::prepare(const ExecutionContext& context,
                                                                   const plan::Plan& plan,
                                                                   const PassObserver& observer) const {
  return run::prepare(plan, {context.options.isa, context.device}, {segment_.node_numbers, segment_.values},
                      observer);
}

// Packing rarely depends on sizes: only where fusion selects other kernels (fuse_epilogues). Not
// every segment accepts small sizes, so larger ones are tried, too.
Status SegmentExecutor::open(const ExecutionContext& context, bool may_skip) {
  const DimSymbols symbols(segment_.plan);
  for (int64_t size = 1;; size *= 2) {
    std::vector<int64_t> sizes(segment_.symbols.size(), size);
    for (size_t s = 0; s < sizes.size(); ++s) sizes[s] = symbols.evaluate(static_cast<int>(s), sizes);
    const plan::Plan trial = specialize(segment_.plan, sizes);
    INVAR_TRY(const auto executable, prepare(context, trial));
    const Status accepted = validate(*executable, 1);
    if (accepted) return load(context, *executable);
    if (segment_.plan.symbols.empty()) return may_skip ? Status() : accepted;
    if (size == kLargestTrialSize) return {};
  }
}

Status SegmentExecutor::load(const ExecutionContext& context, const Executable& executable) {
  INVAR_TRY(weights_, Weights::load(segment_.plan, context.folder, executable.weight_uses(), *context.pool,
                                    {context.options.check_weights, context.options.hashed}, context.device));
  packed_for_ = kernels_of_weights(executable);
  return {};
}

Status SegmentExecutor::resize(const ExecutionContext& context, const std::vector<int64_t>& sizes) {
  std::vector<int64_t> own;
  for (size_t s : symbols_) own.push_back(sizes[s]);
  if (specialized_plan_ && own == sizes_) return {};
  executor_.reset();  // frees its memory before the new one takes some
  std::vector<int64_t> symbol_sizes;
  for (int s : segment_.symbols) symbol_sizes.push_back(sizes[static_cast<size_t>(s)]);
  specialized_plan_ = std::make_unique<plan::Plan>(specialize(segment_.plan, symbol_sizes));
  sizes_.assign(symbols_.size() + 1, -2);  // matches no sizes until the executor is ready
  INVAR_TRY(auto executable, prepare(context, *specialized_plan_, explain(context.options.explain)));
  INVAR_CHECK_OK(validate(*executable, 1));
  if (!weights_ || packed_for_ != kernels_of_weights(*executable)) {
    INVAR_CHECK_OK(load(context, *executable));
  }
  // A stateful operation without a state remembers the positions of this call only.
  const int64_t positions = executable->constant_positions();
  std::vector<ops::Sequence> sequences;
  for (int64_t i = 0; i < executable->constant_sequences(); ++i) sequences.push_back({i, 0});
  executor_ = Executor::make(std::move(executable), *context.pool, context.device);
  INVAR_CHECK_OK(executor_->attach(*weights_));
  INVAR_CHECK_OK(executor_->reserve(positions, positions, positions, static_cast<int64_t>(sequences.size()),
                                    /*host_ports=*/false));
  INVAR_CHECK_OK(executor_->bind(positions, sequences));
  sizes_ = std::move(own);
  return {};
}

}  // namespace invar::run
