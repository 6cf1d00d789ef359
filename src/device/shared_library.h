// Opens vendors' shared libraries by name at run time. The program links none of them, so it runs
// without them.
#pragma once

#include <initializer_list>

namespace invar {

// The first of these libraries that the system finds, loaded until the process ends. Null: none is
// installed, or this build loads no libraries (INVAR_LIBRARIES; static programs).
void* open_library(std::initializer_list<const char*> names);
// A function of the library or of its dependencies; null if there is none of this name.
void* symbol_of(void* library, const char* name);

template <class F>
F* function_of(void* library, const char* name) {
  return reinterpret_cast<F*>(symbol_of(library, name));
}
// Points `function` at it. False: there is none.
template <class F>
bool find_function(void* library, const char* name, F*& function) {
  function = function_of<F>(library, name);
  return function != nullptr;
}

}  // namespace invar
