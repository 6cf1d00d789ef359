// The fuzz loop: mutate, run every row, compare with the reference, shrink failures.
#include "fuzz.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace invar::conformance {

namespace {

InFlight slots[kMostJobs];
std::atomic<int> slots_taken = 0;

RunMode random_run_mode(const Case& c, Random& r, Pool& pool) {
  RunMode m;
  static const std::vector<int> kParts = {1, 1, 2, 3, 5, 8, 0};
  m.parts = r.of(kParts);
  m.reversed = r.one_in(2);
  m.packed = !r.one_in(4);
  if (r.one_in(2)) m.skew = static_cast<int>(r.below(17));
  if (m.packed && r.one_in(3)) m.plain = r.next();
  m.fused = r.one_in(3);
  if (r.one_in(3)) m.pool = &pool, m.parts = std::max(m.parts, 2);
  if (!c.chunks.empty() && r.one_in(2)) m.chunk = std::max<int64_t>(1, r.of(c.chunks));
  if (m.chunk && r.one_in(2)) m.batching = RunMode::Batching::ragged;
  if (m.chunk) m.pages = r.one_in(2);
  return m;
}

void announce(const Subject& s, ops::KernelRef row, const Case& c, const RunMode& m) {
  const std::string text =
      s.op + " --isa " + std::string(row.isa()) + " --manner '" + m.text() + "' --case '" + c.text + "'\n";
  InFlight& to = in_flight();
  const size_t n = std::min(text.size(), sizeof to - 1);
  std::memcpy(to, text.data(), n);
  to[n] = 0;
}

// How the reference runs for a mode: steps of the same lengths, as what a position sees may depend
// on them (attention that is not causal), and each sequence on its own.
RunMode plain_of(const RunMode& m) {
  using Batching = RunMode::Batching;
  return {.chunk = m.chunk, .batching = m.batching == Batching::even ? m.batching : Batching::separate};
}

}  // namespace

InFlight& in_flight() {
  thread_local const int own = slots_taken++ % kMostJobs;
  return slots[own];
}
std::string all_in_flight() {
  std::string all;
  for (int i = 0; i < std::min(slots_taken.load(), kMostJobs); ++i) all += slots[i];
  return all;
}
void write_in_flight(int file) {
  for (const InFlight& slot : slots) (void)!::write(file, slot, std::strlen(slot));
}
bool gpu_is_lost() {
  return gpu() && !(*gpu())->wait();
}

std::string compare(const Subject& s, ops::KernelRef row, const Case& c, const RunMode& m, Tally& tally) {
  const auto inputs = inputs_of(c);
  if (!inputs) return inputs.error().message;
  const RunMode plain = plain_of(m);
  announce(s, s.reference, c, plain);
  const auto expected = execute(s.reference, c, *inputs, plain);
  if (!expected) return "the reference: " + expected.error().message;
  announce(s, row, c, m);
  ++tally.runs;
  return judge(c, execute(row, c, *inputs, m), &*expected);
}

std::optional<RunMode> run_mode_from(const std::string& text, Pool& pool) {
  RunMode m;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(", ", at), text.size());
    std::string part = text.substr(at, end - at);
    at = end + 2;
    if (part.ends_with(" reversed")) m.reversed = true, part.resize(part.size() - 9);
    int number = 0;
    if (part == "one unit at a time")
      m.parts = 0;
    else if (std::sscanf(part.c_str(), "%d parts", &number) == 1)
      m.parts = number;
    else if (part == "constants not packed")
      m.packed = false;
    else if (unsigned long long mask = 0; std::sscanf(part.c_str(), "plain %llx", &mask) == 1)
      m.plain = mask;
    else if (std::sscanf(part.c_str(), "steps of %d", &number) == 1)
      m.chunk = number;
    else if (std::sscanf(part.c_str(), "skewed by %d", &number) == 1)
      m.skew = number;
    else if (part == "ragged")
      m.batching = RunMode::Batching::ragged;
    else if (part == "alone")
      m.batching = RunMode::Batching::separate;
    else if (part == "fused")
      m.fused = true;
    else if (part == "pages")
      m.pages = true;
    else if (part == "at once")
      m.pool = &pool;
    else
      return std::nullopt;
  }
  return m;
}

Case case_of(const Subject& s, uint64_t seed, int64_t limit) {
  Random r(seed);
  const int64_t budget = limit >> r.below(5);  // mostly small ones: quick, and readable when they fail
  return mutated(s.op, r.of(s.cases), r, 1 + static_cast<int>(r.below(5)), std::max<int64_t>(budget, 64));
}

std::optional<Failure> fuzz(const Subject& s, uint64_t seed, int64_t limit, Pool& pool, Tally& tally) {
  const Case c = case_of(s, seed, limit);
  Random r(~seed);
  announce(s, s.reference, c, {});
  ++tally.asked;
  if (!check_huge_shapes(s.op, s.rows, c, r).empty()) ++tally.refused;
  if (!accepted(s.op, c.text, limit)) return std::nullopt;  // a large case that nothing made smaller
  ++tally.cases;
  for (const auto* side : {&c.in, &c.out})
    for (const Tensor& t : *side) tally.elements += t.elements();
  const auto inputs = inputs_of(c);
  if (!inputs) return Failure{s.reference, "the inputs", "", c.text, c.text, inputs.error().message};
  std::optional<Result<std::vector<Bytes>>> expected;
  RunMode plain;
  for (const ops::KernelRef row : s.rows) {
    const RunMode m = random_run_mode(c, r, pool), next = plain_of(m);
    if (!expected || next.chunk != plain.chunk || next.batching != plain.batching) {
      plain = next;
      announce(s, s.reference, c, plain);
      expected = execute(s.reference, c, *inputs, plain);
      if (!*expected)
        return Failure{s.reference, "the reference", plain.text(), c.text, c.text, expected->error().message};
      if (std::string wrong =
              plain.chunk ? std::string() : check_batch_independence(*s.reference, c, *inputs, **expected);
          !wrong.empty())
        return Failure{s.reference, "the reference", plain.text(), c.text, c.text, wrong};
    }
    announce(s, row, c, m);
    ++tally.runs;
    std::string wrong = judge(c, execute(row, c, *inputs, m), &**expected);
    if (wrong.empty()) continue;
    // Simpler cases as long as one of them still fails.
    Failure f{row, std::move(wrong), m.text(), c.text, c.text, ""};
    f.difference = f.what;
    if (row.gpu && gpu_is_lost()) return f;
    Tally ignored;
    for (bool smaller = true; smaller;) {
      smaller = false;
      for (const std::string& text : simpler(f.shrunk)) {
        const auto next = accepted(s.op, text, limit);
        if (!next || (m.chunk && next->chunks.empty())) continue;
        std::string still = compare(s, row, *next, m, ignored);
        if (still.empty()) continue;
        f.shrunk = text, f.difference = std::move(still);
        smaller = ignored.runs < 2000;
        break;
      }
    }
    return f;
  }
  return std::nullopt;
}

}  // namespace invar::conformance
