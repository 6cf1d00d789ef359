// Calls of operations by name, as Python's primitives make them.
#include <nanobind/stl/shared_ptr.h>

#include "operation.h"

namespace invar::python {
namespace {

constexpr size_t kRememberedOperations = 4096;  // operations

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
    const double d = PyFloat_AsDouble(value);
    return bytes('f', &d, sizeof d);
  }
  if (PyUnicode_CheckExact(value)) {
    Py_ssize_t n = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(value, &n);
    if (!text) return PyErr_Clear(), false;
    return bytes('s', &n, sizeof n), key.append(text, static_cast<size_t>(n)), true;
  }
  const bool list = PyList_CheckExact(value);
  if (!list && !PyTuple_Check(value)) return false;
  const Py_ssize_t n = list ? NB_LIST_GET_SIZE(value) : NB_TUPLE_GET_SIZE(value);
  bytes('l', &n, sizeof n);
  for (Py_ssize_t i = 0; i < n; ++i)
    if (!append_key(key, list ? NB_LIST_GET_ITEM(value, i) : NB_TUPLE_GET_ITEM(value, i))) return false;
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
  if (all->size() >= kRememberedOperations) all->clear();
  all->emplace(owned, made);
  return made;
}

// The parts of invar.autograd that calls need as nodes of its graph.
struct Autograd {
  nb::object apply;    // apply(handle, *operands): a node, whose forward pass is forward()
  nb::object compute;  // compute(call, operands): of tensors whose memory torch does not show
  nb::object about;    // about(call, rule, operands, needs) -> (about, kept)
  nb::dict exact;      // parameters with exact gradients, which only Python knows to serve
  nb::list doing;      // [the name of the function of torch that is computed, or None]
};
const Autograd* autograd = nullptr;  // set once; outlives the interpreter's end

void set_autograd(nb::object apply, nb::object compute, nb::object about, nb::dict exact, nb::list doing) {
  autograd = new Autograd{std::move(apply), std::move(compute), std::move(about), std::move(exact),
                          std::move(doing)};
}

Operation& of_handle(nb::handle handle) {
  auto* operation = static_cast<Operation*>(PyCapsule_GetPointer(handle.ptr(), nullptr));
  if (!operation) throw nb::python_error();
  return *operation;
}

const Operation::Node& node_of(const Torch& torch, const Operation& operation,
                               const Operation::Prepared& prepared, const nb::tuple& operands) {
  uint64_t needs = 0;
  for (size_t i = 0; i < operands.size(); ++i)
    if (torch.requires_grad(operands[i])) needs |= uint64_t{1} << i;
  for (const Operation::Node& known : prepared.nodes)
    if (known.needs == needs) return known;
  nb::list wanted;
  for (size_t i = 0; i < operands.size(); ++i) wanted.append(bool(needs >> i & 1));
  const nb::object made = autograd->about(operation.call, operation.rule, operands, nb::tuple(wanted));
  Operation::Node node{needs, made[0], {}};
  for (nb::handle keep : made[1]) node.kept.push_back(keep.ptr() == Py_True);
  return prepared.nodes.emplace_back(std::move(node));
}

// The forward pass of a node: torch gives its context, the operation's handle, and the operands.
nb::object forward(const nb::args& given) {
  static auto* to_save = new nb::str("to_save");
  static auto* about = new nb::str("about");
  static auto* of = new nb::str("doing");
  const Torch& torch = *Torch::loaded();
  const Torch::Unseen unseen(torch);
  const Operation& operation = of_handle(given[1]);
  const nb::tuple operands =
      nb::steal<nb::tuple>(PyTuple_GetSlice(given.ptr(), 2, NB_TUPLE_GET_SIZE(given.ptr())));
  nb::object result;
  std::shared_ptr<const Operation::Prepared> prepared;
  if (const auto ready = operation.ready(torch, operands, /*must=*/false)) {
    Operation::compute(torch, {&*ready, 1});
    result = ready->result, prepared = ready->prepared;
  } else {
    result = autograd->compute(operation.call, operands);
    prepared = std::make_shared<const Operation::Prepared>();
  }
  const Operation::Node& node = node_of(torch, operation, *prepared, operands);
  nb::object saved = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(operands.size() + 1)));
  for (size_t i = 0; i <= operands.size(); ++i) {
    const nb::handle x = !node.kept[i]         ? nb::handle(Py_None)
                         : i < operands.size() ? nb::handle(operands[i])
                                               : nb::handle(result);
    NB_TUPLE_SET_ITEM(saved.ptr(), static_cast<Py_ssize_t>(i), x.inc_ref().ptr());
  }
  if (PyObject_SetAttr(given[0].ptr(), to_save->ptr(), saved.ptr()) ||
      PyObject_SetAttr(given[0].ptr(), about->ptr(), node.about.ptr()))
    throw nb::python_error();
  const nb::object doing = autograd->doing[0];
  if (!doing.is_none() && PyObject_SetAttr(given[0].ptr(), of->ptr(), doing.ptr())) throw nb::python_error();
  return result;
}

