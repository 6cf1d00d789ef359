// invar_fuzz: random cases of every room, every row against the reference (README.md).
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "base/file/file.h"
#include "base/opset.h"
#include "fuzz.h"
#include "num/env.h"

namespace invar::conformance {
namespace {

struct Options {
  uint64_t begin = 0, end = 2000;
  int64_t limit = 1 << 14;
  std::string rooms, op, isa, state, text, manner = "1 parts";
  bool show = false;  // every case
};

volatile std::sig_atomic_t stop = 0;

void on_stop(int) {
  stop = 1;
}
void on_crash(int signal) {
  const char before[] = "FAIL crashed in: invar_fuzz --op ";
  (void)!::write(STDERR_FILENO, before, sizeof before - 1);
  (void)!::write(STDERR_FILENO, in_flight, std::strlen(in_flight));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

Result<std::vector<Subject>> subjects(const Options& o) {
  std::vector<Subject> list;
  for (const OpInfo& info : opset()) {
    if (!o.op.empty() && o.op != info.op) continue;
    INVAR_TRY(Room room, read_room(info, o.rooms));
    Subject s{room.op, ops::find_cpu_kernel(room.op, "reference"), {}, std::move(room.cases)};
    std::erase_if(s.cases, [](const Case& c) {  // written values do not follow a shape
      bool written = false;
      for (const Tensor& t : c.in) written |= !t.bits.empty();
      return written;
    });
    for (const ops::KernelRef k : ops::runnable_kernels(s.op, bool(gpu())))
      if (o.isa.empty() || o.isa == k.isa()) s.rows.push_back(k);
    if (s.reference && !s.rows.empty() && !s.cases.empty()) list.push_back(std::move(s));
  }
  if (list.empty()) return bad_input("no such operation or instruction set here");
  return list;
}

int report(const Subject& s, const Failure& f, const std::string& seed) {
  std::printf(
      "FAIL %s %s%s (%s): %s\n     %s\n     again: invar_fuzz --op %s --isa %s --manner '%s' --case '%s'\n   "
      "  %s\n",
      s.op.c_str(), std::string(f.row.isa()).c_str(), seed.c_str(), f.manner.c_str(), f.what.c_str(),
      f.text.c_str(), s.op.c_str(), std::string(f.row.isa()).c_str(), f.manner.c_str(), f.shrunk.c_str(),
      f.difference.c_str());
  std::fflush(stdout);
  return 1;
}

int one_case(const Options& o, const std::vector<Subject>& list, Pool& pool) {
  const auto manner = run_mode_from(o.manner, pool);
  if (list.size() != 1 || !manner)
    return std::printf("--case needs --op, and --manner as it was printed\n"), 2;
  const auto c = accepted(list[0].op, o.text, int64_t{1} << 40);
  if (!c) return std::printf("not a case that the room takes: %s\n", o.text.c_str()), 2;
  Tally tally;
  for (const ops::KernelRef row : list[0].rows)
    if (const std::string wrong = compare(list[0], row, *c, *manner, tally); !wrong.empty())
      return report(list[0], {row, wrong, o.manner, o.text, o.text, wrong}, "");
  std::printf("equal\n");
  return 0;
}

int run(Options o) {
  if (!num::arithmetic_env_ok())
    return std::printf("this thread does not compute IEEE arithmetic as specified\n"), 70;
  const auto list = subjects(o);
  if (!list) return std::printf("%s\n", list.error().message.c_str()), 2;
  Pool pool(3, [](const std::function<void()>& work) {
    const num::ArithmeticEnv env;
    work();
  });
  if (!o.text.empty()) return one_case(o, *list, pool);
  if (const auto seen = o.state.empty() ? Result<std::string>(std::string()) : read_file(o.state);
      seen && !seen->empty())
    o.begin = std::max<uint64_t>(o.begin, std::stoull(*seen));
  Tally tally;
  int failures = 0;
  const auto start = std::chrono::steady_clock::now();
  uint64_t seed = o.begin;
  for (; seed < o.end && !stop && failures < 10; ++seed) {
    const Subject& s = (*list)[Random(~seed).below(list->size())];
    if (o.show)
      std::printf("%llu %s: %s\n", static_cast<unsigned long long>(seed), s.op.c_str(),
                  case_of(s, seed, o.limit).text.c_str());
    if (const auto f = fuzz(s, seed, o.limit, pool, tally))
      failures += report(s, *f, " seed " + std::to_string(seed));
    if (!o.state.empty() && seed % 1000 == 999 && !failures)
      (void)write_file(o.state, std::to_string(seed + 1) + "\n");
  }
  const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf(
      "seeds %llu to %llu: %zu operations, %lld cases, %lld runs, %lld elements; too much asked %lld times, "
      "refused %lld; %d failures (%.1f s)\n",
      static_cast<unsigned long long>(o.begin), static_cast<unsigned long long>(seed), list->size(),
      static_cast<long long>(tally.cases), static_cast<long long>(tally.runs),
      static_cast<long long>(tally.elements), static_cast<long long>(tally.asked),
      static_cast<long long>(tally.refused), failures, s);
  if (stop)
    std::printf("stopped; go on with --seeds %llu:%llu\n", static_cast<unsigned long long>(seed),
                static_cast<unsigned long long>(o.end));
  return failures ? 1 : stop ? 130 : 0;
}

}  // namespace
}  // namespace invar::conformance

int main(int argc, char** argv) {
  using namespace invar::conformance;
  Options o;
  bool good = argc % 2 == 1;
  for (int i = 1; good && i + 1 < argc; i += 2) {
    const std::string a = argv[i], v = argv[i + 1];
    unsigned long long begin, end;
    if (a == "--seeds" && std::sscanf(v.c_str(), "%llu:%llu", &begin, &end) == 2)
      o.begin = begin, o.end = end;
    else if (a == "--op")
      o.op = v;
    else if (a == "--isa")
      o.isa = v;
    else if (a == "--limit" && std::atoll(v.c_str()) > 0)
      o.limit = std::atoll(v.c_str());
    else if (a == "--rooms")
      o.rooms = v;
    else if (a == "--show" && (v == "yes" || v == "no"))
      o.show = v == "yes";
    else if (a == "--state")
      o.state = v;
    else if (a == "--case")
      o.text = v;
    else if (a == "--manner")
      o.manner = v;
    else
      good = false;
  }
  if (!good) {
    std::printf(
        "usage: invar_fuzz [--seeds BEGIN:END] [--op OP] [--isa ISA] [--limit ELEMENTS] [--state FILE] "
        "[--rooms FOLDER] [--show yes]\n"
        "       invar_fuzz --op OP [--isa ISA] --case TEXT [--manner TEXT]\n");
    return 2;
  }
  for (int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(s, on_crash);
  for (int s : {SIGINT, SIGTERM}) std::signal(s, on_stop);
  const invar::num::ArithmeticEnv env;
  return run(std::move(o));
}
