// The options of commands for receipts.
#include "options/shared.h"
#include "options/values.h"
#include "outputs/state.h"

namespace invar::cli {
namespace {

void add_required_keys(CLI::App& app, ReceiptCommand& o) {
  app.add_option("--require-key", o.require_keys,
                 "fail where this key did not sign: its .pub file or its 64 digits; repeatable, all are "
                 "needed")
      ->allow_extra_args(false);
}

// The receipts, one after another or, as REE has it, behind --receipt-path.
void add_receipts(CLI::App& app, ReceiptCommand& o) {
  app.add_option("receipt", o.receipts, "receipts, and batches of them");
  app.add_option("--receipt-path", o.receipt_paths, "a receipt, as REE writes it; repeatable")
      ->allow_extra_args(false);
  app.add_flag("--last", o.last,
               "the last receipt that `invar run` or `chat` wrote here (~/.local/state/invar notes it)");
}
void take_receipts(ReceiptCommand& o) {
  o.receipts.insert(o.receipts.end(), o.receipt_paths.begin(), o.receipt_paths.end());
  if (o.last) {
    auto path = last_receipt();
    if (!path) throw Refused{{path.error(), ""}};
    o.receipts.push_back(*std::move(path));
  }
  if (o.receipts.empty()) throw CLI::RequiredError("a receipt");
}

void add_validate(CLI::App& app, ReceiptCommand& o, int& result) {
  auto* cmd = app.add_subcommand("validate", "check a receipt's structure, hashes and signatures");
  add_receipts(*cmd, o);
  add_required_keys(*cmd, o);
  cmd->add_flag("--json", o.json, "the verdict as JSON");
  cmd->callback([&o, &result] {
    take_receipts(o);
    result = validate(o);
  });
}

void add_verify(CLI::App& app, ReceiptCommand& o, int& result) {
  auto* cmd = app.add_subcommand("verify", "recompute a receipt and compare bit for bit");
  add_receipts(*cmd, o);
  add_required_keys(*cmd, o);
  cmd->add_option("--model-name", o.model.model_name,
                  "the checkpoint: a folder, or org/name[@revision] on the Hugging Face hub");
  cmd->add_flag("--offline", o.model.offline, "download nothing: only what the Hugging Face cache has");
  cmd->add_option("--plan", o.model.plan,
                  "compare with this compiled plan instead of compiling the checkpoint");
  cmd->add_option("--model", o.onnx_model, "of a receipt of tensors: the .onnx file");
  cmd->add_option("--input", o.inputs, "of a receipt of tensors: NAME=FILE.npy for every input")
      ->allow_extra_args(false);
  cmd->add_option("--text", o.text, "of a receipt of embed, with --model-name: the text");
  cmd->add_option("--prompt-name", o.prompt_name, "with --text: as in embed");
  cmd->add_option("--query", o.query, "of a receipt of rerank, with --model-name: the query");
  cmd->add_option("--document", o.document, "with --query: the document");
  cmd->add_option("--bind", o.bound, "with --model: as in compile")->allow_extra_args(false);
  cmd->add_option("--dim", o.dims, "with --model: as in compile")->allow_extra_args(false);
  cmd->add_option("--choices", o.choices, "with --model: as in compile")->capture_default_str();
  add_execution(*cmd, o.execution);
  add_partitions(*cmd, o.execution);
  auto* spot = cmd->add_option("--spot", o.selection.spot, "compute only N steps, chosen by hash and salt")
                   ->check(whole(1, INT32_MAX));
  cmd->add_option("--salt", o.selection.salt, "of --spot (default: a random one, which is printed)")
      ->check([](const std::string& salt) -> std::string {
        return salt.empty() ? "empty: give a text that the prover could not know, or leave --salt out" : "";
      })
      ->needs(spot);
  cmd->add_option("--steps", o.steps, "A:B: compute only the steps from A up to, and without, B; from 0")
      ->excludes(spot);
  cmd->add_flag("--json", o.json, "the verdict as JSON");
  cmd->add_option("--task-dir", o.model.task_dir, "as REE has it; verify keeps nothing, so it has no effect");
  cmd->add_option("--tasks-root", o.model.tasks_root, "the same");
  cmd->callback([&o, &result] {
    take_receipts(o);
    result = verify(o);
  });
}

void add_show(CLI::App& app, ReceiptCommand& o, int& result) {
  auto* cmd = app.add_subcommand(
      "show", "print what a receipt says: model, prompt, answer, sampling, signers; compute nothing");
  add_receipts(*cmd, o);
  cmd->add_flag("--json", o.json, "one JSON object for each receipt");
  cmd->callback([&o, &result] {
    take_receipts(o);
    result = show(o);
  });
}

void add_digest(CLI::App& app, DigestCommand& o, int& result) {
  auto* cmd = app.add_subcommand("digest", "model -> the digests that its receipts bind, to publish them");
  cmd->add_option("model", o.model.model_name,
                  "checkpoint folder, or org/name[@revision] on the Hugging Face hub")
      ->required();
  cmd->add_option("--revision", o.model.revision, "branch, tag or commit of a hub model (default: main)");
  cmd->add_flag("--offline", o.model.offline, "download nothing: only what the Hugging Face cache has");
  add_numerics(*cmd, o.model.profile);
  add_operation_set(*cmd, o.operation_set);
  cmd->add_flag("--json", o.json, "one JSON object instead of the lines");
  cmd->callback([&o, &result] { result = digest(o); });
}

void add_keygen(CLI::App& app, KeyCommand& o, int& result) {
  auto* cmd = app.add_subcommand("keygen", "make an Ed25519 key for --sign");
  cmd->add_option("path", o.path, "the private key; PATH.pub becomes the public one")->required();
  cmd->add_flag("--json", o.json, "one JSON object");
  cmd->callback([&o, &result] { result = keygen(o); });
}

void add_sign(CLI::App& app, SealCommand& o, int& result) {
  auto* cmd = app.add_subcommand("sign", "add a signature to receipts or batches");
  cmd->add_option("receipt", o.receipts, "receipts, and batches of them")->required();
  cmd->add_option("--key", o.keys, "the private key; repeatable")->required()->allow_extra_args(false);
  cmd->add_flag("--json", o.json, "one JSON object a signature");
  cmd->callback([&o, &result] { result = sign(o); });
}

void add_redact(CLI::App& app, SealCommand& o, int& result) {
  auto* cmd = app.add_subcommand("redact", "a receipt with the same hash that does not show its prompt");
  cmd->add_option("receipt", o.receipts, "a receipt of `run --salt-prompt`")->required()->expected(1);
  cmd->add_option("-o,--output", o.output, "the redacted receipt")->required();
  cmd->add_flag("--json", o.json, "one JSON object instead of the hash");
  cmd->callback([&o, &result] { result = redact(o); });
}

void add_seal(CLI::App& app, SealCommand& o, int& result) {
  auto* cmd = app.add_subcommand("seal", "receipts -> a batch with one hash");
  cmd->add_option("receipt", o.receipts, "receipts in the batch's folder or below it")->required();
  cmd->add_option("-o,--output", o.output, "the batch")->required();
  cmd->add_option("--sign", o.keys, "sign the batch with this private key; repeatable")
      ->allow_extra_args(false);
  cmd->add_flag("--json", o.json, "one JSON object instead of the hash");
  cmd->callback([&o, &result] { result = seal(o); });
}

// Where the model of a dispute is, and how this side computes.
void add_disputed_model(CLI::App& app, DisputeCommand& o) {
  app.add_option("--model-name", o.model.model_name,
                 "the checkpoint: a folder, or org/name in the Hugging Face cache");
  app.add_option("--plan", o.model.plan, "use this compiled plan instead of compiling the checkpoint");
  add_execution(app, o.execution);
  app.parse_complete_callback([&o] {  // instead of looking for a GPU
    const std::string& device = o.execution.device;
    if (device != "cpu")
      throw Refused{{not_covered("--device " + device +
                                 ": the results of single operations are observed on the CPU alone: leave "
                                 "--device out"),
                     ""}};
  });
}

void add_trace(CLI::App& app, DisputeCommand& o, int& result) {
  auto* cmd = app.add_subcommand("trace", "receipt -> commitments to every result of its forward pass");
  cmd->add_option("receipt", o.receipt, "a receipt")->required();
  add_disputed_model(*cmd, o);
  auto* rows = cmd->add_option("--rows", o.rows, "instead: the digests of the rows of this value of the plan")
                   ->check(whole(0, INT32_MAX));
  cmd->add_option("--values", o.values, "VALUE:ROW: instead: this row, and the rows that it is computed from")
      ->excludes(rows);
  cmd->add_option("-o,--output", o.output, "the file (default: standard output)");
  cmd->add_flag_callback(
      "--json", [] {}, "accepted as in other commands: the result is JSON");
  cmd->callback([&o, &result] { result = trace(o); });
}

void add_diff(CLI::App& app, DisputeCommand& o, int& result) {
  auto* cmd = app.add_subcommand(
      "diff", "two receipts, traces or models -> the first difference and its likely cause");
  cmd->add_option("a", o.file, "a receipt, what `trace` wrote, or a model: its folder or org/name")
      ->required();
  auto* other =
      cmd->add_option("b", o.other, "the other side's; without it a receipt is compared with this machine");
  cmd->add_option("--receipt", o.receipt, "with two files of values: which side is right, computed here")
      ->needs(other);
  add_disputed_model(*cmd, o);
  cmd->add_flag("--json", o.json, "the difference as JSON");
  cmd->callback([&o, &result] { result = diff(o); });
}

void add_answer(CLI::App& app, DisputeCommand& o, int& result) {
  auto* cmd = app.add_subcommand("answer", "a judge's question -> a party's answer");
  cmd->add_option("question", o.file, "the file question.json of the case")->required();
  cmd->add_option("--receipt", o.receipt, "the disputed receipt")->required();
  add_disputed_model(*cmd, o);
  cmd->add_option("-o,--output", o.output, "the file (default: standard output)");
  cmd->add_flag_callback(
      "--json", [] {}, "accepted as in other commands: the answer is JSON");
  cmd->callback([&o, &result] { result = answer(o); });
}

void add_dispute(CLI::App& app, DisputeCommand& o, int& result) {
  auto* cmd =
      app.add_subcommand("dispute", "the answers of two parties -> the next question, or who is right");
  cmd->add_option("case", o.file, "a folder: a/1.json, b/1.json and so on are the parties' answers")
      ->required();
  cmd->add_option("--receipt", o.receipt, "the disputed receipt")->required();
  add_disputed_model(*cmd, o);
  cmd->add_flag("--close", o.close, "a party that has not answered the question loses");
  cmd->add_flag("--json", o.json, "the question or the verdict as JSON");
  cmd->callback([&o, &result] { result = judge(o); });
}

}  // namespace

void add_receipt_commands(CLI::App& app, ReceiptCommands& c, int& result) {
  add_validate(app, c.validate, result);
  add_verify(app, c.verify, result);
  add_show(app, c.show, result);
  add_digest(app, c.digest, result);
  add_keygen(app, c.keygen, result);
  add_sign(app, c.sign, result);
  add_redact(app, c.redact, result);
  add_seal(app, c.seal, result);
  add_trace(app, c.trace, result);
  add_diff(app, c.diff, result);
  add_answer(app, c.answer, result);
  add_dispute(app, c.dispute, result);
}

}  // namespace invar::cli