// The result as a node of the graph of gradients; not valid: only Python makes it.
nb::object call_node(const std::shared_ptr<Operation>& operation, const nb::tuple& operands) {
  constexpr size_t kMost = 64;  // bits of Node::needs
  if (!autograd || !operation->rule.is_valid() || operands.size() > kMost) return {};
  if (NB_DICT_GET_SIZE(autograd->exact.ptr())) return {};
  if (!operation->handle.is_valid()) operation->handle = nb::capsule(operation.get());
  PyObject* given[kMost + 2] = {nullptr, operation->handle.ptr()};
  const size_t count = operands.size();
  for (size_t i = 0; i < count; ++i) given[i + 2] = NB_TUPLE_GET_ITEM(operands.ptr(), i);
  nb::object result = nb::steal(PyObject_Vectorcall(autograd->apply.ptr(), given + 1,
                                                    (1 + count) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
  if (!result.is_valid()) throw nb::python_error();
  return result;
}

// Whether nothing but the graph of gradients can have a part in a call of these operands.
bool are_plain(const Torch& torch, const nb::tuple& operands, bool& grad) {
  for (size_t i = 0; i < operands.size(); ++i)
    if (!torch.is_plain(operands[i])) return false;
  for (size_t i = 0; i < operands.size(); ++i) grad = grad || torch.requires_grad(operands[i]);
  return operands.size() > 0;
}

// The result of operation `op` on plain tensors of torch with these keyword arguments;
// NotImplemented for everything else: subclasses of tensors, modes, other libraries, and the first
// call of an operation that has gradients.
nb::object call(nb::handle op, const nb::tuple& operands, const nb::dict& given) {
  const nb::object otherwise = nb::borrow(Py_NotImplemented);
  const Torch* torch = Torch::loaded();
  bool grad = false;
  if (!torch || torch->is_watching()) return otherwise;
  std::optional<Torch::Unseen> unseen(*torch);
  if (!are_plain(*torch, operands, grad)) return otherwise;
  const std::shared_ptr<Operation> operation = operation_of(op, given);
  if (!operation) return otherwise;
  if (grad && torch->grad_enabled() && !operation->rule.is_none()) {
    unseen.reset();  // hooks of saved tensors are the user's
    nb::object result = call_node(operation, operands);
    return result.is_valid() ? result : otherwise;
  }
  const auto ready = operation->ready(*torch, operands, /*must=*/false);
  if (!ready) return otherwise;
  Operation::compute(*torch, {&*ready, 1});
  return ready->result;
}

// The results of several calls (operation, operands, keyword arguments) of plain tensors on one
// device, none of which depends on another and none of which is a node; else NotImplemented.
nb::object call_group(const nb::tuple& calls) {
  const nb::object otherwise = nb::borrow(Py_NotImplemented);
  const Torch* torch = Torch::loaded();
  if (!torch || torch->is_watching()) return otherwise;
  const Torch::Unseen unseen(*torch);
  std::vector<Operation::Ready> ready;
  bool grad = false;
  for (nb::handle one : calls) {
    const auto operands = nb::cast<nb::tuple>(one[1]);
    if (!are_plain(*torch, operands, grad) || (grad && torch->grad_enabled())) return otherwise;
    const std::shared_ptr<Operation> operation = operation_of(one[0], nb::cast<nb::dict>(one[2]));
    if (!operation) return otherwise;
    auto made = operation->ready(*torch, operands, /*must=*/false);
    if (!made || (!ready.empty() && made->gpu != ready[0].gpu)) return otherwise;
    ready.push_back(*std::move(made));
  }
  if (ready.empty()) return otherwise;
  Operation::compute(*torch, ready);
  nb::list results;
  for (const Operation::Ready& r : ready) results.append(r.result);
  return results;
}

}  // namespace

void add_calls(nb::module_& m) {
  m.def("call", &call);
  m.def("call_group", &call_group);
  m.def("forward", &forward);
  m.def("set_autograd", &set_autograd);
  m.def("prepared", &operation_of);
  m.def("set_own_mode", &set_own_mode);
}

}  // namespace invar::python
