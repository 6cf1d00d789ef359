// The executor of decoders with control flow, see prefix_executor.h.
#include "run/segments/prefix_executor.h"

#include <numeric>

namespace invar::run {

Result<std::unique_ptr<PrefixExecutor>> PrefixExecutor::open(const plan::Plan& plan, const PortValues& ports,
                                                             ExecutionContext& context) {
  std::unique_ptr<PrefixExecutor> made(new PrefixExecutor(plan, ports, context));
  context.symbols = DimSymbols(plan);
  std::vector<plan::BlockPartition> partition = plan::partition(plan);
  INVAR_TRY(made->block_, BlockExecutor::open(plan, partition, -1, context));
  context.options.hashed = nullptr;  // it is read by open() only
  return made;
}

void PrefixExecutor::set_input(int v, std::vector<int64_t>& elements) {
  ops::View view;
  view.dtype = DType::i64, view.rank = static_cast<int>(plan_.values[v].shape.size());
  for (int d = 0; d < view.rank; ++d) {
    const plan::DimRef& dim = plan_.values[v].shape[d];
    const bool is_seq = dim.symbol >= 0 && plan_.symbols[dim.symbol] == DimExpr::symbol("seq");
    view.dim[d] = is_seq ? static_cast<int64_t>(elements.size()) : 1;
  }
  view.data = elements.data();
  block_->set_input(v, {view, /*on_device=*/false});
}

Result<std::span<const float>> PrefixExecutor::run(std::span<const int32_t> tokens) {
  if (context_.device) context_.device->make_current();
  ids_.assign(tokens.begin(), tokens.end());
  set_input(ports_.ids, ids_);
  if (ports_.positions >= 0) {
    positions_.resize(tokens.size());
    std::iota(positions_.begin(), positions_.end(), 0);
    set_input(ports_.positions, positions_);
  }
  std::vector<int64_t> sizes;
  for (const DimExpr& expr : plan_.symbols) {
    const std::string symbol = expr.text();
    sizes.push_back(symbol == "batch"  ? 1
                    : symbol == "seq"  ? static_cast<int64_t>(tokens.size())
                    : symbol == "past" ? 0
                                       : -1);
  }
  INVAR_CHECK_OK(block_->run(sizes, {ports_.logits}));
  TensorRef last = block_->value(ports_.logits, /*fetched=*/true);
  const int64_t vocab = last.view.dim[last.view.rank - 1];
  last.view.data = last.view.as<float>() + last.view.elements() - vocab;
  last.view.rank = 1, last.view.dim[0] = vocab;
  if (last.on_device) {  // a result of control flow
    row_.resize(static_cast<size_t>(vocab));
    INVAR_CHECK_OK(copy(context_, row_.data(), /*to_device=*/false, last));
    INVAR_CHECK_OK(context_.device->wait());
    return std::span<const float>(row_);
  }
  return std::span<const float>(last.view.as<float>(), static_cast<size_t>(vocab));
}

}  // namespace invar::run
