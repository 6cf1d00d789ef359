#include "run/function.h"

#include <algorithm>

#include "base/polynomial.h"
#include "num/env.h"
#include "plan/text.h"
#include "run/program.h"
#include "run/start.h"

namespace invar::run {
namespace {

constexpr int64_t kLargestTried = 4096;

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

// What plan.12 computes from the symbols that are bound; -1 where that is no dimension.
void derive(const plan::Plan& plan, std::vector<int64_t>& sizes) {
  const auto lookup = [&](const std::string& name) -> std::optional<int64_t> {
    const auto it = std::find(plan.symbols.begin(), plan.symbols.end(), name);
    return it == plan.symbols.end() ? std::nullopt : std::optional(sizes[it - plan.symbols.begin()]);
  };
  for (size_t i = 0; i < sizes.size(); ++i)
    if (!plan::is_name(plan.symbols[i]))
      if (const auto size = Polynomial::parse(plan.symbols[i]))
        sizes[i] = std::max<int64_t>(size->value(lookup).value_or(-1), -1);
}

// The plan with every symbol in its place a constant: to the runtime a program of one size.
plan::Plan of_sizes(const plan::Plan& plan, const std::vector<int64_t>& sizes) {
  plan::Plan p = plan;
  for (plan::Value& v : p.values)
    for (plan::Dim& d : v.shape)
      if (d.symbol >= 0) d = {sizes[d.symbol], -1};
  p.symbols.clear();
  return p;
}

}  // namespace

struct Function::Impl {
  plan::Plan plan;
  std::unique_ptr<Pool> pool;
  std::shared_ptr<Device> device;  // null: the host
  Options options;
  Weights weights;
  // Of the last sizes.
  std::vector<int64_t> sizes;
  std::unique_ptr<plan::Plan> sized;
  Program program;

  Status open(const std::string& folder);
  Status resize(const std::vector<int64_t>& wanted);
  Result<std::vector<int64_t>> sizes_of(const NamedViews& inputs) const;
  Result<Named> run(const NamedViews& inputs);
};

Status Function::Impl::open(const std::string& folder) {
  if (!plan.states.empty())
    return not_covered(
        "the plan remembers what it was given: it takes tokens, not tensors; compile with --stateless for "
        "tensors");
  INVAR_TRY(pool, start_pool(options.threads));
  const num::ArithmeticEnv env;
  INVAR_TRY(device, Device::named(options.device));
  // What packing depends on, it has of any size; some programs have no smallest ones.
  plan::Plan small;
  Program any;
  for (int64_t size = 1;; size *= 2) {
    std::vector<int64_t> sizes(plan.symbols.size(), size);
    derive(plan, sizes);
    small = of_sizes(plan, sizes);
    INVAR_TRY(any, Program::make(small, options.isa, device));
    Status fits = any.check(1);
    if (fits) break;
    if (plan.symbols.empty() || size == kLargestTried) return fits;
  }
  INVAR_TRY(weights, Weights::load(plan, folder.empty() ? "." : folder, any.weight_uses(), *pool,
                                   {options.check_weights, options.hashed}, device));
  return {};
}

Status Function::Impl::resize(const std::vector<int64_t>& wanted) {
  if (sized && wanted == sizes) return {};
  program = Program();  // its memory first
  sized = std::make_unique<plan::Plan>(of_sizes(plan, wanted));
  sizes = {-1};
  INVAR_TRY(program, Program::make(*sized, options.isa, device));
  INVAR_CHECK_OK(program.check(1));
  program.set_workers(pool->threads());
  program.attach(weights);
  // Operations that could remember positions hold those of this call.
  const int64_t longest = program.constant_positions();
  std::vector<ops::Sequence> sequences;
  for (int64_t i = 0; i < program.constant_sequences(); ++i) sequences.push_back({i, 0});
  INVAR_CHECK_OK(program.reserve(longest, longest, longest, static_cast<int64_t>(sequences.size())));
  INVAR_CHECK_OK(program.bind(longest, sequences));
  sizes = wanted;
  return {};
}

Result<std::vector<int64_t>> Function::Impl::sizes_of(const NamedViews& inputs) const {
  std::vector<int64_t> found(plan.symbols.size(), -1);
  for (const plan::Port& port : plan.inputs) {
    const std::string where = "input '" + port.name + "'";
    const auto given =
        std::find_if(inputs.begin(), inputs.end(), [&](auto& i) { return i.first == port.name; });
    if (given == inputs.end()) return bad_input(where + " is missing");
    const TensorView& t = given->second;
    const plan::Value& v = plan.values[port.value];
    std::vector<std::string> takes;
    bool fits = t.dtype == v.dtype && t.shape.size() == v.shape.size();
    for (size_t i = 0; i < v.shape.size(); ++i) {
      const plan::Dim& d = v.shape[i];
      takes.push_back(d.symbol < 0 ? std::to_string(d.value) : plan.symbols[d.symbol]);
      if (!fits) continue;
      if (d.symbol >= 0 && found[d.symbol] < 0) found[d.symbol] = t.shape[i];
      if (d.symbol >= 0 && found[d.symbol] != t.shape[i])
        takes.back() += " = " + std::to_string(found[d.symbol]);
      fits = t.shape[i] == (d.symbol < 0 ? d.value : found[d.symbol]);
    }
    size_t elements = 1;
    for (const int64_t d : t.shape) elements *= static_cast<size_t>(d);
    if (!fits || t.bytes.size() != elements * size_of(t.dtype))
      return bad_input(where + ": it is " + text_of(t.dtype, t.shape) + ", the plan takes " +
                       text_of(v.dtype, takes));
  }
  for (const auto& [name, tensor] : inputs) {
    const auto same = [&name = name](auto& i) { return i.first == name; };
    if (std::count_if(inputs.begin(), inputs.end(), same) > 1) return bad_input("input '" + name + "' twice");
    if (std::none_of(plan.inputs.begin(), plan.inputs.end(),
                     [&name = name](auto& p) { return p.name == name; }))
      return bad_input("input '" + name + "': the plan has none of this name");
  }
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i] < 0 && plan::is_name(plan.symbols[i]))
      return not_covered("no input has the plan's dimension '" + plan.symbols[i] + "'");
  const std::vector<int64_t> given = found;
  derive(plan, found);
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] < 0)
      return bad_input("the inputs are too small or too large: the plan's dimension '" + plan.symbols[i] +
                       "' is none for their shapes");
    if (given[i] >= 0 && given[i] != found[i])
      return bad_input("an input has " + std::to_string(given[i]) + " where the plan takes '" +
                       plan.symbols[i] + "' = " + std::to_string(found[i]));
  }
  return found;
}

