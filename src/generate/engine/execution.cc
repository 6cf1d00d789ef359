#include "generate/engine/execution.h"

#include <sys/utsname.h>

#include "base/thread_pool.h"
#include "device/find_device.h"
#include "device/machine.h"

namespace invar::generate {

run::Options run_options(const ExecutionOptions& o) {
  run::Options options;
  options.device = o.cpu_only ? "cpu" : o.device;
  options.threads = o.threads;
  options.isa = o.isa;
  options.explain = o.explain;
  return options;
}

run::Options session_options(const ExecutionOptions& o, int64_t capacity, int64_t sequences) {
  run::Options options = run_options(o);
  options.capacity = capacity;
  options.sequences = sequences;
  options.chunk = o.prefill_chunk;
  options.use_cache = !o.no_kv_cache;
  options.partitions = o.partitions;
  options.weights_memory = o.weights_memory;
  options.ranks = o.tensor_parallel;
  options.state_memory = o.kv_cache_memory_bytes;
  return options;
}

std::future<void> start(const ExecutionOptions& o) {
  return o.cpu_only ? std::future<void>() : start_device(o.device);
}

void report_threads(int started, const ExecutionOptions& o, Observer& observer) {
  const int wanted = o.threads > 0 ? o.threads : available_cores();
  if (started < wanted)
    observer.note("threads", std::to_string(started) + " of " + std::to_string(wanted) +
                                 ": the system starts no more; slower, the same bits");
}

namespace {

std::string joined(const std::vector<std::string>& list) {
  std::string s;
  for (const std::string& one : list) s += (s.empty() ? "" : ", ") + one;
  return s.empty() ? "none" : s;
}

std::string machine() {
  utsname host{};
  uname(&host);
  return host.machine;
}

template <class Runner>
std::map<std::string, std::string> kind_of(const Runner& r, const Device::Info* gpu) {
  return {{"isa", std::string(r.isa())},
          {"kernels", joined(r.kernels())},
          {"libraries", joined(r.libraries())},
          {"machine", machine()},
          {"processor", gpu ? describe(*gpu) : exact_processor()},
          {"version", INVAR_VERSION}};
}

}  // namespace

std::map<std::string, std::string> describe_kind(const run::Session& s) {
  return kind_of(s, s.gpu());
}
std::map<std::string, std::string> describe_kind(const run::Function& f, const Device* device) {
  return kind_of(f, device ? &device->info() : nullptr);
}

std::map<std::string, std::string> describe_execution(const run::Session& s, const std::string& model_path,
                                                      const plan::Plan& plan, const Digest& digest,
                                                      const ExecutionOptions& o) {
  std::map<std::string, std::string> fields = {{"device", std::string(s.device())},
                                               {"isa", std::string(s.isa())},
                                               {"machine", machine()},
                                               {"plan", to_hex(digest)},
                                               {"threads", std::to_string(s.threads())},
                                               {"version", INVAR_VERSION}};
  if (!model_path.empty()) fields["model_path"] = model_path;
  if (!s.placement().empty()) fields["placement"] = s.placement();
  if (plan.operation_set == OperationSet::reproducible) return fields;
  fields.merge(describe_kind(s));
  fields["kv_cache"] = o.no_kv_cache ? "no" : "yes";
  fields["prefill_chunk"] = std::to_string(s.chunk());
  return fields;
}

std::map<std::string, std::string> describe_execution(const run::Function& f, const Device* device,
                                                      const plan::Plan& plan) {
  std::map<std::string, std::string> fields = {
      {"device", device ? "cuda:" + std::to_string(device->info().index) + " " + device->info().name : "cpu"},
      {"isa", std::string(f.isa())},
      {"machine", machine()},
      {"plan", to_hex(plan::digest(plan))},
      {"version", INVAR_VERSION}};
  if (plan.operation_set != OperationSet::reproducible) fields.merge(describe_kind(f, device));
  return fields;
}

}  // namespace invar::generate
