// The report of `invar doctor` about a machine.
#include <cstdarg>
#include <cstdio>

#include "base/opset.h"
#include "base/text/display.h"
#include "conformance/machine.h"

namespace invar::conformance {
namespace {

ops::KernelRef row_of(const MachineReport& r, std::string_view op, std::string_view isa) {
  for (const ops::KernelRef k : r.rows)
    if (k.op() == op && k.isa() == isa) return k;
  return {};
}

// Appends what printf would print.
[[gnu::format(printf, 2, 3)]] void add(std::string& text, const char* format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  const int size = std::vsnprintf(nullptr, 0, format, arguments);
  va_end(arguments);
  const size_t end = text.size();
  text.resize(end + static_cast<size_t>(size));
  std::vsnprintf(text.data() + end, static_cast<size_t>(size) + 1, format, again);
  va_end(again);
}

}  // namespace

std::string table(const MachineReport& r, const std::string& version, const std::string& numerics) {
  std::string text, sets, missing;
  for (const auto& i : r.isas) sets += " " + i;
  for (const auto& i : r.missing) missing += (missing.empty() ? "; built, but not here: " : " ") + i;
  add(text, "  %-11s invar %s, numerics %s, %s\n", "version", version.c_str(), numerics.c_str(), kCompiler);
  add(text, "  %-11s %s (%s), %d core%s\n", "processor", r.cpu.c_str(), r.machine.c_str(), r.cores,
      r.cores == 1 ? "" : "s");
  add(text, "  %-11s %s\n", "GPU", r.gpu.c_str());
  add(text, "  %-11s%s%s\n", "sets", sets.c_str(), missing.c_str());
  std::string libraries;
  for (const auto& l : r.libraries) libraries += (libraries.empty() ? "" : ", ") + l;
  add(text, "  %-11s %s\n", "libraries",
      libraries.empty() ? "none found"
                        : (libraries + "; not checked: no reproducible program uses them").c_str());
  add(text, "  %-11s %s\n\n", "arithmetic",
      r.environment_was_good ? "round to nearest even, gradual underflow"
                             : "was changed by a library of this process; Invar sets its own");
  add(text, "  %-20s", "operation");
  for (const auto& i : r.isas) add(text, " %-10s", i.c_str());
  add(text, "\n");
  for (const OpInfo& info : opset()) {
    add(text, "  %-20s", std::string(info.op).c_str());
    for (const auto& i : r.isas) {
      const ops::KernelRef k = row_of(r, info.op, i);
      add(text, " %-10s", !k ? "-" : r.examination.wrong(k) ? "DIFFERS" : "ok");
    }
    add(text, "\n");
  }
  add(text, "\n");
  for (const ops::KernelRef k : r.rows) {
    if (!r.examination.wrong(k)) continue;
    add(text, "%s %s: %s\n", std::string(k.op()).c_str(), std::string(k.isa()).c_str(),
        suspicion(r.examination, k).c_str());
    int shown = 0;
    for (const Finding& f : r.examination.findings)
      if (f.row == k && ++shown <= 3)
        add(text, "  %s: %s\n", excerpt(f.text).c_str(), printable(f.what).c_str());
    if (shown > 3) add(text, "  and %d more\n", shown - 3);
  }
  const size_t bad = r.examination.findings.size();
  int64_t checks = 0;
  for (const auto& [row, count] : r.examination.checks) checks += count;
  add(text, "%s  %zu rows, %lld checks, %zu differ (%.1f s)\n", bad ? "NOT SOUND" : "SOUND", r.rows.size(),
      static_cast<long long>(checks), bad, r.seconds);
  return text;
}

}  // namespace invar::conformance
