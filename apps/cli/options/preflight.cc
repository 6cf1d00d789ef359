#include "options/preflight.h"

#include "console.h"
#include "device/find_device.h"
#include "outputs/user_state.h"
#include "workers/workers.h"

namespace invar::cli {
namespace {

// An error of usage.
int misused(std::string_view command, const std::string& message) {
  return fail(bad_input(message), "see `invar " + std::string(command) + " --help`");
}

// Fails where a GPU is asked for and does not answer. A list has commas.
std::optional<int> expect_devices(std::string_view list) {
  for (size_t end; !list.empty(); list.remove_prefix(std::min(end + 1, list.size()))) {
    end = std::min(list.find(','), list.size());
    const std::string name(list.substr(0, end));
    if (const Status found = find_device(name); !found)
      return fail(Error{found.error().code, "--device " + name + ": " + found.error().message});
  }
  return std::nullopt;
}

std::optional<int> expect_devices(const ExecutionOptions& o) {
  // Each process of workers checks its own device.
  return o.cpu_only || !o.workers.empty() ? std::nullopt : expect_devices(std::string_view(o.device));
}

// Devices and workers.
std::optional<int> place(const ExecutionOptions& o, const std::string& worker_model, SignalMeaning meaning) {
  if (const std::optional<int> code = expect_devices(o)) return code;
  model_of_workers() = worker_model;
  return run_under_mpirun(o, meaning);
}

std::optional<int> expect_one_way_to_sample(const SamplingOptions& o, std::string_view command) {
  if (o.do_sample == false && o.temperature.value_or(0) != 0)
    return misused(command, "--no-do-sample excludes --temperature");
  return std::nullopt;
}

}  // namespace

std::optional<int> preflight(RunCommand& c, std::string_view name) {
  if (const std::optional<int> code = expect_one_way_to_sample(c.sampling, name)) return code;
  if (c.prompt_text && (!c.tools.empty() || c.chat.system || c.chat.enable_thinking || !c.chat.date.empty()))
    return misused(name,
                   "--tools, --system, --enable-thinking and --date are for --user and messages, not for "
                   "--prompt-text");
  if (c.explain) c.execution.explain = explain_on_stderr;
  return place(c.execution, c.worker_model, {});
}

std::optional<int> preflight(ChatCommand& c, std::string_view name) {
  if (const std::optional<int> code = expect_one_way_to_sample(c.sampling, name)) return code;
  return place(c.execution, c.worker_model, {});
}

std::optional<int> preflight(BatchCommand& c, std::string_view name) {
  if (c.merge) return std::nullopt;
  if (c.model.model_name.empty()) return misused(name, "--model-name is missing");
  if (c.from_stdin && c.results.empty()) return misused(name, "--stdin needs --results FOLDER");
  return place(c.execution, c.worker_model, {.first_drains = true});
}

std::optional<int> preflight(ServeCommand& c, std::string_view) {
  // Before the processes are started.
  if (c.model_names.size() > 1 && !c.execution.workers.empty())
    return fail(bad_input("--workers is of one model, and " + std::to_string(c.model_names.size()) +
                          " are given with --model-name: start a server for each"));
  return place(c.execution, c.worker_model, {.first_drains = true});
}

std::optional<int> preflight(InferCommand& c, std::string_view name) {
  if (const std::optional<int> code = expect_one_way_to_sample(c.sampling, name)) return code;
  if (c.explain) c.execution.explain = explain_on_stderr;
  return place(c.execution, c.worker_model, {.hangup_ends = true});
}

std::optional<int> preflight(EncoderCommand& c, std::string_view name) {
  if (name == "rerank" && c.query.empty()) return misused(name, "--query: empty: give the query");
  return expect_devices(c.execution);
}

std::optional<int> preflight(ReceiptCommand& c, std::string_view) {
  c.receipts.insert(c.receipts.end(), c.receipt_paths.begin(), c.receipt_paths.end());
  if (c.last) {
    auto path = last_receipt();
    if (!path) return fail(path.error());
    c.receipts.push_back(*std::move(path));
  }
  return place(c.execution, c.worker_model, {.hangup_ends = true});
}

std::optional<int> preflight(DisputeCommand& c, std::string_view) {
  if (c.execution.device == "cpu") return std::nullopt;
  return fail(not_covered("--device " + c.execution.device +
                          ": the results of single operations are observed on the CPU alone: leave "
                          "--device out"));
}

std::optional<int> preflight(BenchCommand& c, std::string_view) {
  return expect_devices(std::string_view(c.settings.device));
}

}  // namespace invar::cli
