// The executor of decoders with control flow, see prefix_executor.h.
#include "run/segments/prefix_executor.h"

#include <algorithm>

namespace invar::run {

Result<std::unique_ptr<PrefixExecutor>> PrefixExecutor::open(const plan::Plan& plan,
                                                             std::vector<DecoderInput> inputs, int logits,
                                                             ExecutionContext& context) {
  std::unique_ptr<PrefixExecutor> made(new PrefixExecutor(plan, std::move(inputs), logits, context));
  // The tokens first: they say which symbol is the number of sequences (feed()).
  std::stable_partition(made->inputs_.begin(), made->inputs_.end(),
                        [](const Fed& i) { return i.kind == DecoderInput::Kind::ids; });
  context.symbols = DimSymbols(plan);
  std::vector<plan::BlockPartition> partition = plan::partition(plan);
  INVAR_TRY(made->block_, BlockExecutor::open(plan, partition, -1, context));
  context.options.hashed = nullptr;  // it is read by open() only
  return made;
}

// A dimension of past keys or values in what they leave as, joined with the new ones: `present` in
// the place of the name up to its first point. 0: nothing says it.
int64_t PrefixExecutor::joined_size(int value, size_t axis) const {
  const auto end = [](const std::string& name) { return name.substr(std::min(name.find('.'), name.size())); };
  const auto input = std::ranges::find(plan_.inputs, value, &plan::Port::value);
  for (const plan::Port& output : plan_.outputs) {
    const std::vector<plan::DimRef>& shape = plan_.values[output.value].shape;
    if (input != plan_.inputs.end() && output.name.starts_with("present") &&
        end(output.name) == end(input->name) && axis < shape.size() && shape[axis].symbol < 0)
      return shape[axis].value;
  }
  return 0;
}

// Sets an input for one sequence of these tokens, and the symbols of its shape: of two dimensions
// the first counts sequences, the last tokens. A symbol of past keys that is still unknown is what
// the joined keys say, else 0 (plan.19).
void PrefixExecutor::feed(Fed& input, std::span<const int32_t> tokens, std::vector<int64_t>& sizes) {
  const plan::Value& value = plan_.values[input.value];
  const bool past = input.kind == DecoderInput::Kind::past;
  ops::View view;
  view.dtype = value.dtype, view.rank = static_cast<int>(value.shape.size());
  for (int d = 0; d < view.rank; ++d) {
    const plan::DimRef& dim = value.shape[d];
    const auto count = static_cast<int64_t>(tokens.size());
    const int64_t given = past                 ? joined_size(input.value, static_cast<size_t>(d))
                          : d == view.rank - 1 ? count
                                               : 1;
    if (dim.symbol >= 0 && plan_.symbols[dim.symbol].as_symbol() && sizes[dim.symbol] < 0)
      sizes[dim.symbol] = given;
    view.dim[d] = dim.symbol < 0 ? dim.value : past && sizes[dim.symbol] >= 0 ? sizes[dim.symbol] : given;
  }
  input.words.assign(tokens.size() + 1, 0);  // never without memory
  const auto put = [&](size_t i, int64_t v) {
    if (value.dtype == DType::i32)
      reinterpret_cast<int32_t*>(input.words.data())[i] = static_cast<int32_t>(v);
    else
      input.words[i] = v;
  };
  for (size_t i = 0; i < tokens.size() && !past; ++i)
    put(i, input.kind == DecoderInput::Kind::ids         ? tokens[i]
           : input.kind == DecoderInput::Kind::positions ? static_cast<int64_t>(i)
                                                         : 1);
  view.data = input.words.data();
  block_->set_input(input.value, {view, /*on_device=*/false});
}

Result<std::span<const float>> PrefixExecutor::run(std::span<const int32_t> tokens) {
  if (context_.device) context_.device->make_current();
  std::vector<int64_t> sizes(plan_.symbols.size(), -1);
  for (Fed& input : inputs_) feed(input, tokens, sizes);
  for (size_t i = 0; i < sizes.size(); ++i)  // plan.9: a symbol that no input has
    if (plan_.symbols[i] == DimExpr::symbol("past") && sizes[i] < 0) sizes[i] = 0;
  INVAR_CHECK_OK(block_->run(sizes, {logits_}));
  TensorRef last = block_->value(logits_, /*fetched=*/true);
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
