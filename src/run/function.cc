// Functions of tensors, see function.h: checks the inputs, runs the block executor, collects the
// outputs.
#include "run/function.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/text/names.h"
#include "num/env.h"
#include "plan/encoder_part.h"
#include "plan/keywords.h"
#include "run/segments/block_executor.h"
#include "run/thread_setup.h"

namespace invar::run {
namespace {

std::string text_of(DType type, const std::vector<std::string>& dims) {
  std::string s = std::string(name_of(type)) + " [";
  for (size_t i = 0; i < dims.size(); ++i) s += (i ? ", " : "") + dims[i];
  return s + "]";
}
std::string text_of(DType type, std::span<const int64_t> shape) {
  std::vector<std::string> dims;
  for (const int64_t d : shape) dims.push_back(std::to_string(d));
  return text_of(type, dims);
}

// The bytes of a tensor; nullopt if its shape is impossible.
std::optional<size_t> bytes_of(DType type, std::span<const int64_t> shape) {
  size_t bytes = size_of(type);
  for (const int64_t d : shape)
    if (d < 0 || __builtin_mul_overflow(bytes, static_cast<size_t>(d), &bytes)) return std::nullopt;
  return bytes;
}

}  // namespace

struct Function::Impl {
  plan::Plan plan;
  ExecutionContext context;
  std::unique_ptr<BlockExecutor> program;
  std::vector<bool> used;  // per symbol: known in the program, not only within a body

  Status open(const std::string& folder);
  Result<std::vector<int64_t>> bind_sizes(const NamedViews& inputs) const;
  Status bind_input(const plan::Port& port, const TensorView& tensor, std::vector<int64_t>& sizes) const;
  Status compute(const NamedViews& inputs, bool fetch_outputs);
  Result<NamedTensors> run(const NamedViews& inputs);
  Status run(const NamedViews& inputs, const OutputAllocator& allocate);
  std::vector<std::string> collect_names(std::vector<std::string> (*names_of)(const Executable&)) const {
    std::vector<std::string> all;
    program->add_names(names_of, all);
    return all;
  }
};

Status Function::Impl::open(const std::string& folder) {
  if (!plan.states.empty())
    return not_covered(
        "the plan remembers what it was given: it takes tokens, not tensors; compile with --stateless for "
        "tensors");
  context.folder = folder.empty() ? "." : folder;
  INVAR_TRY(context.pool, start_pool(context.options.threads));
  const num::ArithmeticEnv env;
  INVAR_TRY(context.device, Device::named(context.options.device));
  std::vector<plan::BlockPartition> partition = plan::partition(plan);
  context.symbols = DimSymbols(plan);
  used.resize(plan.symbols.size());
  for (const plan::Segment& segment : partition[0].segments)
    for (const int symbol : segment.known_symbols) used[static_cast<size_t>(symbol)] = true;
  INVAR_TRY(program, BlockExecutor::open(plan, partition, -1, context));
  context.options.hashed = nullptr;
  return {};
}

// Checks a tensor against the plan's input and binds unknown symbols of its shape.
Status Function::Impl::bind_input(const plan::Port& port, const TensorView& tensor,
                                  std::vector<int64_t>& sizes) const {
  const std::string where = "input '" + port.name + "'";
  if (tensor.device >= 0 && (!context.device || context.device->info().index != tensor.device))
    return bad_input(where + ": it lies on cuda:" + std::to_string(tensor.device) + ", the program runs on " +
                     (context.device ? "cuda:" + std::to_string(context.device->info().index) : "the host"));
  const plan::Value& v = plan.values[port.value];
  std::vector<std::string> expected;
  bool fits = tensor.dtype == v.dtype && tensor.shape.size() == v.shape.size();
  for (size_t i = 0; i < v.shape.size(); ++i) {
    const plan::DimRef& d = v.shape[i];
    expected.push_back(d.symbol < 0 ? std::to_string(d.value) : plan.symbols[d.symbol].text());
    if (!fits) continue;
    if (d.symbol >= 0 && sizes[d.symbol] < 0) sizes[d.symbol] = tensor.shape[i];
    if (d.symbol >= 0 && sizes[d.symbol] != tensor.shape[i])
      expected.back() += " = " + std::to_string(sizes[d.symbol]);
    fits = tensor.shape[i] == (d.symbol < 0 ? d.value : sizes[d.symbol]);
  }
  if (!fits || tensor.bytes.size() != bytes_of(tensor.dtype, tensor.shape))
    return bad_input(where + ": it is " + text_of(tensor.dtype, tensor.shape) + ", the plan takes " +
                     text_of(v.dtype, expected));
  return {};
}

// The sizes of the plan's symbols that the inputs determine; -1 for those that are computed on the
// way.
Result<std::vector<int64_t>> Function::Impl::bind_sizes(const NamedViews& inputs) const {
  std::vector<std::string_view> taken, given;
  for (const plan::Port& port : plan.inputs) taken.push_back(port.name);
  for (const auto& [name, tensor] : inputs) given.push_back(name);
  INVAR_CHECK_OK(check_names(taken, given, "plan"));
  std::vector<int64_t> sizes(plan.symbols.size(), -1);
  for (const plan::Port& port : plan.inputs) {
    const auto input =
        std::find_if(inputs.begin(), inputs.end(), [&](auto& i) { return i.first == port.name; });
    INVAR_CHECK_OK(bind_input(port, input->second, sizes));
  }
  std::vector<bool> computed(sizes.size());  // by a binding or by control flow
  for (const plan::Binding& b : plan.bindings) computed[b.symbol] = true;
  for (const plan::Node& n : plan.nodes)
    for (const int v : n.bodies.empty() ? std::vector<int>() : n.out)
      for (const plan::DimRef& d : plan.values[v].shape)
        if (d.symbol >= 0) computed[d.symbol] = true;
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] < 0 && used[i] && !computed[i] && plan.symbols[i].as_symbol())
      return not_covered("no input has the plan's dimension '" + plan.symbols[i].text() + "'");
  return sizes;
}

