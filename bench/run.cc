// Measures items on the CPU in alternation with the peer.
#include "bench/run.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "base/thread_pool.h"
#include "bench/timing.h"
#include "num/env.h"
#include "run/eager.h"

namespace invar::bench {
namespace {

// Many short samples: on a shared machine some of them are undisturbed.
constexpr double kSampleSeconds = 0.002;
constexpr double kLeastSamples = 5, kMostSamples = 201;
constexpr int64_t kMostCpuCalls = 1000000;
// Between the sides, where there are several threads: long enough for waiting threads of the other
// process to stop spinning.
constexpr auto kPause = std::chrono::milliseconds(4);

int64_t calls_in(double seconds, double one, int64_t most) {
  return std::clamp<int64_t>(static_cast<int64_t>(seconds / std::max(one, 1e-9)), 1, most);
}

// Seconds per call, `calls` in a row after one that is not counted.
double time_calls(const Subject& s, Pool& pool, int64_t calls) {
  s.run(pool);
  const double start = now();
  for (int64_t c = 0; c < calls; ++c) s.run(pool);
  return (now() - start) / static_cast<double>(calls);
}

struct Measured {
  Row row;
  Bytes bytes;
};

Result<Measured> measure_one(const Item& item, const ops::CpuKernel& kernel, Pool& pool, Peaks& peaks,
                             Peer* peer, double seconds) {
  Row row = row_of(item, kernel.isa);
  row.threads = pool.threads();
  INVAR_TRY(Subject subject, Subject::make(item, &kernel, pool.threads()));
  row.bytes = static_cast<double>(subject.working_set());
  const Bytes bytes(subject);
  if (row.flops > 0) peaks.flops(pool);
  if (bytes.copied > 0) peaks.bytes(pool, Traffic::copy, bytes.working_set);
  if (bytes.rest > 0) peaks.bytes(pool, bytes.kind, bytes.working_set);
  if (peer) {
    INVAR_TRY(row.peer, peer->prepare(item, pool.threads(), 1));
  }
  const bool both = !row.peer.empty();
  std::this_thread::sleep_for(kPause);
  INVAR_CHECK_OK(take_turns(
      row, [&](int64_t calls) -> Result<double> { return time_calls(subject, pool, calls); },
      both ? peer : nullptr, seconds, kMostCpuCalls,
      both&& row.threads > 1 ? kPause : std::chrono::milliseconds(0)));
  return Measured{std::move(row), bytes};
}

struct Work {
  const Item* item;
  const ops::CpuKernel* kernel;
};

// What the report lacks of these items.
std::vector<Work> not_in(const Report& report, const std::vector<Item>& items, const std::string& isa,
                         int threads) {
  std::vector<Work> left;
  for (const Item& item : items) {
    const ops::CpuKernel* kernel = ops::find_cpu_kernel(item.op, isa);
    if (!kernel) kernel = ops::find_cpu_kernel(item.op, "reference");  // nothing to vectorise
    Row row = row_of(item, kernel->isa);
    row.threads = threads;
    if (!report.has(row)) left.push_back({&item, kernel});
  }
  return left;
}

// The report with what was measured since, against the limits that are the best of the whole run.
Report with(Report report, const std::vector<Measured>& measured, const Peaks& peaks, const std::string& isa,
            int threads) {
  const auto same = [&](const Limit& l) { return l.isa == isa && l.threads == threads; };
  auto limit = std::find_if(report.limits.begin(), report.limits.end(), same);
  if (limit == report.limits.end()) limit = report.limits.insert(limit, Limit{isa, threads, 0, 0, 0});
  limit->flops = std::max(limit->flops, peaks.known_flops(threads));
  limit->read = std::max(limit->read, peaks.known_bytes(threads, Traffic::read, Peaks::kOutOfCache));
  limit->copy = std::max(limit->copy, peaks.known_bytes(threads, Traffic::copy, Peaks::kOutOfCache));
  for (Measured m : measured) {
    const auto rate = [&](Traffic t) { return peaks.known_bytes(threads, t, m.bytes.working_set); };
    bound(m.row, m.bytes, peaks.known_flops(threads), rate(Traffic::copy), rate(m.bytes.kind));
    report.rows.push_back(std::move(m.row));
  }
  return report;
}

Result<std::vector<std::string>> isas_of(const Settings& s) {
  if (s.isas.empty()) return std::vector<std::string>{std::string(ops::isas().front())};
  for (const std::string& isa : s.isas) INVAR_CHECK_OK(run::check_isa(isa));
  return s.isas;
}

Result<std::vector<Item>> items_for(const Settings& s) {
  if (s.shape.empty()) return choose(s.suites, s.op, s.device == "cpu" ? "cpu" : "cuda");
  if (s.op.empty()) return bad_input("--shape needs --op: whose call is it?");
  if (!ops::contract_of(s.op)) return bad_input("no operation '" + s.op + "': spec/opset.toml lists them");
  return items_of(s.op, s.shape, "--shape");
}

}  // namespace

bool Report::has(const Row& row) const {
  return std::any_of(rows.begin(), rows.end(), [&](const Row& r) {
    return r.suite == row.suite && r.op == row.op && r.text == row.text && r.isa == row.isa &&
           r.threads == row.threads;
  });
}

Status Report::begin(const std::string& on, const std::string& beside) {
  if (!rows.empty() && (device != on || peer != beside))
    return bad_input("--publish: the file has measurements of " + device + " beside " +
                     (peer.empty() ? "no peer" : peer) + ": name another file for those of " + on +
                     " beside " + (beside.empty() ? "no peer" : beside));
  device = on, peer = beside;
  return {};
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

Row row_of(const Item& item, std::string_view isa) {
  Row row;
  row.suite = item.suite, row.op = item.op, row.shape = item.shape(), row.text = item.call.text;
  row.isa = std::string(isa), row.flops = static_cast<double>(item.flops);
  for (const auto& t : item.call.out) row.elements += static_cast<double>(t.elements());
  if (item.past)
    row.elements *= 1 - static_cast<double>(item.past) / static_cast<double>(item.call.out[0].shape[1]);
  return row;
}

void bound(Row& row, const Bytes& b, double flops, double copy, double rest) {
  const double t = (b.copied > 0 ? b.copied / copy : 0) + (b.rest > 0 ? b.rest / rest : 0);
  const double f = row.flops > 0 ? row.flops / flops : 0;
  row.limit_seconds = std::max(t, f);
  row.by_flops = f > t;
}

Status take_turns(Row& row, const std::function<Result<double>(int64_t)>& ours, Peer* peer, double seconds,
                  int64_t most_calls, std::chrono::milliseconds pause) {
  INVAR_TRY(double once, ours(1));
  INVAR_TRY(const double again, ours(1));
  once = std::min(once, again);
  const int64_t calls = calls_in(kSampleSeconds, once, most_calls);
  double round = once * static_cast<double>(calls);  // seconds of a sample of each side
  int64_t peer_calls = 1;
  if (peer) {
    INVAR_TRY(once, peer->time(1));
    peer_calls = calls_in(kSampleSeconds, once, most_calls);
    round += once * static_cast<double>(peer_calls) + std::chrono::duration<double>(pause).count();
  }
  const int samples = static_cast<int>(std::clamp(seconds / round, kLeastSamples, kMostSamples));
  std::vector<double> mine, theirs;
  for (int i = 0; i < samples; ++i) {
    std::this_thread::sleep_for(pause);
    INVAR_TRY(const double m, ours(calls));
    mine.push_back(m);
    if (!peer) continue;
    INVAR_TRY(const double t, peer->time(peer_calls));
    theirs.push_back(t);
  }
  row.seconds = median(mine), row.best_seconds = *std::min_element(mine.begin(), mine.end());
  if (peer) {
    row.peer_seconds = median(theirs);
    row.peer_best_seconds = *std::min_element(theirs.begin(), theirs.end());
  }
  return {};
}

Status measure(const Settings& s, Report& report, const Progress& progress, const Keep& keep) {
  INVAR_TRY(const std::vector<Item> items, items_for(s));
  for (const Item& item : items) {
    INVAR_TRY(const std::string wrong, refusal(item));
    if (!wrong.empty()) return bad_input(item.op + " requires " + wrong + ": " + item.call.text);
  }
  if (s.device != "cpu") return measure_on_device(s, items, report, progress, keep);
  INVAR_TRY(const std::vector<std::string> isas, isas_of(s));
  std::vector<int> threads = s.threads;
  if (threads.empty()) {
    threads.push_back(1);
    if (const int all = std::min(available_cores(), kMaxThreads); all > 1) threads.push_back(all);
  }
  for (int t : threads)
    if (t < 1 || t > kMaxThreads) return bad_input("--threads: 1 to " + std::to_string(kMaxThreads));
  if (items.empty()) return report.begin(s.device, report.peer);
  std::optional<Peer> peer;
  if (!s.peer.empty()) {
    INVAR_TRY(Peer started, Peer::start(s.peer, s.python, source_root()));
    peer.emplace(std::move(started));
  }
  INVAR_CHECK_OK(report.begin(s.device, peer ? peer->version() : ""));
  num::ArithmeticEnv env;
  std::vector<Peaks> peaks;
  for (const std::string& isa : isas) peaks.emplace_back(isa);
  const size_t total = items.size() * isas.size() * threads.size();
  size_t done = 0;
  for (int n : threads) {
    Pool pool(n, [](const std::function<void()>& work) {
      num::ArithmeticEnv worker;
      work();
    });
    for (size_t i = 0; i < isas.size(); ++i) {
      const std::vector<Work> left = not_in(report, items, isas[i], n);
      done += items.size() - left.size();
      if (left.empty()) continue;
      progress(done, total, "the machine's peaks");
      peaks[i].flops(pool);
      for (const Traffic t : {Traffic::read, Traffic::copy}) peaks[i].bytes(pool, t, Peaks::kOutOfCache);
      std::vector<Measured> measured;
      const Report before = report;
      for (const Work& work : left) {
        progress(done++, total, work.item->op + " " + work.item->shape());
        INVAR_TRY(Measured m,
                  measure_one(*work.item, *work.kernel, pool, peaks[i], peer ? &*peer : nullptr, s.seconds));
        measured.push_back(std::move(m));
        report = with(before, measured, peaks[i], isas[i], n);
        INVAR_CHECK_OK(keep(report));
      }
    }
  }
  return {};
}

}  // namespace invar::bench
