// Options that several commands have, and what their values must be.
#include "options/shared.h"

#include <cmath>

#include "base/text/decimal.h"
#include "base/text/size_text.h"
#include "base/text/utf8.h"
#include "base/thread_pool.h"
#include "console.h"
#include "options/values.h"
#include "workers/workers.h"

namespace invar::cli {

void add_model(CLI::App& app, ModelOptions& o) {
  app.add_option("--model-name", o.model_name,
                 "checkpoint folder, or org/name[@revision] on the Hugging Face hub")
      ->required();
  app.add_option("--revision", o.revision, "branch, tag or commit of a hub model (default: main)");
  app.add_flag("--offline", o.offline, "download nothing: only what the Hugging Face cache has");
  app.add_option("--plan", o.plan, "use this compiled plan instead of exporting and compiling");
  app.add_option("--task-dir", o.task_dir, "where the export and the plan of this model go");
  app.add_option("--tasks-root", o.tasks_root, "where task folders are made (default: the user's cache)");
  app.add_flag("--colocate-tensors", o.colocate_tensors,
               "copy weights into the task folder instead of linking them");
  add_name(app, o.name);
}

void add_name(CLI::App& app, std::string& name) {
  app.add_option("--name", name,
                 "what the receipt calls the model, a label that it binds (default: the folder's name)")
      ->check([](const std::string& value) -> std::string {
        if (valid_prefix(value) < value.size()) return "a name is UTF-8";
        return value.empty() || value.size() > 256 ? "a name has 1 to 256 bytes" : "";
      });
}

void add_operation_set(CLI::App& app, std::string& set) {
  app.add_option("--operation-set", set,
                 "what is promised of the bits: default (nothing), deterministic (the same in every run "
                 "on this machine), reproducible (the same on any machine; the default)");
}

void add_numerics(CLI::App& app, std::optional<Profile>& profile) {
  app.add_option_function<std::string>(
         "--numerics",
         [&profile](const std::string& name) {
           profile = profile_from(name);
           if (!profile)
             throw CLI::ValidationError("--numerics",
                                        name + " is not known; use one of " + std::string(kProfileNames));
         },
         "how matrix products with the model's weights are computed: fp32 (the default), or exact16, in rows "
         "of 16-bit integers, which no order of summation changes")
      ->type_name("NAME");
}

// CLI11 reads 010 as 8, takes +5 and 0x10, and wraps or cuts what is too large or negative. Only
// plain digits pass.
CLI::Validator whole(uint64_t least, uint64_t most) {
  const std::string range = std::to_string(least) + " to " + std::to_string(most);
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        return parse_whole(text, least, most) ? "" : text + " is not a whole number from " + range;
      },
      range);
}

void add_decimal(CLI::App& app, const std::string& name, std::optional<float>& value, const char* help) {
  app.add_option_function<std::string>(
         name,
         [&value, name](const std::string& text) {
           if (const std::string wrong = parse_decimal(text, value.emplace()); !wrong.empty())
             throw CLI::ValidationError(name, wrong);
         },
         help)
      ->type_name("NUMBER");
}

CLI::Validator seconds(double most) {
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        double value;
        if (std::string wrong = parse_decimal(text, value); !wrong.empty()) return wrong;
        return value >= 0 && value <= most ? ""
                                           : text + " is not from 0 to " + std::to_string(std::lround(most));
      },
      "0 to " + std::to_string(std::lround(most)));
}

void add_execution(CLI::App& app, ExecutionOptions& o) {
  check_device(
      app.add_option("--device", o.device, "cpu, cuda or cuda:N; never changes a bit")->capture_default_str(),
      /*is_list=*/true);
  app.add_flag("--cpu-only", o.cpu_only, "never use a GPU");
  app.add_option("--threads", o.threads, "worker threads (default, 0: one per core)")
      ->check(whole(0, kMaxThreads));
  check_isa(
      app.add_option("--isa", o.isa, "force one instruction set: reference, scalar, avx2, avx512, neon"));
  app.parse_complete_callback([&o] { expect_devices(o); });
  app.add_option("--prefill-chunk", o.prefill_chunk, "prompt tokens per step (default: 256; on a GPU 2048)")
      ->check(whole(0, 1 << 20));
}

