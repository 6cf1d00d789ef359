// The table of functions with which a library of tensors hands them to others inside one process:
// DLPack 1.2's exchange API. A type of tensors has it as the capsule __dlpack_c_exchange_api__,
// named "dlpack_exchange_api".
#pragma once

#include <nanobind/ndarray.h>

#include <cstdint>

namespace invar::python::dlpack {

using Tensor = nanobind::dlpack::dltensor;

struct Version {
  uint32_t major, minor;
};
struct Managed {
  Version version;
  void* context;
  void (*deleter)(Managed*);
  uint64_t flags;
  Tensor tensor;
};
using SetError = void (*)(void* context, const char* kind, const char* message);

struct ExchangeApi {
  Version version;
  const ExchangeApi* previous;  // of an older major version, or null
  // All return 0, or -1 and set an error: allocate() through set_error, the others in Python.
  int (*allocate)(const Tensor* prototype, Managed** out, void* context, SetError set_error);
  int (*from_python)(void* object, Managed** out);
  int (*to_python)(Managed* taken, void** out);
  int (*view)(void* object, Tensor* out);  // null where the library has none
  int (*current_stream)(int32_t device_type, int32_t device, void** out);
};
static_assert(sizeof(Tensor) == 48 && sizeof(Managed) == 80 && sizeof(ExchangeApi) == 56);

}  // namespace invar::python::dlpack
