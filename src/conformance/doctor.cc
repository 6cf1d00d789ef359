// Runs the doctor's cases over a thread pool and interprets the findings.
#include "conformance/doctor.h"

#include <algorithm>
#include <atomic>

#include "num/env.h"

namespace invar::conformance {
namespace {

struct CaseJob {
  CaseJob(const Room& r, const Case& one, bool v) : room(&r), c(&one), vector(v) {}
  const Room* room;
  const Case* c;
  bool vector;  // outputs are written out; else there is a digest
  std::vector<ops::KernelRef> checked;
  std::vector<Finding> findings;
};

// A wrong kernel repeats its wrong bits; faulty hardware gives different bits each time.
bool repeats(ops::KernelRef row, const Case& c, const std::vector<Bytes>& inputs, const RunMode& mode,
             const Result<std::vector<Bytes>>& first) {
  for (int i = 0; i < 3; ++i) {
    const auto again = execute(row, c, inputs, mode);
    if (bool(again) != bool(first) || (again && *again != *first)) return false;
  }
  return true;
}

void examine(CaseJob& job, std::span<const ops::KernelRef> rows) {
  const Case& c = *job.c;
  const auto inputs = inputs_of(c);
  const auto outputs = job.vector ? outputs_of(c) : Result<std::vector<Bytes>>(std::vector<Bytes>());
  for (const ops::KernelRef row : rows) {
    if (row.op() != job.room->op) continue;
    job.checked.push_back(row);
    if (!inputs || !outputs) {
      job.findings.push_back({row, c.text, (inputs ? outputs : inputs).error().message});
      continue;
    }
    // Vectors are small: run in one part and in several. Digests cover larger outputs.
    for (const RunMode& mode : {RunMode{}, RunMode{.parts = 3, .reversed = true}}) {
      if (mode.parts > 1 && !job.vector) break;
      const auto found = execute(row, c, *inputs, mode);
      std::string wrong = judge(c, found, job.vector ? &*outputs : nullptr);
      if (wrong.empty()) continue;
      job.findings.push_back({row, c.text, std::move(wrong), repeats(row, c, *inputs, mode, found)});
      break;
    }
  }
}

}  // namespace

int64_t Examination::wrong(ops::KernelRef row) const {
  return std::count_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.row == row; });
}

void Examination::add(Examination more) {
  for (const auto& [row, count] : more.checks) checks[row] += count;
  std::move(more.findings.begin(), more.findings.end(), std::back_inserter(findings));
}

Examination examine(std::span<const ops::KernelRef> rows, std::span<const Room> rooms, Pool& pool,
                    const CaseProgress& progress) {
  std::vector<CaseJob> jobs;
  for (const Room& room : rooms) {
    for (const Case& c : room.vectors) jobs.emplace_back(room, c, true);
    for (const Case& c : room.golden) jobs.emplace_back(room, c, false);
  }
  std::atomic<size_t> next{0}, done{0};
  pool.run(pool.threads(), [&](int worker, int64_t, int64_t) {
    const num::ArithmeticEnv env;
    for (size_t i; (i = next.fetch_add(1)) < jobs.size();) {
      examine(jobs[i], rows);
      const size_t count = done.fetch_add(1) + 1;
      if (worker == 0 && progress) progress(count, jobs.size());
    }
  });
  Examination result;
  for (CaseJob& job : jobs) {
    for (const ops::KernelRef row : job.checked) ++result.checks[row];
    std::move(job.findings.begin(), job.findings.end(), std::back_inserter(result.findings));
  }
  return result;
}

std::string suspicion(const Examination& e, ops::KernelRef row) {
  bool others = false, same_set = false;
  for (const Finding& f : e.findings) {
    if (f.row == row && !f.stable)
      return "other bits each time: faulty processor or memory; do not trust this machine";
    others |= f.row.op() == row.op() && f.row != row;
    same_set |= f.row.isa() == row.isa() && f.row.op() != row.op();
  }
  if (others) return "several instruction sets differ alike: damaged program, or a build of another version";
  if (same_set)
    return "several operations differ with " + std::string(row.isa()) +
           " alone: compiled with wrong flags, or this processor's instructions are faulty";
  return "this row alone: compiled wrongly, or one of its instructions is faulty; other rows can be forced "
         "with "
         "--isa";
}

}  // namespace invar::conformance
