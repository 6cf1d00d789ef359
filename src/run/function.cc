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
  struct Made {
    size_t part;
    int value;  // there
  };
  std::map<int, Made> made;  // values that are read behind the part that makes them

  Status open(const std::string& folder);
  Result<std::vector<int64_t>> sizes_of(const NamedViews& inputs) const;
  Status bind(size_t part, const NamedViews& inputs, std::vector<int64_t>& sizes) const;
  // An input, or what the part that makes it has made: there, or as fetched from a GPU.
  struct Found {
    ops::View view;
    bool on_device;
  };
  Found value(int v, const NamedViews& inputs, bool fetched = false) const;
  bool is_output(int v) const {
    return std::any_of(plan.outputs.begin(), plan.outputs.end(), [v](auto& o) { return o.value == v; });
  }
  Status copy(void* to, bool to_device, const Found& from) const;
  Status compute(const NamedViews& inputs, bool fetch);
  Result<Named> run(const NamedViews& inputs);
  Status run(const NamedViews& inputs, const Place& place);
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
  for (const plan::Port& input : plan.inputs) made.erase(input.value);  // given back as it came
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
    Found one = value(b.value, inputs);
    one.view.rank = 0, one.view.data = static_cast<std::byte*>(one.view.data) + 8 * b.element;
    INVAR_CHECK_OK(copy(&size, /*to_device=*/false, one));
    if (one.on_device) {
      INVAR_CHECK_OK(setting.device->wait());
    }
    if (size < 0)
      return bad_input("the inputs lead to a dimension '" + plan.symbols[b.symbol] +
                       "' = " + std::to_string(size) + ", which is none");
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

Function::Impl::Found Function::Impl::value(int v, const NamedViews& inputs, bool fetched) const {
  if (const auto at = made.find(v); at != made.end()) {
    const Program& program = parts[at->second.part].program();
    const bool there = setting.device && !fetched;
    return {there ? program.there(at->second.value) : program.port(at->second.value), there};
  }
  Found found{};
  for (const plan::Port& port : plan.inputs) {
    if (port.value != v) continue;
    for (const auto& [name, tensor] : inputs)
      if (port.name == name) {
        ops::View& view = found.view;
        view.dtype = tensor.dtype, view.rank = static_cast<int>(tensor.shape.size());
        std::copy(tensor.shape.begin(), tensor.shape.end(), view.dim);
        view.data = const_cast<std::byte*>(tensor.bytes.data());  // nobody writes it
        found.on_device = tensor.device >= 0;
      }
  }
  return found;
}

// On a GPU it has arrived after wait().
Status Function::Impl::copy(void* to, bool to_device, const Found& from) const {
  const size_t bytes = bytes_of(from.view);
  if (bytes == 0) return {};
  if (to_device)
    return from.on_device ? setting.device->copy(to, from.view.data, bytes)
                          : setting.device->upload(to, from.view.data, bytes);
  if (from.on_device) return setting.device->download(to, from.view.data, bytes);
  std::memcpy(to, from.view.data, bytes);
  return {};
}

// On a GPU a part takes from those before it what lies there; what the host asks for, and nothing else, is fetched.
Status Function::Impl::compute(const NamedViews& inputs, bool fetch) {
  INVAR_TRY(std::vector<int64_t> sizes, sizes_of(inputs));
  if (setting.device) setting.device->enter();
  const num::ArithmeticEnv env;
  if (!num::arithmetic_env_ok()) return wrong_arithmetic();
  for (size_t p = 0; p < parts.size(); ++p) {
    INVAR_CHECK_OK(bind(p, inputs, sizes));
    INVAR_CHECK_OK(parts[p].resize(setting, sizes));
    Program& program = parts[p].program();
    const plan::Part& part = parts[p].part();
    for (size_t i = 0; i < part.inputs.size(); ++i) {
      const auto [v, on_device] = value(part.inputs[i], inputs);
      const int port = part.plan.inputs[i].value;
      if (on_device) {
        INVAR_CHECK_OK(program.feed_there(port, v.data));
      } else {
        INVAR_CHECK_OK(program.feed(port, {static_cast<const std::byte*>(v.data), bytes_of(v)}));
      }
    }
    std::vector<int> fetched;
    for (size_t i = 0; fetch && i < part.outputs.size(); ++i)
      if (is_output(part.outputs[i]) && made.contains(part.outputs[i]))
        fetched.push_back(part.plan.outputs[i].value);
    program.fetch_only(std::move(fetched));
    INVAR_CHECK_OK(program.run(*setting.pool, /*tail=*/true));
  }
  return {};
}

Result<Function::Named> Function::Impl::run(const NamedViews& inputs) {
  INVAR_CHECK_OK(compute(inputs, /*fetch=*/true));
  Named outputs;
  bool wait = false;
  for (const plan::Port& port : plan.outputs) {
    const Found from = value(port.value, inputs, /*fetched=*/true);
    const ops::View& v = from.view;
    Tensor& to = outputs.emplace_back(port.name, Tensor{v.dtype, {v.dim, v.dim + v.rank}, {}}).second;
    if (from.on_device) {  // an input
      to.bytes.resize(bytes_of(v)), wait = true;
      INVAR_CHECK_OK(copy(to.bytes.data(), /*to_device=*/false, from));
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
    const ops::View v = value(port.value, inputs).view;
    INVAR_TRY(void* const to, place(port.name, v.dtype, {v.dim, static_cast<size_t>(v.rank)}));
    places.push_back(to);
  }
  Status copied;
  for (size_t i = 0; copied && i < places.size(); ++i)
    copied = copy(places[i], setting.device != nullptr, value(plan.outputs[i].value, inputs));
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
