// Single operations, see operation.h.
#include "operation.h"

#include <algorithm>
#include <set>

#include "base/attribute_types.h"
#include "compiler/compiler.h"
#include "device/calling_thread.h"

namespace invar::python {
namespace {

using Type = std::pair<std::string, std::vector<int64_t>>;
constexpr size_t kRememberedCalls = 4096;  // calls, and types of operands of one call

compiler::TensorType type_of(const std::string& op, const Type& type) {
  const auto dtype = dtype_from(type.first);
  if (!dtype) throw Raised{bad_input(op + ": there is no element type '" + type.first + "'")};
  return {*dtype, type.second};
}

nb::tuple infer(const std::string& op, const nb::dict& attributes, const std::vector<Type>& operands,
                const std::optional<Type>& wanted) {
  std::vector<compiler::TensorType> types;
  for (const Type& t : operands) types.push_back(type_of(op, t));
  const auto t = or_raise(compiler::infer_type(op, attrs_of(attributes), types,
                                               wanted ? std::optional(type_of(op, *wanted)) : std::nullopt));
  return nb::make_tuple(std::string(name_of(t.dtype)), nb::tuple(nb::cast(t.shape)));
}

// An expression as a list of terms, each a factor and the list of its symbols, quotients and
// minima: a name, (terms, divisor) or (terms, terms).
nb::list terms_of(const DimExpr& e) {
  nb::list terms;
  for (const auto& [monomial, coefficient] : e.terms()) {
    nb::list factors;
    for (const DimExpr::Factor& f : monomial) {
      const auto* c = f.composite();
      if (!c)
        factors.append(f.text());
      else if (c->divisor)
        factors.append(nb::make_tuple(terms_of(c->first), c->divisor));
      else
        factors.append(nb::make_tuple(terms_of(c->first), terms_of(c->second)));
    }
    terms.append(nb::make_tuple(coefficient, factors));
  }
  return terms;
}

// Sizes of operands are expressions: numbers or names.
nb::list infer_sizes(const std::string& op, const nb::dict& attributes,
                     const std::vector<std::pair<std::string, std::vector<std::string>>>& operands) {
  std::vector<compiler::SymbolicType> types;
  for (const auto& [dtype, sizes] : operands) {
    types.push_back({type_of(op, {dtype, {}}).dtype, {}});
    for (const std::string& text : sizes) {
      const std::optional<DimExpr> size = DimExpr::parse(text);
      if (!size) throw Raised{bad_input(op + ": '" + text + "' is no size")};
      types.back().shape.push_back(*size);
    }
  }
  nb::list made;
  for (const DimExpr& size : or_raise(compiler::infer_type(op, attrs_of(attributes), types)).shape)
    made.append(terms_of(size));
  return made;
}

std::string torch_expression(const std::string& op, const nb::dict& attributes,
                             const std::vector<Type>& operands, const Type& result) {
  std::vector<compiler::TensorType> types;
  for (const Type& t : operands) types.push_back(type_of(op, t));
  return or_raise(compiler::torch_expression(op, attrs_of(attributes), types, type_of(op, result)));
}

// On arrays of any library, into an array of it; waits on a GPU.
void run_operation(const std::string& op, const nb::dict& attributes, const std::vector<ReadOnly>& in,
                   const Array& out, const std::string& forced) {
  const Attributes attrs = attrs_of(attributes);
  std::vector<ops::View> views;
  for (size_t i = 0; i < in.size(); ++i) {
    views.push_back(view_of(in[i], op + ": operand " + std::to_string(i)));
    if (in[i].device_type() != out.device_type() || in[i].device_id() != out.device_id())
      throw Raised{
          bad_input(op + ": operand " + std::to_string(i) + " lies on another device than the result")};
  }
  const ops::View result = view_of(out, op + ": result");
  const int number = gpu_of(out, op + ": result");
  const std::string isa = forced.empty() && number < 0 ? default_isa() : forced;
  nb::gil_scoped_release free;
  with_pool([&](Pool& pool, run::EagerMemory& memory) {
    or_raise(number < 0 ? run::run_operation(op, attrs, views, result, isa, pool, {}, &memory)
                        : run::run_operation(op, attrs, views, result, isa, pool, gpu(number).device(),
                                             &gpu_memory(number)));
  });
}

std::string device_name(int gpu) {
  return gpu < 0 ? "the host" : "cuda:" + std::to_string(gpu);
}

}  // namespace

Operation::Operation(std::string op, const nb::dict& attributes, std::string isa,
                     std::optional<std::string> dtype, std::optional<std::vector<int64_t>> shape)
    : op_(std::move(op)),
      isa_(std::move(isa)),
      attrs_(attrs_of(attributes)),
      dtype_(std::move(dtype)),
      shape_(std::move(shape)) {
  const auto axis = attrs_.find("axis");
  if (axis != attrs_.end())
    if (const auto* value = std::get_if<int64_t>(&axis->second); value && *value < 0) axis_ = *value;
}

nb::object Operation::run(const nb::tuple& operands) const {
  const Torch* torch = Torch::loaded();
  if (!torch)
    throw Raised{not_covered(op_ + ": tensors of a torch without the DLPack exchange API; use a newer one")};
  const std::optional<Ready> call = ready(*torch, operands, /*must=*/true);
  compute(*torch, {&*call, 1});
  return call->result;
}

std::optional<Operation::Ready> Operation::ready(const Torch& torch, const nb::tuple& operands,
                                                 bool must) const {
  raise_faults();
  const size_t count = operands.size();
  if (!count) throw Raised{not_covered(op_ + ": no operand says the library and the device of the result")};
  std::optional<Ready> made(std::in_place);
  made->in.resize(count), made->kept.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const nb::handle x = operands[i];
    if (!torch.is_tensor(x))
      throw Raised{bad_input(named(i) + ": expected a tensor of torch, got " +
                             nb::cast<std::string>(nb::handle(Py_TYPE(x.ptr())).attr("__name__")))};
    std::string why_not;
    std::optional<Operand> one = torch.operand(x, op_, i, must ? &why_not : nullptr);
    if (!one && !must) return {};
    if (!one) throw Raised{not_covered(named(i) + ": torch does not show its memory: " + why_not)};
    if (i && one->gpu != made->gpu)
      throw Raised{bad_input(named(i) + " lies on " + device_name(one->gpu) + ", operand 0 on " +
                             device_name(made->gpu))};
    made->gpu = one->gpu, made->in[i] = one->view, made->kept[i] = std::move(one->kept);
  }
  made->prepared = prepared(made->in, made->gpu);
  const Prepared& p = *made->prepared;
  made->result = torch.empty(p.shape, p.strides, p.result.dtype, made->gpu);
  made->out = p.result;
  made->out.data = torch.data(made->result);
  return made;
}

