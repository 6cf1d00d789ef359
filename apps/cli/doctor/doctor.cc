// invar doctor: does this machine, with this build, compute what the specification says?
#include <cstdio>

#include "base/file/disk_reservation.h"
#include "base/file/file.h"
#include "commands.h"
#include "conformance/machine.h"
#include "console.h"
#include "doctor/evidence.h"
#include "doctor/issue_report.h"
#include "generate/verify/verify.h"
#include "outputs/folders.h"
#include "plan/plan.h"
#include "signature/key_file.h"

namespace invar::cli {
namespace {

using conformance::MachineReport;
using json::Value;

constexpr uint64_t kReportBytes = 256 << 10;

Value json_of(const MachineReport& r) {
  Value j = {{"ok", r.examination.findings.empty()},
             {"version", INVAR_VERSION},
             {"numerics", plan::kNumerics},
             {"compiler", conformance::kCompiler},
             {"machine", r.machine},
             {"processor", r.cpu},
             {"cores", r.cores},
             {"gpu", r.has_gpu ? Value(r.gpu) : Value()},
             {"isas", r.isas},
             {"isas_not_here", r.missing},
             {"libraries", r.libraries},
             {"environment_as_found", r.environment_was_good},
             {"seconds", r.seconds},
             {"rows", Value::array},
             {"findings", Value::array}};
  for (const ops::KernelRef k : r.rows)
    j["rows"].add({{"operation", k.op()},
                   {"isa", k.isa()},
                   {"checks", r.examination.checks.at(k)},
                   {"wrong", r.examination.wrong(k)}});
  for (const conformance::Finding& f : r.examination.findings)
    j["findings"].add({{"operation", f.row.op()},
                       {"isa", f.row.isa()},
                       {"case", f.text},
                       {"difference", f.what},
                       {"repeats", f.stable},
                       {"suspicion", conformance::suspicion(r.examination, f.row)}});
  return json::sorted(std::move(j));
}

// What is wrong with the options of the evidence is said before the minute of work.
struct EvidenceInput {
  std::vector<receipt::Receipt> receipts;
  std::vector<signature::PrivateKey> keys;
};
Result<EvidenceInput> evidence_input(const DoctorCommand& c) {
  EvidenceInput input;
  for (const std::string& path : c.model_receipts) {
    INVAR_TRY(input.receipts.emplace_back(), generate::valid_receipt(path));
  }
  for (const std::string& path : c.keys) {
    INVAR_TRY(input.keys.emplace_back(), signature::read_private_key(path));
  }
  return input;
}

// False: it was not wanted.
Result<bool> write_evidence(const DoctorCommand& c, const MachineReport& report, const EvidenceInput& input) {
  if (c.evidence.empty()) return false;
  INVAR_TRY(const std::string text, evidence_text(report, input.receipts, input.keys));
  INVAR_CHECK_OK(write_file(c.evidence, text));
  return true;
}

}  // namespace

int doctor(const DoctorCommand& c) {
  OutputFolders folders;
  if (const Status made = folders.make_above("--report", c.report); !made) return fail(made.error());
  if (const Status made = folders.make_above("--evidence", c.evidence); !made) return fail(made.error());
  const auto input = evidence_input(c);
  if (!input) return fail(input.error());
  DiskReservation space;  // a report that cannot be written is said before the minute of work
  if (!c.report.empty()) {
    auto reserved = DiskReservation::make(c.report, kReportBytes);
    if (!reserved) return fail(reserved.error());
    space = *std::move(reserved);
  }
  Console console(c.json);
  conformance::MachineOptions options = c.options;
  auto examining = console.phase("examine");
  options.progress = [&](size_t done, size_t total) {
    examining->progress(static_cast<int64_t>(done), static_cast<int64_t>(total), "cases");
  };
  const auto report = conformance::examine_machine(options);
  if (!report) return fail(report.error());
  examining->done(std::to_string(report->rows.size()) + " kernels");
  const Value findings = json_of(*report);
  if (!c.report.empty()) {
    space.shrink(0);
    if (const Status written = write_file(c.report, issue_report(findings)); !written)
      return fail(written.error());
    if (console.says_details()) console.note("report", c.report);
  }
  const auto evidence = write_evidence(c, *report, *input);
  if (!evidence) return fail(evidence.error());
  if (*evidence && console.says_details()) console.note("evidence", c.evidence);
  const std::string text =
      c.json ? line_of(findings) : conformance::table(*report, INVAR_VERSION, std::string(plan::kNumerics));
  std::fputs(text.c_str(), stdout);
  if (std::fflush(stdout) != 0) return fail(bad_input("standard output: cannot be written"));
  return report->examination.findings.empty() ? 0 : static_cast<int>(Code::failed);
}

}  // namespace invar::cli
