// Calls of single operations, see operation.h.
#include "operation.h"

#include <nanobind/stl/shared_ptr.h>

#include <unordered_map>

#include "base/opset.h"
#include "compiler/compiler.h"
#include "device/calling_thread.h"
#include "torch_tensors.h"
#include "workers.h"

namespace invar::python {
namespace {

using Type = std::pair<std::string, std::vector<int64_t>>;
constexpr size_t kRemembered = 4096;  // calls, and types of operands of one call

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

// An operation with its attributes and, where it does not follow from the operands, the type of its
// result.
class Operation {
 public:
  Operation(std::string op, const nb::dict& attributes, std::string isa, std::optional<std::string> dtype,
            std::optional<std::vector<int64_t>> shape)
      : op_(std::move(op)),
        isa_(std::move(isa)),
        attrs_(attrs_of(attributes)),
        dtype_(std::move(dtype)),
        shape_(std::move(shape)) {
    const auto axis = attrs_.find("axis");
    if (axis != attrs_.end())
      if (const auto* value = std::get_if<int64_t>(&axis->second); value && *value < 0) axis_ = *value;
  }

  // The result of these tensors of torch, computed without gradients.
  nb::object run(const nb::tuple& operands) const {
    const Torch* torch = Torch::loaded();
    if (!torch)
      throw Raised{
          not_covered(op_ + ": tensors of a torch without the DLPack exchange API; use a newer one")};
    nb::object result = run(*torch, operands, /*must=*/true);
    return result;
  }
  // The same; not valid: torch does not show the memory of an operand, and `must` is false.
  nb::object run(const Torch& torch, const nb::tuple& operands, bool must) const;

 private:
  // What calls with operands of the same types share.
  struct Prepared {
    std::shared_ptr<const run::EagerOperation> operation;
    ops::View result;  // without memory
    nb::object shape, strides;
  };
  std::string named(size_t operand) const { return op_ + ": operand " + std::to_string(operand); }
  std::shared_ptr<const Prepared> prepared(std::span<const ops::View> in, int gpu) const;
  std::shared_ptr<const Prepared> prepare(std::span<const ops::View> in, int gpu) const;

