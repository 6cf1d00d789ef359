// invar batch: a file of requests, or lines of standard input -> answers and receipts in a folder.
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <tuple>

#include "commands.h"
#include "console.h"
#include "generate/engine/execution.h"
#include "options/values.h"
#include "outputs/folders.h"
#include "progress/interrupt.h"
#include "serve/batch.h"
#include "serving/opened.h"

namespace invar::cli {
namespace {

serve::BatchOptions batch_options(const BatchCommand& c) {
  serve::BatchOptions options;
  options.input = c.file;
  options.folder = c.results.empty() ? c.file + ".results" : c.results;
  options.output = c.merged;
  options.context = c.context;
  options.date = c.date;
  if (const auto share = parse_shard(c.shard)) std::tie(options.shard, options.shards) = *share;
  options.recheck = c.recheck;
  options.max_failures = c.max_failures;
  options.retry_failed = c.retry_failed;
  options.drain = std::chrono::seconds(c.drain_timeout);
  return options;
}

json::Value counts_json(const serve::BatchCounts& n) {
  const auto or_null = [](const std::string& text) {
    return text.empty() ? json::Value() : json::Value(text);
  };
  return {{"ok", true},
          {"rows", n.rows},
          {"computed", n.computed},
          {"found", n.found},
          {"answers", n.answers},
          {"refused", n.refused},
          {"failed", n.failed},
          {"crashed", n.crashed},
          {"rechecked", n.rechecked},
          {"missing", n.missing},
          {"output", or_null(n.output)},
          {"sha256", or_null(n.sha256)}};
}

Status say(const BatchCommand& c, const serve::BatchCounts& counts, Console& console) {
  if (counts.missing > 0)
    console.note("rows", std::to_string(counts.missing) + " of " + std::to_string(counts.rows) +
                             " have no result yet: those of other shards");
  else
    console.note("output", counts.output + ", SHA-256 " + counts.sha256);
  return c.json ? write_stdout(line_of(counts_json(counts))) : Status();
}

// Lines for a program, which has each as soon as it is there.
Status write_now(const json::Value& row) {
  const std::string line = json::dump(row) + "\n";
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t n = ::write(STDOUT_FILENO, rest.data(), rest.size());
    if (n < 0 && errno != EINTR) return bad_input("standard output: cannot be written: nobody reads it");
    if (n > 0) rest.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

Status do_batch(const BatchCommand& c) {
  Console console(c.json);
  OutputFolders folders;
  INVAR_CHECK_OK(folders.make_above("--output", c.merged));
  const serve::BatchOptions options = batch_options(c);
  if (c.merge) {
    INVAR_TRY(const serve::BatchCounts merged, serve::merge_batch(options));
    return say(c, merged, console);
  }
  // A worker of another program's ends with it.
  if (c.from_stdin) ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  const auto starting = generate::start(c.execution);
  Opened opened;
  INVAR_CHECK_OK(open_model(c.model, c.execution, {.batch_size = c.batch_size, .positions = c.context},
                            c.lora_modules, opened, console));
  const serve::Models models = opened.models();
  const receipt::Receipt& program =
      models.encoders.empty() ? models.engines[0]->model().described : models.encoders[0]->model.described();
  if (program.operation_set != name_of(OperationSet::reproducible))
    return not_covered(
        "a batch has equal results on every worker, which programs of the operation set reproducible alone "
        "have: take such a plan");
  INVAR_TRY(const auto batch, serve::Batch::make(models, options));
  on_next_signal([&] { batch->stop(); });
  if (!c.from_stdin) {
    auto counts = batch->run(console);
    on_next_signal(nullptr);
    return counts ? say(c, *counts, console) : Status(counts.error());
  }
  const auto counts = batch->run_stream(STDIN_FILENO, write_now);
  on_next_signal(nullptr);
  return counts ? Status() : Status(counts.error());
}

}  // namespace

int batch(const BatchCommand& c) {
  return exit_code(do_batch(c));
}

}  // namespace invar::cli
