// The decoding and prefill rate of a whole model.
#include <algorithm>
#include <chrono>

#include "base/thread_pool.h"
#include "bench/peak/peak_device.h"
#include "bench/run.h"
#include "generate/cache/task_cache.h"
#include "generate/engine/execution.h"
#include "generate/model/model_folder.h"

namespace invar::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int64_t kPrompt = 256, kNew = 128;
constexpr int kRuns = 5;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

Status measure_model(const Settings& s, const std::string& model_name, Report& report,
                     generate::Observer& observer, const Keep& keep) {
  const std::string name = model_name.empty() ? source_root() + "/models/shakespeare-4m" : model_name;
  INVAR_TRY(const auto location, generate::resolve(name));
  generate::ModelOptions options;
  options.profile = s.profile;
  INVAR_TRY(const auto compiled, generate::prepare(location, options, observer));
  const std::string what = location.name + (s.profile ? ", " + std::string(name_of(*s.profile)) : "");
  double weight_bytes = 0;
  double flops = 0;  // of a token: a multiplication and an addition for each weight
  for (const plan::Weight& w : compiled.plan.weights) {
    weight_bytes += static_cast<double>(w.length);
    flops += 2 * static_cast<double>(w.length / size_of(w.dtype));
  }
  std::vector<int> threads = s.threads;
  INVAR_TRY(const auto device, Device::named(s.device));
  DevicePeaks limits;
  if (device) {
    threads = {0};
    INVAR_TRY(limits, device_peaks(*device));
  }
  if (threads.empty()) {
    threads.push_back(1);
    if (available_cores() > 1) threads.push_back(available_cores());
  }
  for (const std::string& isa : s.isas.empty() ? std::vector<std::string>{""} : s.isas)
    for (const int n : threads) {
      generate::ExecutionOptions how;
      how.isa = isa, how.threads = n, how.device = s.device;
      INVAR_TRY(run::Session session, run::Session::open(compiled.plan, compiled.folder,
                                                         generate::session_options(how, kPrompt + kNew)));
      Row row;
      row.suite = "model", row.text = what, row.isa = std::string(session.isa()), row.threads = n;
      row.op = "decode";
      if (report.has(row)) continue;
      const std::vector<int32_t> prompt(kPrompt, 1);
      std::vector<double> prefill, decode;
      const auto measuring = observer.phase("measure");
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
        measuring->progress(i + 1, kRuns + 1, "runs");
      }
      measuring->done("model, " + std::to_string(session.threads()) + " threads");
      if (!device) {
        Peaks peaks(session.isa());
        Pool pool(n);
        limits.read = peaks.bytes(pool, Traffic::read, static_cast<int64_t>(weight_bytes));
        limits.flops = peaks.flops(pool);
      }
      row.bytes = weight_bytes;
      row.shape = what + ", a token after " + std::to_string(kPrompt) + " and more";
      row.seconds = median(decode), row.best_seconds = std::ranges::min(decode);
      row.limit_seconds = weight_bytes / limits.read;
      report.rows.push_back(row);
      row.op = "prefill", row.shape = what + ", a token of " + std::to_string(kPrompt);
      row.seconds = median(prefill), row.best_seconds = std::ranges::min(prefill);
      row.bytes /= kPrompt, row.flops = flops;
      row.limit_seconds = flops / limits.flops, row.by_flops = true;
      report.rows.push_back(row);
      INVAR_CHECK_OK(keep(report));
    }
  return {};
}

}  // namespace invar::bench
