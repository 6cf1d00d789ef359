// Opens shared libraries with dlopen, see shared_library.h.
#include "device/shared_library.h"

#ifdef INVAR_LIBRARIES
#include <dlfcn.h>
#endif

namespace invar {

#ifdef INVAR_LIBRARIES
void* open_library(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  return nullptr;
}

void* symbol_of(void* library, const char* name) {
  return dlsym(library, name);
}
#else
void* open_library(std::initializer_list<const char*>) {
  return nullptr;
}

void* symbol_of(void*, const char*) {
  return nullptr;
}
#endif

}  // namespace invar
