// Tensors of torch, read and made without torch's headers: through its DLPack exchange API and its
// Python functions. Only of use where torch is imported. Callers hold the GIL.
#pragma once

#include <optional>

#include "arrays.h"
#include "exchange.h"

namespace invar::python {

// A tensor as an operand. `kept` owns the memory that the view points at.
struct Operand {
  ops::View view;
  int gpu = -1;  // the number of the GPU; -1: on the host
  nb::object kept;
};

class Torch {
 public:
  // Null where torch is not imported or has no exchange API (older than 2.10).
  static const Torch* loaded();

  // A plain tensor: torch.Tensor or torch.nn.Parameter itself, since subclasses may mean more than
  // their elements.
  bool is_plain(nb::handle x) const { return Py_TYPE(x.ptr()) == type_ || Py_TYPE(x.ptr()) == parameter_; }
  bool is_tensor(nb::handle x) const;
  bool requires_grad(nb::handle x) const;
  bool grad_enabled() const;
  // Whether torch follows what is computed by means that this module does not see: forward-mode
  // derivatives, torch.func's transforms, or a TorchDispatchMode.
  bool is_watching() const;

  // Elements as kernels read them: row-major and without lazy negation, else those of a copy that
  // torch makes. nullopt: torch does not show its memory, and why_not is filled if it is not null.
  std::optional<Operand> operand(nb::handle x, const std::string& op, size_t number,
                                 std::string* why_not) const;
  void* data(nb::handle x) const;
  // A new row-major tensor on that device (-1: the host). `shape`, `strides`: tuples.
  nb::object empty(nb::handle shape, nb::handle strides, DType dtype, int gpu) const;
  // The stream on which torch works there.
  Stream stream(int gpu) const;
  // Memory of torch's allocator, of the current stream; released with the result's end.
  struct Release {
    void operator()(dlpack::Managed* m) const { m->deleter(m); }
  };
  using Memory = std::unique_ptr<dlpack::Managed, Release>;
  Result<Memory> memory(size_t bytes, int gpu) const;

 private:
  explicit Torch(nb::handle torch);

  const dlpack::ExchangeApi* api_ = nullptr;
  PyTypeObject *type_, *parameter_;
  nb::object empty_, grad_enabled_, dispatch_modes_, transforms_, device_, cpu_;
  nb::dict forward_ad_;
  nb::object requires_grad_, is_neg_, contiguous_, resolve_neg_, detach_, current_level_, names_;
  std::vector<nb::object> dtypes_;
  mutable std::vector<nb::object> gpus_;
};

}  // namespace invar::python
