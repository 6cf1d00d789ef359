// The options of the commands for encoders.
#include "options/shared.h"
#include "options/values.h"

namespace invar::cli {
namespace {

void add_encoder(CLI::App& app, EncoderCommand& o) {
  app.add_option("--model-name", o.model.model_name,
                 "checkpoint folder, or org/name[@revision] on the Hugging Face hub")
      ->required();
  app.add_option("--revision", o.model.revision, "branch, tag or commit of a hub model (default: main)");
  app.add_flag("--offline", o.model.offline, "download nothing: only what the Hugging Face cache has");
  app.add_option("--task-dir", o.model.task_dir, "where the export and the plan of this model go");
  app.add_option("--tasks-root", o.model.tasks_root,
                 "where task folders are made (default: the user's cache)");
  app.add_option("--batch-size", o.batch_size, "texts of one length in a step; never changes a bit")
      ->check(whole(1, 1 << 20))
      ->capture_default_str();
  check_device(app.add_option("--device", o.execution.device, "cpu, cuda or cuda:N; never changes a bit")
                   ->capture_default_str(),
               /*is_list=*/false);
  app.add_option("--threads", o.execution.threads, "worker threads (default, 0: one per core)")
      ->check(whole(0, 1024));
  check_isa(app.add_option("--isa", o.execution.isa,
                           "force one instruction set: reference, scalar, avx2, avx512, neon"));
  app.parse_complete_callback([&o] { expect_devices(o.execution); });
  add_name(app, o.model.name);
  add_operation_set(app, o.operation_set);
  add_numerics(app, o.model.profile);
  app.add_option("--receipt-path", o.receipt_path,
                 "where the receipt goes; of several texts r.json becomes r.1.json, r.2.json, ...");
  app.add_flag("--json", o.json, "JSON lines alone, nothing on standard error but errors");
}

}  // namespace

void add_encoder_commands(CLI::App& app, EncoderCommands& c, int& result) {
  EncoderCommand& e = c.embed;
  auto* embed = app.add_subcommand("embed", "texts -> vectors, by an encoder; a receipt of each");
  embed->add_option("text", e.texts, "the texts");
  embed->add_option("--text-file", e.text_file,
                    "a text in each line; of .jsonl a string, or an object with \"text\"");
  embed->add_option("--prompt-name", e.prompt_name,
                    "put this prompt of the model in front of each text, such as query");
  embed->add_option("-o,--output", e.output,
                    "FILE.npy: f32 [texts, size]; else JSON lines (default: standard output)");
  add_encoder(*embed, e);
  embed->callback([&e, &result] {
    if (e.texts.empty() && e.text_file.empty()) throw CLI::RequiredError("a text or --text-file");
    result = invar::cli::embed(e);
  });
  EncoderCommand& r = c.rerank;
  auto* rerank = app.add_subcommand("rerank", "a query and documents -> scores, the best first");
  rerank->add_option("--query", r.query, "the query")->required();
  rerank->add_option("document", r.texts, "the documents");
  rerank->add_option("--documents", r.text_file,
                     "a document in each line; of .jsonl a string, or an object with \"document\"");
  rerank->add_option("-o,--output", r.output, "the file of the lines (default: standard output)");
  add_encoder(*rerank, r);
  rerank->callback([&r, &result] {
    if (r.texts.empty() && r.text_file.empty()) throw CLI::RequiredError("a document or --documents");
    if (r.query.empty()) throw CLI::ValidationError("--query", "empty: give the query");
    result = invar::cli::rerank(r);
  });
}

}  // namespace invar::cli
