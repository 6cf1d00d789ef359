// invar_fuzz: random cases of every room, every row against the reference (README.md).
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>

#include "base/file/file.h"
#include "base/opset.h"
#include "fuzz.h"
#include "num/env.h"

namespace invar::conformance {
namespace {

struct Options {
  uint64_t begin = 0, end = 2000;
  int64_t limit = 1 << 14;
  int jobs = 1;  // threads
  std::string rooms, op, isa, state, text, manner = "1 parts";
  bool show = false;   // every case
  bool apart = false;  // allocations on a GPU
};

volatile std::sig_atomic_t stop = 0;

// The first signal ends the run after the cases in flight. A second one says which they are: one of
// them does not end.
void on_stop(int signal) {
  if (stop) {
    write_in_flight(STDERR_FILENO);
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  stop = 1;
}
void on_crash(int signal) {
  const char before[] = "FAIL crashed in: invar_fuzz --op ";
  (void)!::write(STDERR_FILENO, before, sizeof before - 1);
  const InFlight& own = in_flight();
  (void)!::write(STDERR_FILENO, own, std::strlen(own));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

bool is_listed(const std::string& list, std::string_view name) {  // "a,b"
  return ("," + list + ",").find("," + std::string(name) + ",") != std::string::npos;
}

Result<std::vector<Subject>> subjects(const Options& o) {
  std::vector<Subject> list;
  for (const OpInfo& info : opset()) {
    if (!o.op.empty() && !is_listed(o.op, info.op)) continue;
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

// Reports a failure, once: after a GPU is lost every case fails, on every thread.
int report_once(const Subject& s, const Failure& f, uint64_t seed) {
  static std::mutex one;
  const std::lock_guard hold(one);
  if (stop) return 0;
  report(s, f, " seed " + std::to_string(seed));
  if (!f.row.gpu || !gpu_is_lost()) return 1;
  stop = 1;
  std::printf("The GPU is lost to this process. One of these did it:\n%s", all_in_flight().c_str());
  return 1;
}

// The seeds [begin, end), shared out among the threads. Returns the first that did not run.
uint64_t run_seeds(const Options& o, const std::vector<Subject>& list, uint64_t begin, uint64_t end,
                   std::vector<std::unique_ptr<Pool>>& pools, Tally& all, std::atomic<int>& failures) {
  std::atomic<uint64_t> next = begin;
  std::mutex counting;
  auto work = [&](Pool& pool) {
    const num::ArithmeticEnv env;
    Tally own;
    for (uint64_t seed; !stop && failures < 10 && (seed = next++) < end;) {
      const Subject& s = list[Random(~seed).below(list.size())];
      if (o.show)
        std::printf("%llu %s: %s\n", static_cast<unsigned long long>(seed), s.op.c_str(),
                    case_of(s, seed, o.limit).text.c_str());
      if (const auto f = fuzz(s, seed, o.limit, pool, own)) failures += report_once(s, *f, seed);
    }
    const std::lock_guard hold(counting);
    all.cases += own.cases, all.runs += own.runs, all.elements += own.elements;
    all.asked += own.asked, all.refused += own.refused;
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < pools.size(); ++i) others.emplace_back([&, i] { work(*pools[i]); });
  work(*pools[0]);
  for (std::thread& t : others) t.join();
  return std::min(next.load(), end);
}

int run(Options o) {
  if (!num::arithmetic_env_ok())
    return std::printf("this thread does not compute IEEE arithmetic as specified\n"), 70;
  const auto list = subjects(o);
  if (!list) return std::printf("%s\n", list.error().message.c_str()), 2;
  if (o.apart) allocate_apart();
  std::vector<std::unique_ptr<Pool>> pools;  // of each thread, for kernels in parts at once
  for (int i = 0; i < o.jobs; ++i)
    pools.push_back(std::make_unique<Pool>(3, [](const std::function<void()>& work) {
      const num::ArithmeticEnv env;
      work();
    }));
  if (!o.text.empty()) return one_case(o, *list, *pools[0]);
  if (const auto seen = o.state.empty() ? Result<std::string>(std::string()) : read_file(o.state);
      seen && !seen->empty())
    o.begin = std::max<uint64_t>(o.begin, std::stoull(*seen));
  Tally tally;
  std::atomic<int> failures = 0;
  const auto start = std::chrono::steady_clock::now();
  uint64_t seed = o.begin;
  while (seed < o.end && !stop && failures < 10) {
    const uint64_t next = o.state.empty() ? o.end : std::min(o.end, seed / 1000 * 1000 + 1000);
    seed = run_seeds(o, *list, seed, next, pools, tally, failures);
    if (!o.state.empty() && seed % 1000 == 0 && !failures && !stop)
      (void)write_file(o.state, std::to_string(seed) + "\n");
  }
  const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf(
      "seeds %llu to %llu: %zu operations, %lld cases, %lld runs, %lld elements; too much asked %lld times, "
      "refused %lld; %d failures (%.1f s)\n",
      static_cast<unsigned long long>(o.begin), static_cast<unsigned long long>(seed), list->size(),
      static_cast<long long>(tally.cases), static_cast<long long>(tally.runs),
      static_cast<long long>(tally.elements), static_cast<long long>(tally.asked),
      static_cast<long long>(tally.refused), failures.load(), s);
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
    else if (a == "--jobs" && std::atoi(v.c_str()) > 0 && std::atoi(v.c_str()) <= kMostJobs)
      o.jobs = std::atoi(v.c_str());
    else if (a == "--apart" && (v == "yes" || v == "no"))
      o.apart = v == "yes";
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
        "usage: invar_fuzz [--seeds BEGIN:END] [--op OP,...] [--isa ISA] [--limit ELEMENTS] [--jobs "
        "THREADS]\n"
        "                  [--state FILE] [--rooms FOLDER] [--show yes] [--apart yes]\n"
        "       invar_fuzz --op OP [--isa ISA] --case TEXT [--manner TEXT]\n");
    return 2;
  }
  for (int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(s, on_crash);
  for (int s : {SIGINT, SIGTERM}) std::signal(s, on_stop);
  const invar::num::ArithmeticEnv env;
  return run(std::move(o));
}
