#include "run.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "base/pool.h"
#include "num/env.h"
#include "subject.h"

namespace invar::bench {
namespace {

// Many short samples: on a shared machine some of them are undisturbed.
constexpr double kSampleSeconds = 0.002;
constexpr double kLeastSamples = 5, kMostSamples = 201;
constexpr int kMaxThreads = 1024;
// Between the sides, where there are several threads: long enough for waiting threads of the other process to stop spinning.
constexpr auto kPause = std::chrono::milliseconds(4);

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

// Seconds per call, `calls` in a row after one that is not counted.
double time_calls(const Subject& s, Pool& pool, int64_t calls) {
  s.run(pool);
  const double start = now();
  for (int64_t c = 0; c < calls; ++c) s.run(pool);
  return (now() - start) / static_cast<double>(calls);
}

int64_t calls_in(double seconds, double one) {
  return std::clamp<int64_t>(static_cast<int64_t>(seconds / std::max(one, 1e-9)), 1, 1000000);
}

// Which bytes of a call count against the rate of copying and which against that of reading or writing alone.
struct Bytes {
  double copied, rest;
  Traffic kind;
  int64_t working_set;
  explicit Bytes(const Subject& s) : working_set(s.working_set()) {
    const auto in = static_cast<double>(s.bytes_read()), out = static_cast<double>(s.bytes_written());
    copied = 2 * std::min(in, out), rest = in + out - copied;
    kind = in > out ? Traffic::read : Traffic::copy;
  }
};

// Flops at their peak, or bytes at the rate of the caches or memory that hold them, whichever takes longer.
void bound(Row& row, const Bytes& b, const Peaks& peaks) {
  double t = 0;
  if (b.copied > 0) t += b.copied / peaks.known_bytes(row.threads, Traffic::copy, b.working_set);
  if (b.rest > 0) t += b.rest / peaks.known_bytes(row.threads, b.kind, b.working_set);
  const double f = row.flops > 0 ? row.flops / peaks.known_flops(row.threads) : 0;
  row.limit_seconds = std::max(t, f);
  row.by_flops = f > t;
}

struct Measured {
  Row row;
  Bytes bytes;
};

Result<Measured> measure_one(const Item& item, const ops::Kernel& kernel, Pool& pool, Peaks& peaks,
                             Peer* peer, double seconds) {
  Row row;
  row.suite = item.suite, row.op = item.op, row.shape = item.shape(), row.text = item.call.text;
  row.isa = std::string(kernel.isa), row.threads = pool.threads();
  INVAR_TRY(Subject subject, Subject::make(item, kernel, pool.threads()));
  row.flops = static_cast<double>(item.flops);
  row.bytes = static_cast<double>(subject.working_set());
  for (const auto& t : item.call.out) row.elements += static_cast<double>(t.elements());
  if (item.past)
    row.elements *= 1 - static_cast<double>(item.past) / static_cast<double>(item.call.out[0].shape[1]);
  const Bytes bytes(subject);
  if (row.flops > 0) peaks.flops(pool);
  if (bytes.copied > 0) peaks.bytes(pool, Traffic::copy, bytes.working_set);
  if (bytes.rest > 0) peaks.bytes(pool, bytes.kind, bytes.working_set);
  if (peer) {
    INVAR_TRY(row.peer, peer->prepare(item, pool.threads()));
  }
  const bool both = !row.peer.empty();
  const auto pause = both && row.threads > 1 ? kPause : std::chrono::milliseconds(0);
  std::this_thread::sleep_for(kPause);
  double once = std::min(time_calls(subject, pool, 1), time_calls(subject, pool, 1));
  const int64_t calls = calls_in(kSampleSeconds, once);
  double round = once * static_cast<double>(calls);  // seconds of a sample of each side
  int64_t peer_calls = 1;
  if (both) {
    INVAR_TRY(once, peer->time(1));
    peer_calls = calls_in(kSampleSeconds, once);
    round += once * static_cast<double>(peer_calls) + std::chrono::duration<double>(pause).count();
  }
  const int samples = static_cast<int>(std::clamp(seconds / round, kLeastSamples, kMostSamples));
  std::vector<double> ours, theirs;
  for (int i = 0; i < samples; ++i) {
    std::this_thread::sleep_for(pause);
    ours.push_back(time_calls(subject, pool, calls));
    if (!both) continue;
    INVAR_TRY(double t, peer->time(peer_calls));
    theirs.push_back(t);
  }
  row.seconds = median(ours), row.best_seconds = *std::min_element(ours.begin(), ours.end());
  if (both) {
    row.peer_seconds = median(theirs);
    row.peer_best_seconds = *std::min_element(theirs.begin(), theirs.end());
  }
  return Measured{std::move(row), bytes};
}

Result<std::vector<std::string>> isas_of(const Settings& s) {
  if (s.isas.empty()) return std::vector<std::string>{std::string(ops::isas().front())};
  for (const std::string& isa : s.isas)
    if (std::find(ops::isas().begin(), ops::isas().end(), isa) == ops::isas().end()) {
      std::string have;
      for (std::string_view i : ops::isas()) have += (have.empty() ? "" : ", ") + std::string(i);
      return bad_input("instruction set '" + isa +
                       "' is not available here; this CPU and build have: " + have);
    }
  return s.isas;
}

Result<std::vector<Item>> items_for(const Settings& s) {
  if (s.shape.empty()) return choose(s.suites, s.op);
  if (s.op.empty()) return bad_input("--shape needs --op: whose call is it?");
  if (!ops::find(s.op, "reference"))
    return bad_input("no operation '" + s.op + "': spec/opset.toml lists them");
  return items_of(s.op, s.shape, "--shape");
}

}  // namespace

Result<Report> measure(const Settings& s,
                       const std::function<void(size_t, size_t, const std::string&)>& progress) {
  INVAR_TRY(const std::vector<std::string> isas, isas_of(s));
  INVAR_TRY(const std::vector<Item> items, items_for(s));
  std::vector<int> threads = s.threads;
  if (threads.empty()) {
    threads.push_back(1);
    if (const int all = std::min(available_cores(), kMaxThreads); all > 1) threads.push_back(all);
  }
  for (int t : threads)
    if (t < 1 || t > kMaxThreads) return bad_input("--threads: 1 to " + std::to_string(kMaxThreads));
  for (const Item& item : items) {
    INVAR_TRY(const std::string wrong, refusal(item));
    if (!wrong.empty()) return bad_input(item.op + " requires " + wrong + ": " + item.call.text);
  }
  Report report;
  if (items.empty()) return report;
  std::optional<Peer> peer;
  if (!s.peer.empty()) {
    INVAR_TRY(Peer started, Peer::start(s.peer, s.python, source_root()));
    report.peer = started.version();
    peer.emplace(std::move(started));
  }
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
      progress(done, total, "the machine's peaks");
      Limit limit{isas[i], n, peaks[i].flops(pool), peaks[i].bytes(pool, Traffic::read, Peaks::kOutOfCache),
                  peaks[i].bytes(pool, Traffic::copy, Peaks::kOutOfCache)};
      std::vector<Measured> measured;
      for (const Item& item : items) {
        progress(done++, total, item.op + " " + item.shape());
        const ops::Kernel* kernel = ops::find(item.op, isas[i]);
        if (!kernel) kernel = ops::find(item.op, "reference");  // nothing to vectorise
        INVAR_TRY(Measured m, measure_one(item, *kernel, pool, peaks[i], peer ? &*peer : nullptr, s.seconds));
        measured.push_back(std::move(m));
      }
      limit.flops = peaks[i].known_flops(n);
      limit.read = peaks[i].known_bytes(n, Traffic::read, Peaks::kOutOfCache);
      limit.copy = peaks[i].known_bytes(n, Traffic::copy, Peaks::kOutOfCache);
      report.limits.push_back(std::move(limit));
      for (Measured& m : measured) {  // only now the limits are the best of the whole run
        bound(m.row, m.bytes, peaks[i]);
        report.rows.push_back(std::move(m.row));
      }
    }
  }
  return report;
}

}  // namespace invar::bench