void add_partitions(CLI::App& app, ExecutionOptions& o) {
  app.add_option("--n-partitions", o.partitions,
                 "split the model by layers into N parts, over the devices of --device, which may be a list "
                 "(cuda:0,cuda:1); never changes a bit")
      ->check(whole(1, 1 << 16));
  app.add_option_function<std::string>(
         "--weights-memory",
         [&o](const std::string& text) {
           const std::optional<uint64_t> bytes = parse_size(text);
           if (!bytes || *bytes == 0)
             throw CLI::ValidationError(
                 "--weights-memory",
                 text + " is not a size, a whole number of B, kB, MB, GB or TB, such as 20GB");
           o.weights_memory = *bytes;
         },
         "keep at most SIZE of weights in the device's memory, such as 20GB; load layers that do not fit at "
         "every step; never changes a bit")
      ->type_name("SIZE");
  CLI::Option* const workers = app.add_option(
      "--workers", o.workers,
      "a process for each partition, by MPI: `processes` on this machine, or hosts, comma separated "
      "(node1,node2:2)");
  app.add_option("--worker-timeout", o.worker_timeout,
                 "seconds after which a worker without a sign of life ends the run")
      ->check(whole(1, 86400))
      ->capture_default_str()
      ->needs(workers);
  app.add_option("--worker-model", model_of_workers(),
                 "the checkpoint's folder on the workers' hosts, where it does not lie at its path here")
      ->needs(workers);
  app.parse_complete_callback([&o, &app] {
    expect_devices(o);
    const bool ends_with_terminal = app.get_name() != "run" && app.get_name() != "chat";
    if (const std::optional<int> code = run_under_mpirun(o, ends_with_terminal)) throw Launched{*code};
  });
  app.add_option(
         "--tensor-parallel", o.tensor_parallel,
         "divide each part by whole results (heads, columns) among N ranks, over the devices of --device; "
         "never changes a bit")
      ->check(whole(1, 1 << 10))
      ->capture_default_str();
}

void add_explain(CLI::App& app, ExecutionOptions& o) {
  app.add_flag_callback(
      "--explain", [&o] { o.explain = explain_on_stderr; },
      "print what each pass that prepares the plan leaves, on standard error: kernels, views, fused "
      "operations, buffers, layouts");
}

void add_sampling(CLI::App& app, SamplingOptions& o) {
  app.add_option("--max-new-tokens", o.max_new_tokens, "at most this many new tokens (default: 128)")
      ->check(whole(1, 1 << 30));
  add_decimal(app, "--temperature", o.temperature, "divide logits by this; 0 = --no-do-sample");
  app.add_option("--top-k", o.top_k, "keep the k most likely tokens; 0 = all")->check(whole(0, INT32_MAX));
  add_decimal(app, "--top-p", o.top_p, "keep the smallest set with this probability; 1 = all");
  add_decimal(app, "--min-p", o.min_p,
              "keep the tokens of at least this probability, the best one's being 1; 0 = all");
  add_decimal(app, "--repetition-penalty", o.repetition_penalty,
              "above 1, tokens of prompt and answer are less likely to come again; 1 = none");
  app.add_option("--no-repeat-ngram-size", o.no_repeat_ngram_size,
                 "never repeat a sequence of N tokens, in prompt and answer; 0 = no limit")
      ->check(whole(0, INT32_MAX));
  app.add_option("--min-new-tokens", o.min_new_tokens, "no stop token before N new tokens")
      ->check(whole(0, 1 << 30));
  app.add_option_function<std::vector<int32_t>>(
         "--suppress-tokens", [&o](const std::vector<int32_t>& ids) { o.suppress_tokens = ids; },
         "ids that are never chosen, comma separated")
      ->allow_extra_args(false)
      ->delimiter(',')
      ->check(whole(0, INT32_MAX));
  auto* length =
      app.add_option("--short-circuit-length", o.short_circuit_length,
                     "force --short-circuit-token after N new tokens, unless the model produced it earlier")
          ->check(whole(1, 1 << 30));
  auto* token = app.add_option("--short-circuit-token", o.short_circuit_token,
                               "the id of that token, such as the end of thinking")
                    ->check(whole(0, INT32_MAX))
                    ->needs(length);
  length->needs(token);
  app.add_option("--seed", o.seed, "seed of the counter-based generator")
      ->check(whole(0, UINT64_MAX))
      ->capture_default_str();
  auto* draws = app.add_flag_callback(
      "--do-sample", [&o] { o.do_sample = true; }, "draw tokens, whatever the checkpoint says");
  auto* greedy = app.add_flag_callback(
      "--no-do-sample",
      [&o] {
        o.do_sample = false;
        if (o.temperature.value_or(0) != 0) throw CLI::ExcludesError("--no-do-sample", "--temperature");
      },
      "always take the most likely token");
  for (const char* drawing : {"--top-k", "--top-p", "--min-p"}) greedy->excludes(app.get_option(drawing));
  greedy->excludes(draws);
}

}  // namespace invar::cli