  std::string op_, isa_;
  Attributes attrs_;
  std::optional<int64_t> axis_;  // an axis counted from the end
  std::optional<std::string> dtype_;
  std::optional<std::vector<int64_t>> shape_;
  mutable std::unordered_map<std::string, std::shared_ptr<const Prepared>> known_;
};

nb::object Operation::run(const Torch& torch, const nb::tuple& operands, bool must) const {
  raise_faults();
  const size_t count = operands.size();
  if (!count) throw Raised{not_covered(op_ + ": no operand says the library and the device of the result")};
  std::vector<ops::View> in(count);
  std::vector<nb::object> kept(count);
  int on = -1;
  for (size_t i = 0; i < count; ++i) {
    const nb::handle x = operands[i];
    if (!torch.is_tensor(x))
      throw Raised{bad_input(named(i) + ": expected a tensor of torch, got " +
                             nb::cast<std::string>(nb::handle(Py_TYPE(x.ptr())).attr("__name__")))};
    std::string why_not;
    std::optional<Operand> one = torch.operand(x, op_, i, must ? &why_not : nullptr);
    if (!one && !must) return {};
    if (!one) throw Raised{not_covered(named(i) + ": torch does not show its memory: " + why_not)};
    if (i && one->gpu != on)
      throw Raised{
          bad_input(named(i) + " lies on " + device_name(one->gpu) + ", operand 0 on " + device_name(on))};
    on = one->gpu, in[i] = one->view, kept[i] = std::move(one->kept);
  }
  const std::shared_ptr<const Prepared> call = prepared(in, on);
  nb::object result = torch.empty(call->shape, call->strides, call->result.dtype, on);
  ops::View out = call->result;
  out.data = torch.data(result);
  if (on < 0) {
    nb::gil_scoped_release free;
    with_pool(
        [&](Pool& pool, run::EagerMemory& memory) { or_raise(call->operation->run(in, out, pool, memory)); });
    return result;
  }
  run::EagerDevice& device = gpu(on);
  const Stream stream = torch.stream(on);
  std::vector<Torch::Memory> scratch;  // until the call is queued: the allocator knows the stream
  nb::gil_scoped_release free;
  const DeviceScope here(on);
  or_raise(call->operation->enqueue(in, out, device, stream, [&](size_t bytes) -> Result<void*> {
    INVAR_TRY(scratch.emplace_back(), torch.memory(bytes, on));
    return scratch.back()->tensor.data;
  }));
  return result;
}

std::shared_ptr<const Operation::Prepared> Operation::prepared(std::span<const ops::View> in, int gpu) const {
  thread_local std::string key;
  key.assign(1, gpu < 0 ? 'h' : 'g');
  if (gpu < 0) key += default_isa();
  for (const ops::View& v : in) {
    key += static_cast<char>(v.dtype), key += static_cast<char>(v.rank);
    key.append(reinterpret_cast<const char*>(v.dim), static_cast<size_t>(v.rank) * sizeof(int64_t));
  }
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  if (known_.size() >= kRemembered) known_.clear();
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

// A value of a keyword argument as part of a key; false: it is of a type that only Python reads.
bool append_key(std::string& key, PyObject* value) {
  auto bytes = [&key](char kind, const void* p, size_t n) {
    key += kind;
    key.append(static_cast<const char*>(p), n);
    return true;
  };
  if (value == Py_None) return bytes('n', "", 0);
  if (PyLong_CheckExact(value) || PyBool_Check(value)) {
    const int64_t i = PyLong_AsLongLong(value);
    if (i == -1 && PyErr_Occurred()) return PyErr_Clear(), false;
    return bytes('i', &i, sizeof i);
  }
  if (PyFloat_CheckExact(value)) {
    const double d = PyFloat_AS_DOUBLE(value);
    return bytes('f', &d, sizeof d);
  }
  if (PyUnicode_CheckExact(value)) {
    Py_ssize_t n = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(value, &n);
    if (!text) return PyErr_Clear(), false;
    return bytes('s', &n, sizeof n), key.append(text, static_cast<size_t>(n)), true;
  }
  if (!PyList_CheckExact(value) && !PyTuple_Check(value)) return false;
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(value);
  bytes('l', &n, sizeof n);
  for (Py_ssize_t i = 0; i < n; ++i)
    if (!append_key(key, PySequence_Fast_GET_ITEM(value, i))) return false;
  return true;
}

// Operation `op` with these keyword arguments; null: one is of a type that only Python reads.
std::shared_ptr<Operation> operation_of(nb::handle op, const nb::dict& given) {
  static auto* all = new std::unordered_map<std::string, std::shared_ptr<Operation>>;
  thread_local std::string key;
  key.clear();
  if (!append_key(key, op.ptr())) return nullptr;
  PyObject *name, *value;
  for (Py_ssize_t at = 0; PyDict_Next(given.ptr(), &at, &name, &value);) {
    if (!append_key(key, name) || !append_key(key, value)) return nullptr;
  }
  if (const auto found = all->find(key); found != all->end()) return found->second;
  const std::string owned = key;  // what follows may run Python, which may come here again
  nb::dict attributes;
  std::string isa;
  std::optional<std::string> dtype;
  std::optional<std::vector<int64_t>> shape;
  for (auto [k, v] : given) {
    const auto text = nb::cast<std::string>(k);
    const bool fits = text == "isa"     ? nb::try_cast(v, isa)
                      : text == "dtype" ? nb::try_cast(v, dtype)
                      : text == "shape" ? nb::try_cast(v, shape)
                                        : true;
    if (!fits) return nullptr;
    if (text != "isa" && text != "dtype" && text != "shape") attributes[k] = v;
  }
  auto made = std::make_shared<Operation>(nb::cast<std::string>(op), attributes, isa, dtype, shape);
  if (all->size() >= kRemembered) all->clear();
  all->emplace(owned, made);
  return made;
}

// The result of operation `op` on plain tensors of torch with these keyword arguments;
// NotImplemented for everything else: gradients, subclasses of tensors, modes, other libraries.
nb::object call(nb::handle op, const nb::tuple& operands, const nb::dict& given) {
  const nb::object otherwise = nb::borrow(Py_NotImplemented);
  const Torch* torch = Torch::loaded();
  const size_t count = operands.size();
  if (!torch || !count) return otherwise;
  bool grad = false;
  for (size_t i = 0; i < count; ++i)
    if (!torch->is_plain(operands[i])) return otherwise;
  for (size_t i = 0; i < count; ++i) grad = grad || torch->requires_grad(operands[i]);
  if ((grad && torch->grad_enabled()) || torch->is_watching()) return otherwise;
  const std::shared_ptr<Operation> operation = operation_of(op, given);
  if (!operation) return otherwise;
  nb::object result = operation->run(*torch, operands, /*must=*/false);
  return result.is_valid() ? result : otherwise;
}

std::vector<std::string> operations(const std::string& room) {
  std::vector<std::string> names;
  for (const OpInfo& o : opset())
    if (room.empty() || o.room == room) names.emplace_back(o.op);
  return names;
}

}  // namespace

void add_operations(nb::module_& m) {
  nb::class_<Operation>(m, "Operation")
      .def(nb::init<std::string, const nb::dict&, std::string, std::optional<std::string>,
                    std::optional<std::vector<int64_t>>>(),
           nb::arg("op"), nb::arg("attributes"), nb::arg("isa") = "", nb::arg("dtype").none() = nb::none(),
           nb::arg("shape").none() = nb::none())
      .def("run", nb::overload_cast<const nb::tuple&>(&Operation::run, nb::const_));
  m.def("call", &call);
  m.def("prepared", &operation_of);
  m.def("has_exchange_api", [] { return Torch::loaded() != nullptr; });
  m.def("raise_faults", &raise_faults);
  m.def("run_operation", &run_operation);
  m.def("infer", &infer, nb::arg("op"), nb::arg("attributes"), nb::arg("operands"),
        nb::arg("wanted").none() = nb::none());
  m.def("set_threads", &set_threads);
  m.def("set_isa", &set_isa, nb::arg("isa") = "");
  m.def("torch_expression", &torch_expression, nb::arg("op"), nb::arg("attributes"), nb::arg("operands"),
        nb::arg("result"));
  m.def("operations", &operations, nb::arg("room") = "");
}

}  // namespace invar::python