Status Function::Impl::compute(const NamedViews& inputs, bool fetch_outputs) {
  INVAR_TRY(std::vector<int64_t> sizes, bind_sizes(inputs));
  if (context.device) context.device->make_current();
  const num::ArithmeticEnv env;
  if (!num::arithmetic_env_ok()) return wrong_arithmetic();
  for (const plan::Port& port : plan.inputs)
    for (const auto& [name, tensor] : inputs) {
      if (port.name != name) continue;
      TensorRef input{};
      ops::View& view = input.view;
      view.dtype = tensor.dtype, view.rank = static_cast<int>(tensor.shape.size());
      std::copy(tensor.shape.begin(), tensor.shape.end(), view.dim);
      view.data = const_cast<std::byte*>(tensor.bytes.data());  // kernels do not write their inputs
      input.on_device = tensor.device >= 0;
      program->set_input(port.value, input);
    }
  std::vector<int> fetched;
  for (const plan::Port& port : plan.outputs)
    if (fetch_outputs && program->produces(port.value)) fetched.push_back(port.value);
  return program->run(sizes, fetched);
}

Result<Function::NamedTensors> Function::Impl::run(const NamedViews& inputs) {
  INVAR_CHECK_OK(compute(inputs, /*fetch_outputs=*/true));
  NamedTensors outputs;
  bool wait = false;
  for (const plan::Port& port : plan.outputs) {
    const TensorRef from = program->value(port.value, /*fetched=*/true);
    const ops::View& v = from.view;
    Tensor& to = outputs.emplace_back(port.name, Tensor{v.dtype, {v.dim, v.dim + v.rank}, {}}).second;
    if (from.on_device) {  // an input, or a result of control flow
      to.bytes.resize(bytes_of(v)), wait = true;
      INVAR_CHECK_OK(copy(context, to.bytes.data(), /*to_device=*/false, from));
    } else {
      const auto* bytes = static_cast<const std::byte*>(v.data);
      to.bytes.assign(bytes, bytes + bytes_of(v));
    }
  }
  if (wait) {
    INVAR_CHECK_OK(context.device->wait());
  }
  return outputs;
}

Status Function::Impl::run(const NamedViews& inputs, const OutputAllocator& allocate) {
  INVAR_CHECK_OK(compute(inputs, /*fetch_outputs=*/false));
  std::vector<void*> memory;
  for (const plan::Port& port : plan.outputs) {
    const ops::View v = program->value(port.value).view;
    INVAR_TRY(void* const to, allocate(port.name, v.dtype, {v.dim, static_cast<size_t>(v.rank)}));
    memory.push_back(to);
  }
  Status copied;
  for (size_t i = 0; copied && i < memory.size(); ++i)
    copied = copy(context, memory[i], context.device != nullptr, program->value(plan.outputs[i].value));
  const Status done = context.device ? context.device->wait() : Status();
  return copied ? done : copied;
}

Result<Function> Function::open(plan::Plan plan, const std::string& folder, Options options) {
  auto impl = std::make_unique<Impl>();
  impl->plan = std::move(plan);
  impl->context.options = std::move(options);
  INVAR_CHECK_OK(impl->open(folder));
  return Function(std::move(impl));
}

Function::Function(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Function::Function(Function&&) noexcept = default;
Function& Function::operator=(Function&&) noexcept = default;
Function::~Function() = default;

Result<Function::NamedTensors> Function::run(const NamedViews& inputs) {
  return impl_->run(inputs);
}
Result<Function::NamedTensors> Function::run(const NamedTensors& inputs) {
  NamedViews views;
  for (const auto& [name, t] : inputs) views.push_back({name, {t.dtype, t.shape, t.bytes}});
  return run(views);
}
Status Function::run(const NamedViews& inputs, const OutputAllocator& allocate) {
  return impl_->run(inputs, allocate);
}
int Function::device() const {
  return impl_->context.device ? impl_->context.device->info().index : -1;
}
Stream Function::stream() const {
  return impl_->context.device ? impl_->context.device->stream() : nullptr;
}
std::string_view Function::isa() const {
  const ExecutionContext& s = impl_->context;
  return s.device ? ops::kCuda : s.options.isa.empty() ? ops::isas().front() : s.options.isa;
}
Status Function::weights_unchanged() {
  return impl_->program->weights_unchanged();
}
size_t Function::peak_bytes() const {
  return impl_->program->bytes();
}
std::vector<std::string> Function::kernels() const {
  return impl_->collect_names([](const Executable& e) { return e.kernels(); });
}
std::vector<std::string> Function::libraries() const {
  return impl_->collect_names([](const Executable& e) { return e.libraries(); });
}

}  // namespace invar::run
