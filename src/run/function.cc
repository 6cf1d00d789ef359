#include "run/function.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "num/env.h"
#include "plan/text.h"
#include "run/part.h"
#include "run/start.h"

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
  std::vector<PartProgram> parts;
  std::vector<int> known;  // for each symbol, the part from which on
  struct Place {
    size_t part;
    int value;  // there
  };
  std::map<int, Place> made;  // values that are read behind the part that makes them

  Status open(const std::string& folder);
  Result<std::vector<int64_t>> sizes_of(const NamedViews& inputs) const;
  Status bind(size_t part, const NamedViews& inputs, std::vector<int64_t>& sizes) const;
  // An input, or what the part that makes it has made.
  ops::View value(int v, const NamedViews& inputs) const;
  Result<Named> run(const NamedViews& inputs);
  // Each once, in the order of the parts.
  std::vector<std::string> of_all(std::vector<std::string> (*names_of)(const Program&)) const {
    std::vector<std::string> all;
    for (const PartProgram& part : parts)
      for (const std::string& name : names_of(part.program()))
        if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
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
  plan::Parts cut = plan::parts_of(plan);
  known = std::move(cut.known);
  for (plan::Part& part : cut.parts) {
    const bool waits = std::any_of(plan.bindings.begin(), plan.bindings.end(), [&](const plan::Binding& b) {
      return known[b.symbol] <= static_cast<int>(parts.size());
    });
    for (size_t i = 0; i < part.outputs.size(); ++i)
      made[part.outputs[i]] = {parts.size(), part.plan.outputs[i].value};
    INVAR_CHECK_OK(parts.emplace_back(std::move(part)).open(setting, waits));
  }
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
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i] < 0 && !sized[i] && plan::is_name(plan.symbols[i]))
      return not_covered("no input has the plan's dimension '" + plan.symbols[i] + "'");
  return found;
}

// The symbols that become known with a part.
Status Function::Impl::bind(size_t part, const NamedViews& inputs, std::vector<int64_t>& sizes) const {
  for (const plan::Binding& b : plan.bindings) {
    if (known[b.symbol] != static_cast<int>(part)) continue;
    int64_t& size = sizes[b.symbol];
    std::memcpy(&size, static_cast<const std::byte*>(value(b.value, inputs).data) + 8 * b.element, 8);
    if (size < 0)
      return bad_input("the inputs lead to a dimension '" + plan.symbols[b.symbol] + "' = " + std::to_string(size) +
                       ", which is none");
  }
  const std::vector<int64_t> given = sizes;
  derive(plan, known, static_cast<int>(part), sizes);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (known[i] != static_cast<int>(part)) continue;
    if (sizes[i] < 0)
      return bad_input("the inputs are too small or too large: the plan's dimension '" + plan.symbols[i] +
                       "' is none for their shapes" + (plan.bindings.empty() ? "" : " and values"));
    if (given[i] >= 0 && given[i] != sizes[i])
      return bad_input("an input has " + std::to_string(given[i]) + " where the plan takes '" +
                       plan.symbols[i] + "' = " + std::to_string(sizes[i]));
  }
  return {};
}

ops::View Function::Impl::value(int v, const NamedViews& inputs) const {
  if (const auto at = made.find(v); at != made.end()) return parts[at->second.part].program().port(at->second.value);
  ops::View view{};
  for (const plan::Port& port : plan.inputs)
    for (const auto& [name, tensor] : inputs)
      if (port.value == v && port.name == name) {
        view.dtype = tensor.dtype, view.rank = static_cast<int>(tensor.shape.size());
        std::copy(tensor.shape.begin(), tensor.shape.end(), view.dim);
        view.data = const_cast<std::byte*>(tensor.bytes.data());  // nobody writes it
      }
  return view;
}

Result<Function::Named> Function::Impl::run(const NamedViews& inputs) {
  INVAR_TRY(std::vector<int64_t> sizes, sizes_of(inputs));
  const num::ArithmeticEnv env;
  if (!num::arithmetic_env_ok()) return wrong_arithmetic();
  for (size_t p = 0; p < parts.size(); ++p) {
    INVAR_CHECK_OK(bind(p, inputs, sizes));
    INVAR_CHECK_OK(parts[p].resize(setting, sizes));
    Program& program = parts[p].program();
    const plan::Part& part = parts[p].part();
    for (size_t i = 0; i < part.inputs.size(); ++i) {
      const ops::View v = value(part.inputs[i], inputs);
      program.feed(part.plan.inputs[i].value, {static_cast<const std::byte*>(v.data), bytes_of(v)});
    }
    INVAR_CHECK_OK(program.run(*setting.pool, /*tail=*/true));
  }
  Named outputs;
  for (const plan::Port& port : plan.outputs) {
    const ops::View v = value(port.value, inputs);
    const auto* bytes = static_cast<const std::byte*>(v.data);
    outputs.push_back({port.name, {v.dtype, {v.dim, v.dim + v.rank}, {bytes, bytes + bytes_of(v)}}});
  }
  return outputs;
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
std::string_view Function::isa() const {
  const Setting& s = impl_->setting;
  return s.device ? ops::kCuda : s.options.isa.empty() ? ops::isas().front() : s.options.isa;
}
size_t Function::peak_bytes() const {
  size_t bytes = 0;
  for (const PartProgram& part : impl_->parts) bytes += part.bytes();
  return bytes;
}
std::vector<std::string> Function::kernels() const {
  return impl_->of_all([](const Program& p) { return p.kernels(); });
}
std::vector<std::string> Function::libraries() const {
  return impl_->of_all([](const Program& p) { return p.libraries(); });
}

}  // namespace invar::run
