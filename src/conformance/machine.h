// `invar doctor` as a library: all rows of this build on this machine, examined, and what is said
// of it.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "conformance/doctor.h"

namespace invar::conformance {

// The compiler of this build.
#if defined(__clang__)
inline constexpr const char* kCompiler = "clang " __clang_version__;
#else
inline constexpr const char* kCompiler = "g++ " __VERSION__;
#endif

struct MachineOptions {
  std::string rooms;                 // the rooms' texts from this folder; "" = those of the build
  int threads = 0;                   // 0 = one per core
  double soak = 0;                   // seconds to go on checking
  bool environment_was_good = true;  // of the main thread, before Invar set it
  CaseProgress progress = {};
};

struct MachineReport {
  std::string machine, cpu;
  int cores = 0;
  std::string gpu;  // its name, size and versions, or why there is none
  bool has_gpu = false;
  bool environment_was_good = false;  // as found: a library may have changed it, and then it is set anew
  std::vector<std::string> isas, missing;
  std::vector<std::string> libraries;  // that weaker operation sets may use; nothing of theirs is checked
  std::vector<ops::KernelRef> rows;
  Examination examination;
  double seconds = 0;
};

Result<MachineReport> examine_machine(const MachineOptions&);

// The report as a table of text. `version` is that of Invar.
std::string table(const MachineReport&, const std::string& version, const std::string& numerics);

}  // namespace invar::conformance
