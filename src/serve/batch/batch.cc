#include "serve/batch.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/file/file.h"
#include "base/file/listing.h"
#include "base/hash/sha256.h"
#include "base/text/display.h"
#include "prompt/chat.h"
#include "serve/batch/merge.h"
#include "serve/batch/runner.h"

namespace invar::serve {

struct Batch::Impl {
  Impl(const Models& models, BatchOptions o, BatchResults r, json::Value identity)
      : options(std::move(o)), runner(models, options, std::move(r), std::move(identity)) {}
  Status compute(std::vector<BatchRow>&, generate::Observer&);
  Status recheck(const std::vector<BatchRow>&, generate::Observer&);

  const BatchOptions options;
  BatchRunner runner;
};

Batch::Batch(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Batch::~Batch() = default;

namespace {

// What the answers of a batch follow from beyond its lines: model, program, defaults of sampling,
// context; of an encoder the files of its folder. `model` is compiled.
Result<json::Value> identity_of(const generate::Model& model, int64_t context) {
  const receipt::Receipt& of = model.described;
  const std::string settings = model.location.folder + "/generation_config.json";
  json::Value said;
  if (exists(settings)) {
    INVAR_TRY(const std::string text, read_file(settings));
    said = to_hex(sha256(text));
  }
  return json::Value{{"model", model.location.name},
                     {"program", to_hex(of.program)},
                     {"weights", to_hex(of.weights)},
                     {"config", to_hex(of.config)},
                     {"tokenizer", to_hex(of.tokenizer)},
                     {"chat_template", to_hex(of.chat_template)},
                     {"generation_config", said},
                     {"numerics", of.numerics},
                     {"profile", of.profile},
                     {"context", context}};
}

// Texts become tokens by files that no digest of the program covers.
Result<json::Value> identity_of(const OpenedEncoder& encoder) {
  const receipt::Receipt& of = encoder.model.described();
  INVAR_TRY(std::vector<std::string> names, names_in(encoder.folder));
  std::ranges::sort(names);
  Sha256 files;
  for (const std::string& name : names) {
    if (!name.ends_with(".json") && !name.ends_with(".txt")) continue;
    INVAR_TRY(const std::string text, read_file(encoder.folder + "/" + name));
    files.update(name + "\n" + to_hex(sha256(text)) + "\n");
  }
  return json::Value{{"model", encoder.name},         {"program", to_hex(of.program)},
                     {"weights", to_hex(of.weights)}, {"files", to_hex(files.finish())},
                     {"numerics", of.numerics},       {"profile", of.profile}};
}

Result<json::Value> identity_of(const Models& models, const BatchOptions& options) {
  if (!models.encoders.empty()) return identity_of(*models.encoders[0]);
  const generate::Model& model = models.engines[0]->model();
  INVAR_TRY(json::Value identity, identity_of(model, std::min(options.context, model.folder.context)));
  // Requests choose an adapter by its name, which says nothing of what is in it.
  json::Value adapters(json::Value::object);
  for (size_t i = 1; i < models.engines.size(); ++i) {
    const generate::Model& adapted = models.engines[i]->model();
    adapters[adapted.location.name] = {{"program", to_hex(adapted.described.program)},
                                       {"weights", to_hex(adapted.described.weights)}};
  }
  if (!adapters.members.empty()) identity["adapters"] = json::sorted(std::move(adapters));
  if (!options.date.empty()) identity["date"] = options.date;
  return identity;
}

}  // namespace

Result<std::unique_ptr<Batch>> Batch::make(const Models& models, BatchOptions options) {
  if (!options.date.empty() && !prompt::is_date(options.date))
    return bad_input("--date: no date such as 2026-11-24T15:04:05: " + excerpt(options.date));
  const std::string isa(models.encoders.empty() ? models.engines[0]->session().isa()
                                                : models.encoders[0]->model.isa());
  json::Value worker = {{"isa", isa}, {"version", INVAR_VERSION}};
  INVAR_TRY(BatchResults results, BatchResults::open(options.folder, std::move(worker)));
  INVAR_TRY(json::Value identity, identity_of(models, options));
  auto impl = std::make_unique<Impl>(models, std::move(options), std::move(results), std::move(identity));
  INVAR_CHECK_OK(impl->runner.open());
  return std::unique_ptr<Batch>(new Batch(std::move(impl)));
}

void Batch::stop() {
  impl_->runner.stop();
}

Status Batch::Impl::compute(std::vector<BatchRow>& rows, generate::Observer& observer) {
  for (const BatchRow& row : rows)
    if (row.id.empty() ? options.shard == 0 : is_in_shard(row, options.shard, options.shards))
      runner.add(row);
  const auto total = static_cast<int64_t>(runner.waiting());
  const auto phase = observer.phase("batch");
  INVAR_CHECK_OK(runner.work_off(
      [&](size_t n) { phase->progress(static_cast<int64_t>(n), std::max<int64_t>(total, 1), "rows"); }));
  phase->done(std::to_string(runner.counts.computed) + " computed, " + std::to_string(runner.counts.found) +
              " were there, " + std::to_string(runner.counts.errors()) + " have an error");
  return {};
}

Status Batch::Impl::recheck(const std::vector<BatchRow>& rows, generate::Observer& observer) {
  std::unordered_set<std::string> seen;
  for (const BatchRow& row : rows) {
    // The results of the next shard, since its worker is another.
    if (row.id.empty() || !is_in_shard(row, (options.shard + 1) % options.shards, options.shards) ||
        !is_in_sample(row, options.recheck) || !seen.insert(row.id).second)
      continue;
    auto there = runner.results().find(row.id);
    if (there && there->is_answer()) runner.add_again(row, *std::move(there));
  }
  const auto total = static_cast<int64_t>(runner.waiting());
  const auto phase = observer.phase("recheck");
  INVAR_CHECK_OK(runner.work_off(
      [&](size_t n) { phase->progress(static_cast<int64_t>(n), std::max<int64_t>(total, 1), "rows"); }));
  phase->done(std::to_string(runner.counts.rechecked) + " results are equal");
  return {};
}

Result<BatchCounts> Batch::run(generate::Observer& observer) {
  const BatchOptions& options = impl_->options;
  BatchRunner& runner = impl_->runner;
  std::vector<BatchRow> rows;
  {
    INVAR_TRY(const std::string text, read_file(options.input, kBatchFile));
    INVAR_CHECK_OK(runner.results().agree(runner.identity(), to_hex(sha256(text))));
    rows = read_batch(text, runner.identity());
  }
  if (rows.empty()) return bad_input(options.input + ": no line in it: one request a line");
  INVAR_CHECK_OK(impl_->compute(rows, observer));
  if (options.recheck > 0) {
    INVAR_CHECK_OK(impl_->recheck(rows, observer));
  }
  INVAR_TRY(const BatchCounts merged, merge_results(rows, runner.results(), options));
  BatchCounts counts = runner.counts;
  counts.rows = merged.rows, counts.missing = merged.missing;
  counts.output = merged.output, counts.sha256 = merged.sha256;
  return counts;
}

Result<BatchCounts> Batch::run_stream(int file, std::function<Status(const json::Value&)> give) {
  BatchRunner& runner = impl_->runner;
  INVAR_CHECK_OK(runner.results().agree(runner.identity(), ""));
  INVAR_CHECK_OK(runner.work_off_lines(file, std::move(give)));
  return runner.counts;
}

}  // namespace invar::serve
