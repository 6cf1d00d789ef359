// Arrays of Python as the runtime sees them, without copies: anything with DLPack or the buffer
// protocol.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <vector>

#include "base/attributes.h"
#include "base/dtype.h"
#include "base/status.h"
#include "kernels/op_contract.h"
#include "run/function.h"

namespace invar::python {
namespace nb = nanobind;

// Errors become invar.Error and its kinds.
struct Raised {
  Error error;
};
template <class T>
T or_raise(Result<T> r) {
  if (!r) throw Raised{r.error()};
  if constexpr (!std::is_void_v<T>) return *std::move(r);
}

using Array = nb::ndarray<nb::c_contig>;
using ReadOnly = nb::ndarray<nb::ro, nb::c_contig>;

std::optional<DType> known_dtype(nb::dlpack::dtype);
std::string covered_dtypes();  // "f32 bf16 ..."
DType dtype_of(nb::dlpack::dtype, const std::string& where);
nb::dlpack::dtype dlpack_of(DType);

template <class A>
ops::View view_of(const A& a, const std::string& where) {
  if (a.ndim() > ops::kMaxRank)
    throw Raised{not_covered(where + ": rank " + std::to_string(a.ndim()) + "; covered is up to " +
                             std::to_string(ops::kMaxRank))};
  ops::View view;
  view.data = const_cast<void*>(static_cast<const void*>(a.data()));
  view.dtype = dtype_of(a.dtype(), where);
  view.rank = static_cast<int>(a.ndim());
  for (size_t i = 0; i < a.ndim(); ++i) view.dim[i] = static_cast<int64_t>(a.shape(i));
  return view;
}

// The number of the GPU on which it lies; -1: the host.
template <class A>
int gpu_of(const A& a, const std::string& where) {
  constexpr int kPinned = 3;  // kDLCUDAHost
  if (a.device_type() == nb::device::cpu::value || a.device_type() == kPinned) return -1;
  if (a.device_type() == nb::device::cuda::value) return a.device_id();
  throw Raised{not_covered(where + ": covered are arrays on the host and on CUDA devices")};
}

// An array as an input of a program.
class Given {
 public:
  Given(ReadOnly array, const std::string& where)
      : array_(std::move(array)), view_(view_of(array_, where)), device_(gpu_of(array_, where)) {}
  run::TensorView view() const {
    const size_t bytes = static_cast<size_t>(view_.elements()) * size_of(view_.dtype);
    return {view_.dtype,
            {view_.dim, view_.dim + view_.rank},
            {static_cast<const std::byte*>(view_.data), bytes},
            device_};
  }

 private:
  ReadOnly array_;
  ops::View view_;
  int device_;
};
nb::object array_of(run::Tensor);  // takes its bytes; DLPack
nb::object retyped(const ReadOnly&,
                   const std::string& dtype);  // the same memory, of elements of the same size
Attributes attrs_of(const nb::dict&);          // int, float (binary32), str, lists of int
nb::dict dict_of(const Attributes&);

}  // namespace invar::python
