// A vendor's shared library, found by name where the system looks. The program links none of them: it starts and runs without.
#pragma once

#include <initializer_list>

namespace invar {

// The first of these names that the system knows, kept until the process ends. Null: none of them is here, or this build
// loads no libraries (INVAR_LIBRARIES; static programs).
void* open_library(std::initializer_list<const char*> names);
// A function of it or of what it was linked with; null where there is none of this name.
void* symbol_of(void* library, const char* name);

template <class F>
F* function_of(void* library, const char* name) {
  return reinterpret_cast<F*>(symbol_of(library, name));
}

}  // namespace invar