void Operation::compute(const Torch& torch, std::span<const Ready> calls) {
  const int on = calls[0].gpu;
  if (on < 0) {
    nb::gil_scoped_release free;
    return with_pool([&](Pool& pool, run::EagerMemory& memory) {
      for (const Ready& c : calls) or_raise(c.prepared->operation->run(c.in, c.out, pool, memory));
    });
  }
  run::EagerDevice& device = gpu(on);
  const Stream stream = torch.stream(on);
  std::vector<Torch::Memory> scratch;  // until the calls are queued: the allocator knows the stream
  nb::gil_scoped_release free;
  const DeviceScope here(on);
  const run::EagerOperation::Scratch more = [&](size_t bytes) -> Result<void*> {
    INVAR_TRY(scratch.emplace_back(), torch.memory(bytes, on));
    return scratch.back()->tensor.data;
  };
  if (calls.size() == 1)
    return or_raise(calls[0].prepared->operation->enqueue(calls[0].in, calls[0].out, device, stream, more));
  std::vector<run::EagerOperation::Member> members;
  for (const Ready& c : calls) members.push_back({c.prepared->operation.get(), c.in, c.out});
  or_raise(run::EagerOperation::enqueue_group(members, device, stream, more));
}

std::shared_ptr<const Operation::Prepared> Operation::prepared(std::span<const ops::View> in, int gpu) const {
  thread_local std::string key;
  key.assign(1, static_cast<char>(gpu));  // -1: the host
  if (gpu < 0) key += default_isa();
  for (const ops::View& v : in) {
    key += static_cast<char>(v.dtype), key += static_cast<char>(v.rank);
    key.append(reinterpret_cast<const char*>(v.dim), static_cast<size_t>(v.rank) * sizeof(int64_t));
  }
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  if (known_.size() >= kRememberedCalls) known_.clear();
  const std::string owned = key;
  return known_.emplace(owned, prepare(in, gpu)).first->second;
}

