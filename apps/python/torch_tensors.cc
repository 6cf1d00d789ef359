// Tensors of torch, see torch_tensors.h.
#include "torch_tensors.h"

namespace invar::python {
namespace {

constexpr int kHost = nb::device::cpu::value, kGpu = nb::device::cuda::value, kPinned = 3;

nb::object interned(const char* name) {
  return nb::steal(PyUnicode_InternFromString(name));
}
bool is_true(nb::object o) {
  if (!o.is_valid()) throw nb::python_error();
  return o.ptr() == Py_True;
}
nb::object call_method(nb::handle x, nb::handle name) {
  PyObject* args[] = {x.ptr()};
  nb::object got =
      nb::steal(PyObject_VectorcallMethod(name.ptr(), args, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
  if (!got.is_valid()) throw nb::python_error();
  return got;
}

const dlpack::ExchangeApi* api_of(nb::handle type) {
  if (!nb::hasattr(type, "__dlpack_c_exchange_api__")) return nullptr;
  const nb::object capsule = type.attr("__dlpack_c_exchange_api__");
  auto* api =
      static_cast<const dlpack::ExchangeApi*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  PyErr_Clear();
  while (api && api->version.major != 1) api = api->previous;
  return api && api->view && api->allocate && api->current_stream ? api : nullptr;
}

bool is_row_major(const dlpack::Tensor& t) {
  int64_t step = 1;
  for (int i = t.ndim - 1; i >= 0; --i) {
    if (t.shape[i] == 0) return true;
    if (t.shape[i] != 1 && t.strides && t.strides[i] != step) return false;
    step *= t.shape[i];
  }
  return true;
}

long number_of(const nb::object& count) {
  const nb::object found = nb::steal(PyObject_CallNoArgs(count.ptr()));
  if (!found.is_valid()) throw nb::python_error();
  return PyLong_AsLong(found.ptr());
}

PyObject* own_mode = nullptr;  // a class; outlives the interpreter's end

constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::f16,    DType::f64, DType::i64,
                            DType::i32, DType::i16,  DType::i8,     DType::u64, DType::u32,
                            DType::u16, DType::u8,   DType::boolean};
const char* torch_name(DType dtype) {
  switch (dtype) {
    case DType::f32: return "float32";
    case DType::bf16: return "bfloat16";
    case DType::f16: return "float16";
    case DType::f64: return "float64";
    case DType::i64: return "int64";
    case DType::i32: return "int32";
    case DType::i16: return "int16";
    case DType::i8: return "int8";
    case DType::u64: return "uint64";
    case DType::u32: return "uint32";
    case DType::u16: return "uint16";
    case DType::u8: return "uint8";
    case DType::boolean: return "bool";
    default: return nullptr;
  }
}
bool is_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16 || dtype == DType::f64;
}

}  // namespace

const Torch* Torch::loaded() {
  static const Torch* torch = nullptr;  // outlives the interpreter's end
  if (torch) return torch->api_ ? torch : nullptr;
  static const nb::object* name = new nb::object(interned("torch"));
  const nb::object module = nb::steal(PyImport_GetModule(name->ptr()));
  // Elsewhere torch may still be under way with its import.
  if (!module.is_valid() || !nb::hasattr(module, "nn") || !nb::hasattr(module, "autograd")) {
    PyErr_Clear();
    return nullptr;
  }
  torch = new Torch(module);
  return torch->api_ ? torch : nullptr;
}

Torch::Torch(nb::handle torch)
    : api_(api_of(torch.attr("Tensor"))),
      type_(reinterpret_cast<PyTypeObject*>(nb::object(torch.attr("Tensor")).release().ptr())),
      parameter_(
          reinterpret_cast<PyTypeObject*>(nb::object(torch.attr("nn").attr("Parameter")).release().ptr())),
      empty_(torch.attr("empty_strided")),
      grad_enabled_(torch.attr("is_grad_enabled")),
      dispatch_modes_(torch.attr("_C").attr("_len_torch_dispatch_stack")),
      function_modes_(torch.attr("_C").attr("_len_torch_function_stack")),
      mode_at_(torch.attr("_C").attr("_get_dispatch_stack_at")),
      transforms_(torch.attr("_C").attr("_are_functorch_transforms_active")),
      device_(torch.attr("device")),
      cpu_(device_("cpu")),
      no_dispatch_(torch.attr("_C").attr("_DisableTorchDispatch")),
      no_functions_(torch.attr("_C").attr("DisableTorchFunction")),
      enter_(interned("__enter__")),
      exit_(interned("__exit__")),
      forward_ad_(nb::cast<nb::dict>(torch.attr("autograd").attr("forward_ad").attr("__dict__"))),
      requires_grad_(interned("requires_grad")),
      is_neg_(interned("is_neg")),
      contiguous_(interned("contiguous")),
      resolve_neg_(interned("resolve_neg")),
      detach_(interned("detach")),
      current_level_(interned("_current_level")),
      names_(nb::make_tuple(interned("dtype"), interned("device"))) {
  for (const DType t : kTypes) {
    const auto at = static_cast<size_t>(t);
    if (dtypes_.size() <= at) dtypes_.resize(at + 1);
    dtypes_[at] = torch.attr(torch_name(t));
  }
}

bool Torch::is_tensor(nb::handle x) const {
  return is_plain(x) || PyObject_TypeCheck(x.ptr(), type_);
}
bool Torch::requires_grad(nb::handle x) const {
  return is_true(nb::steal(PyObject_GetAttr(x.ptr(), requires_grad_.ptr())));
}
bool Torch::grad_enabled() const {
  return is_true(nb::steal(PyObject_CallNoArgs(grad_enabled_.ptr())));
}
bool Torch::is_watching() const {
  PyObject* const level = PyDict_GetItemWithError(forward_ad_.ptr(), current_level_.ptr());
  if (level && PyLong_AsLong(level) >= 0) return true;
  if (is_true(nb::steal(PyObject_CallNoArgs(transforms_.ptr())))) return true;
  const long modes = number_of(dispatch_modes_);
  for (long i = 0; i < modes; ++i)
    if (nb::object(mode_at_(i)).type().ptr() != own_mode) return true;
  return false;
}

Torch::Unseen::Unseen(const Torch& torch) {
  if (!number_of(torch.function_modes_)) return;  // the mode has taken both off, or there is none
  dispatch_ = torch.no_dispatch_();               // in force while it lives
  functions_ = torch.no_functions_();
  leave_ = nb::object(functions_.attr(torch.exit_));
  call_method(functions_, torch.enter_);
}
Torch::Unseen::~Unseen() {
  if (!leave_.is_valid()) return;
  const nb::error_scope kept;  // of an exception that is on its way
  Py_XDECREF(PyObject_CallFunctionObjArgs(leave_.ptr(), Py_None, Py_None, Py_None, nullptr));
  PyErr_Clear();
}

void set_own_mode(nb::handle type) {
  own_mode = nb::borrow(type).release().ptr();
}

std::optional<Operand> Torch::operand(nb::handle x, const std::string& op, size_t number,
                                      std::string* why_not) const {
  const auto where = [&] { return op + ": operand " + std::to_string(number); };
  Operand made;
  made.kept = nb::borrow(x);
  dlpack::Tensor t{};
  for (bool asked = false;; asked = true) {
    if (api_->view(made.kept.ptr(), &t)) {
      const nb::python_error error;
      if (!why_not) return {};
      *why_not = nb::cast<std::string>(nb::str(error.value()));
      why_not->resize(std::min(why_not->find('\n'), why_not->size()));  // the rest is a stack
      made.kept = call_method(made.kept, detach_);  // of a transform of torch.func that has ended
      if (api_->view(made.kept.ptr(), &t)) return PyErr_Clear(), std::nullopt;
    }
    const auto dtype = known_dtype(t.dtype);
    if (!dtype)
      throw Raised{
          not_covered(where() + ": elements of " +
                      nb::cast<std::string>(nb::str(nb::handle(nb::object(made.kept.attr("dtype"))))) +
                      "; covered are " + covered_dtypes())};
    made.view.dtype = *dtype;
    if (asked) break;
    if (is_float(made.view.dtype) && is_true(call_method(made.kept, is_neg_)))
      made.kept = call_method(made.kept, resolve_neg_);
    else if (is_row_major(t))
      break;
    made.kept = call_method(made.kept, contiguous_);
  }
  if (t.ndim > ops::kMaxRank)
    throw Raised{not_covered(where() + ": rank " + std::to_string(t.ndim) + "; covered is up to " +
                             std::to_string(ops::kMaxRank))};
  if (t.device.device_type == kGpu)
    made.gpu = t.device.device_id;
  else if (t.device.device_type != kHost && t.device.device_type != kPinned)
    throw Raised{not_covered(where() + ": covered are tensors on the host and on CUDA devices")};
  made.view.data = static_cast<std::byte*>(t.data) + t.byte_offset;
  made.view.rank = t.ndim;
  std::copy_n(t.shape, t.ndim, made.view.dim);
  return made;
}

void* Torch::data(nb::handle x) const {
  dlpack::Tensor t{};
  if (api_->view(x.ptr(), &t)) throw nb::python_error();
  return static_cast<std::byte*>(t.data) + t.byte_offset;
}

// torch.empty() would take twice as long to read its arguments. A tensor of DLPack's allocator
// would take as long, and torch would not know its memory as its own (Tensor.record_stream).
nb::object Torch::empty(nb::handle shape, nb::handle strides, DType dtype, int gpu) const {
  if (gpu >= static_cast<int>(gpus_.size())) gpus_.resize(static_cast<size_t>(gpu) + 1);
  if (gpu >= 0 && !gpus_[gpu].is_valid()) gpus_[gpu] = device_("cuda", gpu);
  PyObject* args[] = {nullptr, shape.ptr(), strides.ptr(), dtypes_[static_cast<size_t>(dtype)].ptr(),
                      gpu < 0 ? cpu_.ptr() : gpus_[gpu].ptr()};
  nb::object made = nb::steal(
      PyObject_Vectorcall(empty_.ptr(), args + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, names_.ptr()));
  if (!made.is_valid()) throw nb::python_error();
  return made;
}

Stream Torch::stream(int gpu) const {
  void* stream = nullptr;
  if (api_->current_stream(kGpu, gpu, &stream)) throw nb::python_error();
  return static_cast<Stream>(stream);
}

Result<Torch::Memory> Torch::memory(size_t bytes, int gpu) const {
  auto size = static_cast<int64_t>(bytes), step = int64_t{1};
  dlpack::Tensor prototype{};
  prototype.device = {gpu < 0 ? kHost : kGpu, gpu < 0 ? 0 : gpu};
  prototype.ndim = 1, prototype.shape = &size, prototype.strides = &step;
  prototype.dtype = dlpack_of(DType::u8);
  dlpack::Managed* made = nullptr;
  std::string error;
  const auto set_error = [](void* context, const char*, const char* message) {
    *static_cast<std::string*>(context) = message;
  };
  if (api_->allocate(&prototype, &made, &error, set_error)) return bad_input("scratch memory: " + error);
  return Memory(made);
}

}  // namespace invar::python
