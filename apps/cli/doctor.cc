// invar doctor: a table of what every kernel row of this build computes on this machine.
#include <sys/utsname.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text/display.h"
#include "base/file/file.h"
#include "base/opset.h"
#include "base/thread_pool.h"
#include "commands.h"
#include "console.h"
#include "conformance/doctor.h"
#include "machine.h"
#include "num/env.h"
#include "kernels/vendor/vendor_kernel.h"
#include "plan/plan.h"

namespace invar::cli {
namespace {

using nlohmann::json;
using namespace conformance;

#if defined(__clang__)
constexpr const char* kCompiler = "clang " __clang_version__;
#else
constexpr const char* kCompiler = "g++ " __VERSION__;
#endif

struct Report {
  std::string machine, cpu;
  int cores = 0;
  std::string gpu;  // its name, size and versions, or why there is none
  bool has_gpu = false;
  bool environment_was_good = false;  // as found: a library may have changed it, and then it is set anew
  std::vector<std::string> isas, missing;
  std::vector<std::string> libraries;  // that weaker operation sets may use; nothing of theirs is checked
  std::vector<const ops::Kernel*> rows;
  Examination examination;
  double seconds = 0;
};

const ops::Kernel* row_of(const Report& r, std::string_view op, std::string_view isa) {
  for (const ops::Kernel* k : r.rows)
    if (k->op == op && k->isa == isa) return k;
  return nullptr;
}

void print_table(const Report& r) {
  std::string sets, missing;
  for (const auto& i : r.isas) sets += " " + i;
  for (const auto& i : r.missing) missing += (missing.empty() ? "; built, but not here: " : " ") + i;
  std::printf("  %-11s invar %s, numerics %s, %s\n", "version", INVAR_VERSION,
              std::string(plan::kNumerics).c_str(), kCompiler);
  std::printf("  %-11s %s (%s), %d core%s\n", "processor", r.cpu.c_str(), r.machine.c_str(), r.cores,
              r.cores == 1 ? "" : "s");
  std::printf("  %-11s %s\n", "GPU", r.gpu.c_str());
  std::printf("  %-11s%s%s\n", "sets", sets.c_str(), missing.c_str());
  std::string libraries;
  for (const auto& l : r.libraries) libraries += (libraries.empty() ? "" : ", ") + l;
  std::printf("  %-11s %s\n", "libraries",
              libraries.empty() ? "none found"
                                : (libraries + "; not checked: no reproducible program uses them").c_str());
  std::printf("  %-11s %s\n\n", "arithmetic",
              r.environment_was_good ? "round to nearest even, gradual underflow"
                                     : "was changed by a library of this process; Invar sets its own");
  std::printf("  %-20s", "operation");
  for (const auto& i : r.isas) std::printf(" %-10s", i.c_str());
  std::printf("\n");
  for (const OpInfo& info : opset()) {
    std::printf("  %-20s", std::string(info.op).c_str());
    for (const auto& i : r.isas) {
      const ops::Kernel* k = row_of(r, info.op, i);
      std::printf(" %-10s", !k ? "-" : r.examination.wrong(*k) ? "DIFFERS" : "ok");
    }
    std::printf("\n");
  }
  std::printf("\n");
  for (const ops::Kernel* k : r.rows) {
    if (!r.examination.wrong(*k)) continue;
    std::printf("%s %s: %s\n", std::string(k->op).c_str(), std::string(k->isa).c_str(),
                suspicion(r.examination, *k).c_str());
    int shown = 0;
    for (const Finding& f : r.examination.findings)
      if (f.row == k && ++shown <= 3)
        std::printf("  %s: %s\n", excerpt(f.text).c_str(), printable(f.what).c_str());
    if (shown > 3) std::printf("  and %d more\n", shown - 3);
  }
  const size_t bad = r.examination.findings.size();
  int64_t checks = 0;
  for (const auto& [row, count] : r.examination.checks) checks += count;
  std::printf("%s  %zu rows, %lld checks, %zu differ (%.1f s)\n", bad ? "NOT SOUND" : "SOUND", r.rows.size(),
              static_cast<long long>(checks), bad, r.seconds);
}

void print_json(const Report& r) {
  json j = {{"ok", r.examination.findings.empty()},
            {"version", INVAR_VERSION},
            {"numerics", plan::kNumerics},
            {"compiler", kCompiler},
            {"machine", r.machine},
            {"processor", r.cpu},
            {"cores", r.cores},
            {"gpu", r.has_gpu ? json(r.gpu) : json(nullptr)},
            {"isas", r.isas},
            {"isas_not_here", r.missing},
            {"libraries", r.libraries},
            {"environment_as_found", r.environment_was_good},
            {"seconds", r.seconds},
            {"rows", json::array()},
            {"findings", json::array()}};
  for (const ops::Kernel* k : r.rows)
    j["rows"].push_back({{"operation", k->op},
                         {"isa", k->isa},
                         {"checks", r.examination.checks.at(k)},
                         {"wrong", r.examination.wrong(*k)}});
  for (const Finding& f : r.examination.findings)
    j["findings"].push_back({{"operation", f.row->op},
                             {"isa", f.row->isa},
                             {"case", f.text},
                             {"difference", f.what},
                             {"repeats", f.stable},
                             {"suspicion", suspicion(r.examination, *f.row)}});
  std::fputs(line_of(j).c_str(), stdout);
}

Result<Report> examine_machine(const DoctorCommand& c) {
  const auto start = std::chrono::steady_clock::now();
  Report r;
  utsname host{};
  uname(&host);
  r.machine = host.machine;
  r.cpu = processor();
  r.cores = available_cores();
  r.environment_was_good = c.environment_was_good;
  std::set<std::string> missing;
  for (const ops::Kernel* k : ops::kernels()) {
    if (ops::find(k->op, k->isa) == k && (!k->enqueue || gpu()))
      r.rows.push_back(k);
    else
      missing.emplace(k->isa);
  }
  r.missing.assign(missing.begin(), missing.end());
  for (std::string_view i : ops::isas()) r.isas.emplace_back(i);
  if (const auto device = gpu()) {
    r.gpu = describe((*device)->info()), r.has_gpu = true;
    r.isas.insert(r.isas.end() - 1, std::string(ops::kCuda));
  } else {
    r.gpu = "none: " + device.error().message;
  }
  std::vector<Room> rooms;
  for (const OpInfo& info : opset()) {
    INVAR_TRY(Room room, read_room(info, c.rooms));
    rooms.push_back(std::move(room));
  }
  Pool pool(c.threads ? c.threads : std::min(r.cores, 64), [](const std::function<void()>& work) {
    const num::ArithmeticEnv env;
    work();
  });
  do {
    r.examination.add(examine(r.rows, rooms, pool));
    r.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  } while (r.seconds < c.soak);
  // After the examination: loading one runs its code.
  std::set<std::string> libraries;
  for (const ops::VendorRow* row : ops::vendor_rows())
    if (const std::string& version = row->library->version(); !version.empty())
      libraries.insert(std::string(row->library->name) + " " + version);
  r.libraries.assign(libraries.begin(), libraries.end());
  return r;
}

}  // namespace

int doctor(const DoctorCommand& c) {
  const auto report = examine_machine(c);
  if (!report) return fail(report.error());
  if (c.json)
    print_json(*report);
  else
    print_table(*report);
  if (std::fflush(stdout) != 0) return fail(bad_input("standard output: cannot be written"));
  return report->examination.findings.empty() ? 0 : static_cast<int>(Code::failed);
}

}  // namespace invar::cli
