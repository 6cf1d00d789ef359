// invar bench: what bench/ measures, and the decoding rate of a whole model.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "base/file/file.h"
#include "base/thread_pool.h"
#include "commands.h"
#include "console.h"
#include "generate.h"
#include "model.h"
#include "bench/peak/peak_device.h"
#include "prepare.h"
#include "bench/report.h"
#include "bench/run.h"

namespace invar::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int64_t kPrompt = 256, kNew = 128;
constexpr int kRuns = 5;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

// A prompt and an answer of a model, per token; the limit of decoding is reading the weights once per token.
Status measure_model(const BenchCommand& c, bench::Report& report) {
  const std::string name =
      c.model_name.empty() ? bench::source_root() + "/models/shakespeare-4m" : c.model_name;
  INVAR_TRY(const Place place, resolve(name));
  INVAR_TRY(const Prepared prepared, prepare(place, ModelOptions(), true));
  double weight_bytes = 0;
  double flops = 0;  // of a token: a multiplication and an addition for each weight
  for (const plan::Weight& w : prepared.plan.weights) {
    weight_bytes += static_cast<double>(w.length);
    flops += 2 * static_cast<double>(w.length / size_of(w.dtype));
  }
  std::vector<int> threads = c.threads;
  INVAR_TRY(const auto device, Device::named(c.device));
  bench::DevicePeaks limits;
  if (device) {
    threads = {0};
    INVAR_TRY(limits, bench::device_peaks(*device));
  }
  if (threads.empty()) {
    threads.push_back(1);
    if (available_cores() > 1) threads.push_back(available_cores());
  }
  for (const std::string& isa : c.isas.empty() ? std::vector<std::string>{""} : c.isas)
    for (const int n : threads) {
      ExecutionOptions how;
      how.isa = isa, how.threads = n, how.device = c.device;
      INVAR_TRY(run::Session session,
                run::Session::open(prepared.plan, prepared.folder, session_options(how, kPrompt + kNew)));
      const std::vector<int32_t> prompt(kPrompt, 1);
      std::vector<double> prefill, decode;
      for (int i = 0; i <= kRuns; ++i) {
        session.reset();
        auto start = Clock::now();
        INVAR_TRY([[maybe_unused]] auto logits, session.step(prompt));
        if (i) prefill.push_back(seconds_since(start) / kPrompt);
        start = Clock::now();
        for (int64_t t = 0; t < kNew; ++t) {
          const int32_t token = static_cast<int32_t>(t % session.vocab());
          INVAR_TRY([[maybe_unused]] auto next, session.step({&token, 1}));
        }
        if (i) decode.push_back(seconds_since(start) / kNew);  // the first run warms up
      }
      if (!device) {
        bench::Peaks peaks(session.isa());
        Pool pool(n);
        limits.read = peaks.bytes(pool, bench::Traffic::read, static_cast<int64_t>(weight_bytes));
        limits.flops = peaks.flops(pool);
      }
      bench::Row row;
      row.suite = "model", row.text = name, row.isa = std::string(session.isa()), row.threads = n;
      row.bytes = weight_bytes;
      row.op = "decode", row.shape = "a token after " + std::to_string(kPrompt) + " and more";
      row.seconds = median(decode), row.limit_seconds = weight_bytes / limits.read;
      report.rows.push_back(row);
      row.op = "prefill", row.shape = "a token of " + std::to_string(kPrompt);
      row.seconds = median(prefill), row.bytes /= kPrompt, row.flops = flops;
      row.limit_seconds = flops / limits.flops, row.by_flops = true;
      report.rows.push_back(row);
    }
  return {};
}

Status do_bench(const BenchCommand& c) {
  bench::Settings s;
  if (!c.suites.empty()) s.suites = c.suites;
  const bool model = std::find(c.suites.begin(), c.suites.end(), "model") != c.suites.end();
  s.op = c.op, s.shape = c.shape, s.threads = c.threads, s.isas = c.isas, s.device = c.device;
  s.seconds = c.seconds;
  s.peer = c.peer, s.python = c.python;
  const bool draw = stderr_is_terminal();
  INVAR_TRY(bench::Report report, bench::measure(s, [&](size_t done, size_t total, const std::string& next) {
              if (draw) std::fprintf(stderr, "\r\033[K  %zu of %zu  %s", done, total, next.c_str());
            }));
  if (draw) std::fputs("\r\033[K", stderr);
  if (model) {
    INVAR_CHECK_OK(measure_model(c, report));
  }
  if (report.rows.empty()) return bad_input("nothing to measure: no such operation in these suites");
  if (!c.plot.empty()) {
    INVAR_CHECK_OK(write_file(c.plot, bench::svg(report)));
  }
  const std::string text = c.json ? bench::json_of(report) : bench::table(report);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    return bad_input("standard output: cannot be written (full disk or closed pipe?)");
  return {};
}

}  // namespace

int bench(const BenchCommand& c) {
  const Status done = do_bench(c);
  return done ? 0 : fail(done.error());
}

}  // namespace invar::cli
