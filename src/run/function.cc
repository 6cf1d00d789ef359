#include "run/function.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "num/env.h"
#include "plan/keywords.h"
#include "run/execute/block_executor.h"
#include "run/execute/thread_setup.h"

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

}  // namespace

struct Function::Impl {
  plan::Plan plan;
  Setting setting;
  std::unique_ptr<Scope> scope;
  std::vector<bool> used;  // symbols, by the program outside of its bodies

  Status open(const std::string& folder);
  Result<std::vector<int64_t>> sizes_of(const NamedViews& inputs) const;
  Status compute(const NamedViews& inputs, bool fetch);
  Result<Named> run(const NamedViews& inputs);
  Status run(const NamedViews& inputs, const Place& place);
  std::vector<std::string> of_all(std::vector<std::string> (*names_of)(const Program&)) const {
    std::vector<std::string> all;
    scope->add_names(names_of, all);
    return all;
  }
};

Status Function::Impl::open(const std::string& folder) {
  if (!plan.states.empty())
    return not_covered(
        "the plan remembers what it was given: it takes tokens, not tensors; compile with --stateless for "
        "tensors");
  setting.folder = folder.empty() ? "." : folder;
  INVAR_TRY(setting.pool, start_pool(setting.options.threads));
  const num::ArithmeticEnv env;
  INVAR_TRY(setting.device, Device::named(setting.options.device));
  std::vector<plan::Parts> cut = plan::parts_of(plan);
  setting.symbols = Symbols(plan);
  used.resize(plan.symbols.size());
  for (const plan::Part& part : cut[0].parts)
    for (const int symbol : part.known) used[static_cast<size_t>(symbol)] = true;
  INVAR_TRY(scope, Scope::open(plan, cut, -1, setting));
  setting.options.hashed = nullptr;
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
    if (t.device >= 0 && (!setting.device || setting.device->info().index != t.device))
      return bad_input(
          where + ": it lies on cuda:" + std::to_string(t.device) + ", the program runs on " +
          (setting.device ? "cuda:" + std::to_string(setting.device->info().index) : "the host"));
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
  std::vector<bool> sized(found.size());
  for (const plan::Binding& b : plan.bindings) sized[b.symbol] = true;
  for (const plan::Node& n : plan.nodes)
    for (const int v : n.bodies.empty() ? std::vector<int>() : n.out)
      for (const plan::Dim& d : plan.values[v].shape)
        if (d.symbol >= 0) sized[d.symbol] = true;
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i] < 0 && used[i] && !sized[i] && plan::is_name(plan.symbols[i]))
      return not_covered("no input has the plan's dimension '" + plan.symbols[i] + "'");
  return found;
}

Status Function::Impl::compute(const NamedViews& inputs, bool fetch) {
  INVAR_TRY(std::vector<int64_t> sizes, sizes_of(inputs));
  if (setting.device) setting.device->enter();
  const num::ArithmeticEnv env;
  if (!num::arithmetic_env_ok()) return wrong_arithmetic();
  for (const plan::Port& port : plan.inputs)
    for (const auto& [name, tensor] : inputs) {
      if (port.name != name) continue;
      Found found{};
      ops::View& view = found.view;
      view.dtype = tensor.dtype, view.rank = static_cast<int>(tensor.shape.size());
      std::copy(tensor.shape.begin(), tensor.shape.end(), view.dim);
      view.data = const_cast<std::byte*>(tensor.bytes.data());  // nobody writes it
      found.on_device = tensor.device >= 0;
      scope->give(port.value, found);
    }
  std::vector<int> fetched;
  for (const plan::Port& port : plan.outputs)
    if (fetch && scope->makes(port.value)) fetched.push_back(port.value);
  return scope->run(sizes, fetched);
}

Result<Function::Named> Function::Impl::run(const NamedViews& inputs) {
  INVAR_CHECK_OK(compute(inputs, /*fetch=*/true));
  Named outputs;
  bool wait = false;
  for (const plan::Port& port : plan.outputs) {
    const Found from = scope->value(port.value, /*fetched=*/true);
    const ops::View& v = from.view;
    Tensor& to = outputs.emplace_back(port.name, Tensor{v.dtype, {v.dim, v.dim + v.rank}, {}}).second;
    if (from.on_device) {  // an input, or of control flow
      to.bytes.resize(bytes_of(v)), wait = true;
      INVAR_CHECK_OK(copy(setting, to.bytes.data(), /*to_device=*/false, from));
    } else {
      const auto* bytes = static_cast<const std::byte*>(v.data);
      to.bytes.assign(bytes, bytes + bytes_of(v));
    }
  }
  if (wait) {
    INVAR_CHECK_OK(setting.device->wait());
  }
  return outputs;
}

Status Function::Impl::run(const NamedViews& inputs, const Place& place) {
  INVAR_CHECK_OK(compute(inputs, /*fetch=*/false));
  std::vector<void*> places;
  for (const plan::Port& port : plan.outputs) {
    const ops::View v = scope->value(port.value).view;
    INVAR_TRY(void* const to, place(port.name, v.dtype, {v.dim, static_cast<size_t>(v.rank)}));
    places.push_back(to);
  }
  Status copied;
  for (size_t i = 0; copied && i < places.size(); ++i)
    copied = copy(setting, places[i], setting.device != nullptr, scope->value(plan.outputs[i].value));
  const Status done = setting.device ? setting.device->wait() : Status();
  return copied ? done : copied;
}

Result<Function> Function::open(plan::Plan plan, const std::string& folder, Options options) {
  auto impl = std::make_unique<Impl>();
  impl->plan = std::move(plan);
  impl->setting.options = std::move(options);
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
Status Function::run(const NamedViews& inputs, const Place& place) {
  return impl_->run(inputs, place);
}
int Function::device() const {
  return impl_->setting.device ? impl_->setting.device->info().index : -1;
}
Stream Function::stream() const {
  return impl_->setting.device ? impl_->setting.device->stream() : nullptr;
}
std::string_view Function::isa() const {
  const Setting& s = impl_->setting;
  return s.device ? ops::kCuda : s.options.isa.empty() ? ops::isas().front() : s.options.isa;
}
Status Function::weights_unchanged() {
  return impl_->scope->weights_unchanged();
}
size_t Function::peak_bytes() const {
  return impl_->scope->bytes();
}
std::vector<std::string> Function::kernels() const {
  return impl_->of_all([](const Program& p) { return p.kernels(); });
}
std::vector<std::string> Function::libraries() const {
  return impl_->of_all([](const Program& p) { return p.libraries(); });
}

}  // namespace invar::run