Result<Function::Named> Function::Impl::run(const NamedViews& inputs) {
  INVAR_TRY(const std::vector<int64_t> wanted, sizes_of(inputs));
  const num::ArithmeticEnv env;
  if (!num::arithmetic_env_ok()) return wrong_arithmetic();
  INVAR_CHECK_OK(resize(wanted));
  for (const plan::Port& port : plan.inputs)
    for (const auto& [name, tensor] : inputs)
      if (name == port.name) program.feed(port.value, tensor.bytes);
  INVAR_CHECK_OK(program.run(*pool, /*tail=*/true));
  Named outputs;
  for (const plan::Port& port : plan.outputs) {
    const ops::View v = program.port(port.value);
    const auto* bytes = static_cast<const std::byte*>(v.data);
    outputs.push_back({port.name, {v.dtype, {v.dim, v.dim + v.rank}, {bytes, bytes + bytes_of(v)}}});
  }
  return outputs;
}

Result<Function> Function::open(plan::Plan plan, const std::string& folder, Options options) {
  auto impl = std::make_unique<Impl>();
  impl->plan = std::move(plan);
  impl->options = std::move(options);
  INVAR_CHECK_OK(impl->open(folder));
  return Function(std::move(impl));
}

Function::Function(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Function::Function(Function&&) noexcept = default;
Function& Function::operator=(Function&&) noexcept = default;
Function::~Function() = default;

Result<Function::Named> Function::run(const NamedViews& inputs) {
  return impl_->run(inputs);
}
Result<Function::Named> Function::run(const Named& inputs) {
  NamedViews views;
  for (const auto& [name, t] : inputs) views.push_back({name, {t.dtype, t.shape, t.bytes}});
  return run(views);
}
std::string_view Function::isa() const {
  return impl_->device ? ops::kCuda : impl_->options.isa.empty() ? ops::isas().front() : impl_->options.isa;
}
size_t Function::peak_bytes() const {
  return impl_->program.bytes() + impl_->weights.bytes();
}
std::vector<std::string> Function::kernels() const {
  return impl_->program.kernels();
}
std::vector<std::string> Function::libraries() const {
  return impl_->program.libraries();
}

}  // namespace invar::run
