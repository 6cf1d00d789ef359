// Expectations of every fuzz target about errors.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/status.h"

namespace invar {

[[noreturn]] inline void defect(const std::string& what) {
  std::fprintf(stderr, "DEFECT: %s\n", what.c_str());
  std::abort();
}

// An error of the input's: one line, never a defect of the program.
inline void expect(const Error& e) {
  if (e.code == Code::internal || e.message.empty()) defect("no error of the input's: " + e.message);
  if (e.message.find('\n') != e.message.npos) defect("an error of several lines: " + e.message);
  if (e.message.size() > 4000) defect("a long error: " + e.message);
}

}  // namespace invar
