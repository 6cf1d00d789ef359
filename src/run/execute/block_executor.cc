#include "run/execute/block_executor.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "run/execute/control_flow.h"

namespace invar::run {

Status copy(const Setting& setting, void* to, bool to_device, const Found& from) {
  const size_t bytes = bytes_of(from.view);
  if (bytes == 0) return {};
  if (to_device)
    return from.on_device ? setting.device->copy(to, from.view.data, bytes)
                          : setting.device->upload(to, from.view.data, bytes);
  if (from.on_device) return setting.device->download(to, from.view.data, bytes);
  std::memcpy(to, from.view.data, bytes);
  return {};
}

Scope::Scope(const plan::Plan& plan, const Setting& setting, int body)
    : plan_(plan), setting_(setting), body_(body) {}
Scope::~Scope() = default;

Result<std::unique_ptr<Scope>> Scope::open(const plan::Plan& plan, std::vector<plan::Parts>& cut, int body,
                                           const Setting& setting) {
  std::unique_ptr<Scope> scope(new Scope(plan, setting, body));
  plan::Parts& own = cut[static_cast<size_t>(body + 1)];
  scope->own_ = std::move(own.own), scope->numbers_ = std::move(own.numbers);
  std::vector<PartProgram>& parts = scope->parts_;
  bool waits = !plan.bodies.empty();
  for (plan::Part& part : own.parts) {
    waits |= !part.bindings.empty();
    for (size_t i = 0; i < part.outputs.size(); ++i)
      scope->made_[part.outputs[i]] = {parts.size(), part.plan.outputs[i].value};
    const std::vector<int> calls = part.calls;
    const bool computes = !part.plan.nodes.empty();
    parts.emplace_back(std::move(part));
    for (int at : calls) INVAR_CHECK_OK(scope->open_flow(at, cut));
    if (computes) {
      INVAR_CHECK_OK(parts.back().open(setting, waits));
    }
  }
  for (const PartProgram& part : parts) {
    std::vector<Source>& sources = scope->sources_.emplace_back();
    for (int v : part.part().inputs) {
      const auto made = scope->made_.find(v);
      sources.push_back(made == scope->made_.end() ? Source{&scope->given_[v], {}}
                                                   : Source{nullptr, made->second});
    }
  }
  scope->repeats_ = parts.size() == 1 && scope->flows_.empty() && parts[0].part().bindings.empty() &&
                    !parts[0].part().plan.nodes.empty();
  return scope;
}

Found Scope::value(const Source& source, bool fetched) const {
  if (source.given) return *source.given;
  const Program& program = parts_[source.made.part].program();
  const bool there = setting_.device && !fetched;
  return {there ? program.there(source.made.value) : program.port(source.made.value), there};
}
Found Scope::value(int v, bool fetched) const {
  if (const auto at = given_.find(v); at != given_.end()) return at->second;
  const auto at = made_.find(v);
  return at == made_.end() ? Found{} : value(Source{nullptr, at->second}, fetched);
}

bool Scope::unchanging(int v) const {
  std::set<int> fixed;
  for (const plan::Node& n : plan_.bodies[static_cast<size_t>(body_)].nodes)
    if (n.bodies.empty() && std::all_of(n.in.begin(), n.in.end(), [&](const plan::Operand& o) {
          return o.kind == plan::Operand::weight || fixed.contains(o.index);
        }))
      fixed.insert(n.out.begin(), n.out.end());
  return fixed.contains(v);
}

template <class T>
Result<T> Scope::read(int v, int64_t element) const {
  T x{};
  Found one = value(v);
  one.view.rank = 0;
  one.view.data = static_cast<std::byte*>(one.view.data) + static_cast<int64_t>(sizeof x) * element;
  INVAR_CHECK_OK(copy(setting_, &x, /*to_device=*/false, one));
  if (one.on_device) {
    INVAR_CHECK_OK(setting_.device->wait());
  }
  return x;
}
template Result<int64_t> Scope::read(int, int64_t) const;
template Result<uint8_t> Scope::read(int, int64_t) const;

// The symbols that become known with a part: elements of values.
Status Scope::bind(const plan::Part& part, std::vector<int64_t>& sizes) const {
  for (int binding : part.bindings) {
    const plan::Binding& b = plan_.bindings[static_cast<size_t>(binding)];
    INVAR_TRY(const int64_t size, read<int64_t>(b.value, b.element));
    sizes[b.symbol] = size;
    if (size < 0)
      return bad_input("the inputs lead to a dimension '" + plan_.symbols[b.symbol] +
                       "' = " + std::to_string(size) + ", which is none");
  }
  return {};
}

// And what is computed from such.
Status Scope::derive_sizes(const plan::Part& part, std::vector<int64_t>& sizes) const {
  for (int symbol : part.known) {
    const auto i = static_cast<size_t>(symbol);
    const int64_t given = sizes[i];
    sizes[i] = setting_.symbols.size(symbol, sizes);
    if (sizes[i] < 0)
      return bad_input("the inputs are too small or too large: the plan's dimension '" + plan_.symbols[i] +
                       "' is none for their shapes" +
                       (plan_.bindings.empty() && plan_.bodies.empty() ? "" : " and values"));
    if (body_ < 0 && given >= 0 && given != sizes[i])
      return bad_input("an input has " + std::to_string(given) + " where the plan takes '" +
                       plan_.symbols[i] + "' = " + std::to_string(sizes[i]));
  }
  return {};
}

Status Scope::take_sizes(const std::vector<int>& values, const std::string& what,
                         std::vector<int64_t>& sizes) const {
  for (int v : values) {
    const ops::View view = value(v).view;
    const std::vector<plan::Dim>& shape = plan_.values[v].shape;
    bool fits = view.rank == static_cast<int>(shape.size()) && view.dtype == plan_.values[v].dtype;
    for (size_t d = 0; fits && d < shape.size(); ++d) {
      const int s = shape[d].symbol;
      if (s >= 0 && sizes[s] < 0 && std::binary_search(own_.begin(), own_.end(), s)) sizes[s] = view.dim[d];
      const bool computed = s >= 0 && !setting_.symbols.is_name(s);
      const int64_t known = s < 0 ? shape[d].value : setting_.symbols.size(s, sizes);
      fits = view.dim[d] == known || (computed && known < 0);  // else the part that reads it compares
    }
    if (!fits) return bad_input(what + ": a value has another shape than the plan says");
  }
  return {};
}

Status Scope::call(std::vector<int64_t>& sizes) {
  for (int s : own_) sizes[static_cast<size_t>(s)] = -1;
  INVAR_CHECK_OK(
      take_sizes(plan_.bodies[static_cast<size_t>(body_)].inputs, "body b" + std::to_string(body_), sizes));
  return run(sizes);
}

Status Scope::run(std::vector<int64_t>& sizes, const std::vector<int>& fetched) {
  for (PartProgram& made : parts_) {
    const plan::Part& part = made.part();
    INVAR_CHECK_OK(bind(part, sizes));
    for (int at : part.calls) INVAR_CHECK_OK(run_flow(at, sizes));
    INVAR_CHECK_OK(derive_sizes(part, sizes));
    if (part.plan.nodes.empty()) continue;
    INVAR_CHECK_OK(made.resize(setting_, sizes));
    std::vector<int> wanted;
    for (size_t i = 0; i < part.outputs.size(); ++i)
      if (std::find(fetched.begin(), fetched.end(), part.outputs[i]) != fetched.end())
        wanted.push_back(part.plan.outputs[i].value);
    made.program().fetch_only(std::move(wanted));
    INVAR_CHECK_OK(run_part(made));
  }
  return {};
}

// On a GPU a part takes from those before it what lies there; what the host asks for, and nothing else, is fetched.
Status Scope::run_part(PartProgram& made) {
  Program& program = made.program();
  const plan::Part& part = made.part();
  const std::vector<Source>& sources = sources_[static_cast<size_t>(&made - parts_.data())];
  for (size_t i = 0; i < part.inputs.size(); ++i) {
    const auto [v, on_device] = value(sources[i]);
    const int port = part.plan.inputs[i].value;
    const ops::View& taken = program.there(port);
    if (v.rank != taken.rank || !std::equal(v.dim, v.dim + v.rank, taken.dim))
      return bad_input(
          plan::text_of(part.plan.nodes[0].origin) + "operation " + std::to_string(part.numbers[0]) +
          " of the plan, or one behind it, is given a value of another shape than the plan says");
    if (on_device) {
      INVAR_CHECK_OK(program.feed_there(port, v.data));
    } else {
      INVAR_CHECK_OK(program.feed(port, {static_cast<const std::byte*>(v.data), bytes_of(v)}));
    }
  }
  return program.run(*setting_.pool, /*tail=*/true);
}

Status Scope::weights_unchanged() {
  for (PartProgram& part : parts_) INVAR_CHECK_OK(part.weights_unchanged());
  for (auto& [at, flow] : flows_) INVAR_CHECK_OK(flow->weights_unchanged());
  return {};
}
size_t Scope::bytes() const {
  size_t bytes = 0;
  for (const PartProgram& part : parts_) bytes += part.bytes();
  for (const auto& [at, flow] : flows_) bytes += flow->bytes();
  return bytes;
}

void Scope::add_names(std::vector<std::string> (*names_of)(const Program&),
                      std::vector<std::string>& all) const {
  for (const PartProgram& part : parts_)
    for (const std::string& name : names_of(part.program()))
      if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
  for (const auto& [at, flow] : flows_)
    for (const auto& body : flow->bodies) body->add_names(names_of, all);
}

}  // namespace invar::run
