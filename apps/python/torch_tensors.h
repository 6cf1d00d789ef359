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
  // derivatives, torch.func's transforms, or a TorchDispatchMode other than Invar's own.
  bool is_watching() const;
  // Takes Invar's modes off torch's calls while it lives: they would judge what is Invar's already.
  // Of use where is_watching() is false; it does nothing where no mode is in force.
  class Unseen {
   public:
    explicit Unseen(const Torch&);
    ~Unseen();
    Unseen(const Unseen&) = delete;
    Unseen& operator=(const Unseen&) = delete;

   private:
    nb::object dispatch_, functions_, leave_;
  };

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
  nb::object empty_, grad_enabled_, dispatch_modes_, function_modes_, mode_at_, transforms_, device_, cpu_;
  nb::object no_dispatch_, no_functions_, enter_, exit_;
  nb::dict forward_ad_;
  nb::object requires_grad_, is_neg_, contiguous_, resolve_neg_, detach_, current_level_, names_;
  std::vector<nb::object> dtypes_;
  mutable std::vector<nb::object> gpus_;
};

// The class of the dispatch mode that is Invar's own (invar.reproducibility).
void set_own_mode(nb::handle type);

}  // namespace invar::python