std::shared_ptr<const Operation::Prepared> Operation::prepare(std::span<const ops::View> in, int gpu) const {
  std::vector<compiler::TensorType> types;
  for (const ops::View& v : in) types.push_back({v.dtype, {v.dim, v.dim + v.rank}});
  Attributes attrs = attrs_;
  if (axis_) attrs["axis"] = *axis_ + in[0].rank;
  std::optional<compiler::TensorType> wanted;
  if (dtype_ || shape_) {
    const std::string dtype = dtype_ ? *dtype_ : std::string(name_of(types[0].dtype));
    wanted = type_of(op_, {dtype, shape_ ? *shape_ : types[0].shape});
  }
  const compiler::TensorType type = or_raise(compiler::infer_type(op_, attrs, types, wanted));
  auto made = std::make_shared<Prepared>();
  made->result.dtype = type.dtype, made->result.rank = static_cast<int>(type.shape.size());
  std::copy(type.shape.begin(), type.shape.end(), made->result.dim);
  std::vector<int64_t> strides(type.shape.size(), 1);
  for (size_t i = strides.size(); i-- > 1;) strides[i - 1] = strides[i] * std::max<int64_t>(type.shape[i], 1);
  made->shape = nb::tuple(nb::cast(type.shape)), made->strides = nb::tuple(nb::cast(strides));
  const std::string isa = isa_.empty() && gpu < 0 ? default_isa() : isa_;
  made->operation = std::make_shared<const run::EagerOperation>(
      or_raise(run::EagerOperation::make(op_, std::move(attrs), isa)));
  or_raise(made->operation->check(in, made->result, gpu >= 0));
  return made;
}

namespace {
std::vector<std::string> operations(const std::string& room) {
  std::vector<std::string> names;
  for (const OpInfo& o : opset())
    if (room.empty() || o.room == room) names.emplace_back(o.op);
  return names;
}

// The default of a number that is an attribute; None of another, or where an operation has none.
nb::object default_of(const std::string& op, const std::string& name) {
  const auto all = attribute_infos();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const AttributeInfo& a) { return a.name == name; });
  if (found == all.end()) return nb::none();
  const AttributeDefault is = attribute_default(op, name);
  if (found->type == AttributeType::i64) return nb::cast(is.i64);
  return found->type == AttributeType::f32 ? nb::cast(is.f32) : nb::none();
}

std::vector<std::string> rooms() {
  std::set<std::string> names;
  for (const OpInfo& o : opset()) names.emplace(o.room);
  return {names.begin(), names.end()};
}

}  // namespace

void add_operations(nb::module_& m) {
  nb::class_<Operation>(m, "Operation")
      .def(nb::init<std::string, const nb::dict&, std::string, std::optional<std::string>,
                    std::optional<std::vector<int64_t>>>(),
           nb::arg("op"), nb::arg("attributes"), nb::arg("isa") = "", nb::arg("dtype").none() = nb::none(),
           nb::arg("shape").none() = nb::none())
      .def("run", nb::overload_cast<const nb::tuple&>(&Operation::run, nb::const_))
      .def(
          "set_rule", [](Operation& o, nb::object call, nb::object rule) { o.call = call, o.rule = rule; },
          nb::arg("call"), nb::arg("rule").none());
  m.def("has_exchange_api", [] { return Torch::loaded() != nullptr; });
  m.def("raise_faults", &raise_faults);
  m.def("after_fork", &after_fork);
  m.def("run_operation", &run_operation);
  m.def("infer", &infer, nb::arg("op"), nb::arg("attributes"), nb::arg("operands"),
        nb::arg("wanted").none() = nb::none());
  m.def("infer_sizes", &infer_sizes, nb::arg("op"), nb::arg("attributes"), nb::arg("operands"));
  m.def("set_threads", &set_threads);
  m.def("set_isa", &set_isa, nb::arg("isa") = "");
  m.def("torch_expression", &torch_expression, nb::arg("op"), nb::arg("attributes"), nb::arg("operands"),
        nb::arg("result"));
  m.def("operations", &operations, nb::arg("room") = "");
  m.def("rooms", &rooms);
  m.def("default_of", &default_of, nb::arg("op"), nb::arg("name"));
}

}  // namespace invar::python
