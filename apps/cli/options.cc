// The options of the command line. The only file that includes CLI11 (6 s of compile time).
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>

#include "base/text/decimal.h"
#include "base/thread_pool.h"
#include "commands.h"
#include "console.h"

namespace invar::cli {
namespace {

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
}

void add_operation_set(CLI::App& app, std::string& set) {
  app.add_option("--operation-set", set,
                 "what is promised of the bits: default (nothing), deterministic (the same in every run "
                 "on this machine), reproducible (the same on any machine; the default)");
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
  app.add_option("--device", o.device, "cpu, cuda or cuda:N; never changes a bit")->capture_default_str();
  app.add_flag("--cpu-only", o.cpu_only, "never use a GPU");
  app.add_option("--threads", o.threads, "worker threads (default, 0: one per core)")
      ->check(whole(0, kMaxThreads));
  app.add_option("--isa", o.isa, "force one instruction set: reference, scalar, avx2, avx512, neon");
  app.add_option("--prefill-chunk", o.prefill_chunk, "prompt tokens per step (default: 256)")
      ->check(whole(0, 1 << 20));
}

void add_explain(CLI::App& app, ExecutionOptions& o) {
  app.add_flag_callback(
      "--explain", [&o] { o.explain = write_stderr; },
      "print what each pass that prepares the plan leaves, on standard error: kernels, views, fused "
      "operations, buffers, layouts");
}

void add_sampling(CLI::App& app, SamplingOptions& o) {
  app.add_option("--max-new-tokens", o.max_new_tokens, "at most this many new tokens (default: 128)")
      ->check(whole(1, 1 << 30));
  add_decimal(app, "--temperature", o.temperature, "divide logits by this; > 0");
  app.add_option("--top-k", o.top_k, "keep the k most likely tokens; 0 = all")->check(whole(0, INT32_MAX));
  add_decimal(app, "--top-p", o.top_p, "keep the smallest set with this probability; 1 = all");
  add_decimal(app, "--min-p", o.min_p,
              "keep the tokens of at least this probability, the best one's being 1; 0 = all");
  add_decimal(app, "--repetition-penalty", o.repetition_penalty,
              "above 1, tokens of prompt and answer are less likely to come again; 1 = none");
  app.add_option("--no-repeat-ngram-size", o.no_repeat_ngram_size,
                 "no so many tokens in a row come twice in prompt and answer; 0 = no limit")
      ->check(whole(0, INT32_MAX));
  app.add_option("--min-new-tokens", o.min_new_tokens, "no stop token comes before so many new tokens")
      ->check(whole(0, 1 << 30));
  app.add_option_function<std::vector<int32_t>>(
         "--suppress-tokens", [&o](const std::vector<int32_t>& ids) { o.suppress_tokens = ids; },
         "ids that are never chosen, comma separated")
      ->allow_extra_args(false)
      ->delimiter(',')
      ->check(whole(0, INT32_MAX));
  app.add_option("--seed", o.seed, "seed of the counter-based generator")
      ->check(whole(0, UINT64_MAX))
      ->capture_default_str();
  auto* greedy = app.add_flag_callback(
      "--no-do-sample", [&o] { o.do_sample = false; }, "always take the most likely token");
  for (const char* drawing : {"--temperature", "--top-k", "--top-p", "--min-p"})
    greedy->excludes(app.get_option(drawing));
}

void add_chat(CLI::App& app, ChatOptions& o, std::string& tools) {
  app.add_option("--tools", tools, "a JSON list of tools, which the chat template shows to the model");
  app.add_option("--system", o.system, "a system message in front of the others");
  app.add_flag_callback(
         "--enable-thinking", [&o] { o.enable_thinking = true; },
         "the template's switch: the model thinks before it answers")
      ->excludes(app.add_flag_callback(
          "--no-enable-thinking", [&o] { o.enable_thinking = false; }, "the template's switch: it does not"));
  app.add_option("--date", o.date,
                 "2026-11-24T15:04:05: what the template takes for the date, if it asks (default: now)");
}

void add_run(CLI::App& app, RunCommand& o, int& result) {
  auto* cmd = app.add_subcommand("run", "export, compile, infer, decode; write a receipt");
  add_model(*cmd, o.model);
  auto* text = cmd->add_option("--prompt-text", o.prompt_text, "the prompt");
  auto* file =
      cmd->add_option("--prompt-file", o.prompt_file,
                      "JSON lines: a string, or an object with \"prompt\" or \"messages\"; one receipt each");
  auto* messages =
      cmd->add_option("--messages", o.messages,
                      "a JSON list of messages, or an object with \"messages\", which the model's "
                      "chat template makes the prompt of");
  text->excludes(file)->excludes(messages);
  file->excludes(messages);
  add_chat(*cmd, o.chat, o.tools);
  add_sampling(*cmd, o.sampling);
  cmd->add_option_function<std::vector<std::string>>(
         "--stop", [&o](const std::vector<std::string>& texts) { o.sampling.stop_strings = texts; },
         "a text that ends the answer, which keeps it; once for each text")
      ->allow_extra_args(false)
      ->type_name("TEXT");
  cmd->add_flag("--no-generation-config", o.sampling.no_generation_config,
                "take no defaults of sampling and length from the checkpoint's generation_config.json");
  add_execution(*cmd, o.execution);
  cmd->add_flag("--no-kv-cache", o.execution.no_kv_cache, "recompute the whole sequence at every token");
  add_explain(*cmd, o.execution);
  add_operation_set(*cmd, o.operation_set);
  cmd->add_option("--receipt-path", o.receipt_path, "where the receipt goes")->capture_default_str();
  cmd->add_flag("--record-model-path", o.record_model_path,
                "also write the path of the model on this machine into the receipt");
  cmd->add_option("--sign", o.sign, "sign every receipt with this private key of `invar keygen`; repeatable")
      ->allow_extra_args(false);
  cmd->add_flag("--salt-prompt", o.salt_prompt, "so that `invar redact` can withhold the prompt");
  cmd->add_option("--previous", o.previous, "the receipt of the turn before, which the new one then binds");
  cmd->add_flag("--json", o.json, "one JSON object per prompt on standard output");
  cmd->callback([&o, &result, text, file, messages] {
    if (!*text && !*file && !*messages)
      throw CLI::RequiredError("--prompt-text, --prompt-file or --messages");
    const bool chat = !o.tools.empty() || o.chat.system || o.chat.enable_thinking || !o.chat.date.empty();
    if (*text && chat)
      throw CLI::ValidationError(
          "--tools, --system, --enable-thinking and --date are for messages, not for --prompt-text");
    result = run(o);
  });
}

void add_conversation(CLI::App& app, ChatCommand& o, int& result) {
  auto* cmd = app.add_subcommand("chat", "a conversation in the terminal; a receipt of each answer");
  add_model(*cmd, o.model);
  add_chat(*cmd, o.chat, o.tools);
  add_sampling(*cmd, o.sampling);
  cmd->add_flag("--no-generation-config", o.sampling.no_generation_config,
                "take no defaults of sampling and length from the checkpoint's generation_config.json");
  add_execution(*cmd, o.execution);
  add_operation_set(*cmd, o.operation_set);
  cmd->add_option("--receipts", o.receipts, "the folder of turn-1.json, turn-2.json, ...")
      ->capture_default_str();
  cmd->add_option("--context", o.context, "positions that the conversation may take, at most the model's")
      ->check(whole(1, 1 << 30))
      ->capture_default_str();
  cmd->add_flag("--record-model-path", o.record_model_path,
                "also write the path of the model on this machine into the receipts");
  cmd->callback([&o, &result] { result = chat(o); });
}

void add_export(CLI::App& app, ExportCommand& o, int& result) {
  auto* cmd = app.add_subcommand("export", "checkpoint folder -> model.onnx with weights by reference");
  cmd->add_option("--model-name", o.model_name, "checkpoint folder, or org/name")->required();
  cmd->add_option("-o,--output", o.output, "folder for model.onnx")->required();
  cmd->add_flag("--colocate-tensors", o.colocate_tensors, "copy the weights instead of linking them");
  cmd->callback([&o, &result] { result = export_model(o); });
}

void add_compile(CLI::App& app, CompileCommand& o, int& result) {
  auto* cmd = app.add_subcommand("compile", "ONNX model -> plan");
  cmd->add_option("model", o.model, "a .onnx file")->required();
  cmd->add_option("-o,--output", o.output, "the plan (default: plan.invar beside the model)");
  cmd->add_option(
      "--emit", o.emit,
      "print the IR of a stage instead: onnx, repro, plan, or behind a pass of this name; or the text of "
      "the program (spec/program.md)");
  cmd->add_option("--opt", o.opt,
                  "0 to 3: how much is rewritten (default: 3); never changes a bit of what is computed")
      ->check(whole(0, 3));
  cmd->add_option("--size", o.sizes,
                  "NAME=N: memory is reported for this size of an open dimension (default: 64); the plan "
                  "stays as it is")
      ->allow_extra_args(false);
  cmd->add_option("--bind", o.bound,
                  "NAME=FILE.npy: this input's value, known from now on (shapes, axes, sizes); once for "
                  "each input")
      ->allow_extra_args(false);
  cmd->add_option("--dim", o.dims,
                  "NAME=N: the plan is for this size of a dimension alone: NAME as the model says it, or "
                  "INPUT.AXIS where it has no name (input.0=1); once for each dimension")
      ->allow_extra_args(false);
  add_operation_set(*cmd, o.operation_set);
  cmd->add_option("--choices", o.choices,
                  "numerics choices that may be applied: all, none, or names, comma separated "
                  "(spec/choices.md)")
      ->capture_default_str();
  cmd->add_flag("--stateless", o.stateless,
                "past keys and values stay inputs and outputs: a plan for `infer --input`");
  cmd->callback([&o, &result] { result = compile(o); });
}

void add_encode(CLI::App& app, TokensCommand& o, int& result) {
  auto* cmd = app.add_subcommand("encode", "text -> token ids");
  cmd->add_option("--model-name", o.model_name, "checkpoint folder, or org/name")->required();
  cmd->add_option("--prompt-text", o.text, "the text")->required();
  cmd->callback([&o, &result] { result = encode(o); });
}

void add_render(CLI::App& app, RenderCommand& o, int& result) {
  auto* cmd =
      app.add_subcommand("render", "messages -> the text of the prompt, by the model's chat template");
  cmd->add_option("--model-name", o.model_name, "checkpoint folder, or org/name")->required();
  cmd->add_option("--messages", o.messages, "a JSON list of messages, or an object with \"messages\"")
      ->required();
  add_chat(*cmd, o.chat, o.tools);
  cmd->add_flag("--json", o.json, "an object with the prompt and what a receipt binds as input.chat");
  cmd->callback([&o, &result] { result = render(o); });
}

void add_infer(CLI::App& app, InferCommand& o, int& result) {
  auto* cmd =
      app.add_subcommand("infer", "plan + token ids -> new token ids, or logits; plan + tensors -> tensors");
  cmd->add_option("plan", o.plan, "a compiled plan")->required();
  cmd->add_option("--tokens", o.tokens,
                  "ids, comma separated; given several times, sequences that are computed together")
      ->allow_extra_args(false);
  cmd->add_option("--tokens-file", o.tokens_file, "a JSON list of ids, or a list of those");
  cmd->add_option("--stop-tokens", o.stop_tokens, "ids that end the answer")
      ->delimiter(',')
      ->check(whole(0, INT32_MAX));
  add_sampling(*cmd, o.sampling);
  add_execution(*cmd, o.execution);
  cmd->add_flag("--no-kv-cache", o.execution.no_kv_cache, "recompute the whole sequence at every token");
  add_explain(*cmd, o.execution);
  cmd->add_option("-o,--output", o.output, "JSON result (default: standard output)");
  cmd->add_option("--logits-output", o.logits_output,
                  "generate nothing; write the logits of every given token (little-endian f32 [tokens, "
                  "vocab])");
  cmd->add_option("--input", o.inputs,
                  "NAME=FILE.npy for every input of a plan without memory: tensors instead of tokens");
  cmd->add_option("--tensors-output", o.tensors_output,
                  "with --input: write each output to FOLDER/NAME.npy, too");
  cmd->add_option("--receipt-path", o.receipt_path, "with --input: where the receipt goes");
  cmd->callback([&o, &result] { result = infer(o); });
}

void add_decode(CLI::App& app, TokensCommand& o, int& result) {
  auto* cmd = app.add_subcommand("decode", "token ids -> text");
  cmd->add_option("--model-name", o.model_name, "checkpoint folder, or org/name")->required();
  cmd->add_option("--tokens", o.tokens, "ids, comma separated")->delimiter(',')->check(whole(0, INT32_MAX));
  cmd->add_option("file", o.file, "the JSON that infer wrote, or a JSON list of ids");
  cmd->callback([&o, &result] { result = decode(o); });
}

void add_required_keys(CLI::App& app, ReceiptCommand& o) {
  app.add_option("--require-key", o.require_keys,
                 "fail where this key did not sign: its .pub file or its 64 digits; repeatable, all are "
                 "needed")
      ->allow_extra_args(false);
}

void add_validate(CLI::App& app, ReceiptCommand& o, int& result) {
  auto* cmd = app.add_subcommand("validate", "check a receipt's structure, hashes and signatures");
  cmd->add_option("receipt", o.receipts, "receipts, and batches of them")->required();
  add_required_keys(*cmd, o);
  cmd->add_flag("--json", o.json, "the verdict as JSON");
  cmd->callback([&o, &result] { result = validate(o); });
}

void add_verify(CLI::App& app, ReceiptCommand& o, int& result) {
  auto* cmd = app.add_subcommand("verify", "recompute a receipt and compare bit for bit");
  cmd->add_option("receipt", o.receipts, "receipts, and batches of them")->required();
  add_required_keys(*cmd, o);
  cmd->add_option("--model-name", o.model.model_name,
                  "the checkpoint: a folder, or org/name[@revision] on the Hugging Face hub");
  cmd->add_flag("--offline", o.model.offline, "download nothing: only what the Hugging Face cache has");
  cmd->add_option("--plan", o.model.plan,
                  "compare with this compiled plan instead of compiling the checkpoint");
  cmd->add_option("--model", o.onnx_model, "of a receipt of tensors: the .onnx file");
  cmd->add_option("--input", o.inputs, "of a receipt of tensors: NAME=FILE.npy for every input")
      ->allow_extra_args(false);
  cmd->add_option("--bind", o.bound, "with --model: as in compile")->allow_extra_args(false);
  cmd->add_option("--dim", o.dims, "with --model: as in compile")->allow_extra_args(false);
  cmd->add_option("--choices", o.choices, "with --model: as in compile")->capture_default_str();
  add_execution(*cmd, o.execution);
  auto* spot =
      cmd->add_option("--spot", o.selection.spot, "compute only so many steps, chosen by hash and salt")
          ->check(whole(1, INT32_MAX));
  cmd->add_option("--salt", o.selection.salt, "of --spot (default: a random one, which is printed)")
      ->needs(spot);
  cmd->add_option("--steps", o.steps, "A:B: compute only the steps from A up to, and without, B; from 0")
      ->excludes(spot);
  cmd->add_flag("--json", o.json, "the verdict as JSON");
  cmd->callback([&o, &result] { result = verify(o); });
}

void add_download(CLI::App& app, DownloadCommand& o, int& result) {
  auto* cmd =
      app.add_subcommand("download", "model of the Hugging Face hub -> the local cache; prints its folder");
  cmd->add_option("model", o.model_name, "org/name or org/name@revision")->required();
  cmd->add_option("--revision", o.revision, "branch, tag or commit (default: main)");
  cmd->callback([&o, &result] { result = download(o); });
}

void add_cache(CLI::App& app, CacheCommand& o, int& result) {
  auto* cmd = app.add_subcommand("cache", "exports and plans that runs keep, models of the Hugging Face hub");
  cmd->require_subcommand(1);
  const auto tasks_root = [&](CLI::App* one) {
    one->add_option("--tasks-root", o.tasks_root, "where task folders are (default: the user's cache)");
    one->add_flag("--json", o.json, "one JSON object");
    return one;
  };
  auto* list = tasks_root(cmd->add_subcommand("list", "what is kept: sizes and times of the last use"));
  list->callback([&o, &result] { result = list_cache(o); });
  auto* prune = tasks_root(cmd->add_subcommand("prune", "remove task folders; one that a run uses stays"));
  prune->add_option("--older-than", o.days, "those that no run has used for so many days")
      ->check(whole(0, 36500));
  prune->add_option("--max-size", o.max_size,
                    "the least recently used, until this is left: bytes, or as in 20GB");
  prune->add_flag("--all", o.all, "all");
  prune->callback([&o, &result] { result = prune_cache(o); });
}

void add_keygen(CLI::App& app, KeyCommand& o, int& result) {
  auto* cmd = app.add_subcommand("keygen", "make an Ed25519 key for --sign");
  cmd->add_option("path", o.path, "the private key; PATH.pub becomes the public one")->required();
  cmd->callback([&o, &result] { result = keygen(o); });
}

void add_sign(CLI::App& app, SealCommand& o, int& result) {
  auto* cmd = app.add_subcommand("sign", "add a signature to receipts or batches");
  cmd->add_option("receipt", o.receipts, "receipts, and batches of them")->required();
  cmd->add_option("--key", o.keys, "the private key; repeatable")->required()->allow_extra_args(false);
  cmd->callback([&o, &result] { result = sign(o); });
}

void add_redact(CLI::App& app, SealCommand& o, int& result) {
  auto* cmd = app.add_subcommand("redact", "a receipt with the same hash that does not show its prompt");
  cmd->add_option("receipt", o.receipts, "a receipt of `run --salt-prompt`")->required()->expected(1);
  cmd->add_option("-o,--output", o.output, "the redacted receipt")->required();
  cmd->callback([&o, &result] { result = redact(o); });
}

void add_seal(CLI::App& app, SealCommand& o, int& result) {
  auto* cmd = app.add_subcommand("seal", "receipts -> a batch with one hash");
  cmd->add_option("receipt", o.receipts, "receipts in the batch's folder or below it")->required();
  cmd->add_option("-o,--output", o.output, "the batch")->required();
  cmd->add_option("--sign", o.keys, "sign the batch with this private key; repeatable")
      ->allow_extra_args(false);
  cmd->callback([&o, &result] { result = seal(o); });
}

// Where the model of a dispute is, and how this side computes.
void add_disputed_model(CLI::App& app, DisputeCommand& o) {
  app.add_option("--model-name", o.model.model_name,
                 "the checkpoint: a folder, or org/name in the Hugging Face cache");
  app.add_option("--plan", o.model.plan, "use this compiled plan instead of compiling the checkpoint");
  add_execution(app, o.execution);
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
  cmd->callback([&o, &result] { result = trace(o); });
}

void add_diff(CLI::App& app, DisputeCommand& o, int& result) {
  auto* cmd =
      app.add_subcommand("diff", "two receipts or traces -> the first difference and its likely cause");
  cmd->add_option("a", o.file, "a receipt, or what `trace` wrote")->required();
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

void add_doctor(CLI::App& app, DoctorCommand& o, int& result) {
  auto* cmd =
      app.add_subcommand("doctor", "check every kernel of this build on this machine against known answers");
  cmd->add_option("--rooms", o.options.rooms, "known answers from FOLDER/OPERATION/*.txt");
  cmd->add_option("--threads", o.options.threads, "worker threads (default, 0: one per core)")
      ->check(whole(0, kMaxThreads));
  cmd->add_option("--soak", o.options.soak,
                  "go on for so many seconds: faulty hardware may need a while to show")
      ->check(seconds(1e6));
  cmd->add_flag("--json", o.json, "the findings as JSON");
  cmd->callback([&o, &result] { result = doctor(o); });
}

void add_bench(CLI::App& app, BenchCommand& o, int& result) {
  auto* cmd = app.add_subcommand("bench", "time of every operation: of this machine's limits, and to a peer");
  cmd->add_option("suites", o.suites,
                  "math, norm, gemm, conv, decode, attention, move, model, all (default: all without model)");
  cmd->add_option("--op", o.settings.op, "one operation of spec/opset.toml");
  cmd->add_option("--shape", o.settings.shape, "with --op: this call instead, a line as in bench.txt");
  cmd->add_option("--threads", o.settings.threads,
                  "thread counts, comma separated (default: 1 and one per core)")
      ->delimiter(',')
      ->check(whole(1, kMaxThreads));
  cmd->add_option("--isa", o.settings.isas, "instruction sets, comma separated (default: the best)")
      ->delimiter(',');
  cmd->add_option("--device", o.settings.device, "cpu, cuda or cuda:N")->capture_default_str();
  cmd->add_option("--seconds", o.settings.seconds, "per operation, shape and thread count")
      ->check(seconds(3600))
      ->capture_default_str();
  cmd->add_option("--peer", o.settings.peer, "also time this library, in turns")
      ->check(CLI::IsMember({"torch"}));
  cmd->add_option("--python", o.settings.python, "the Python that has the peer");
  cmd->add_option("--model-name", o.model_name, "of the suite model: checkpoint folder, or org/name");
  cmd->add_option("--plot", o.plot, "also draw the result (SVG)");
  cmd->add_flag("--json", o.json, "the result as one JSON object");
  cmd->callback([&o, &result] { result = bench(o); });
}

// What the options of each command are read into.
struct Commands {
  RunCommand run;
  ExportCommand export_model;
  CompileCommand compile;
  TokensCommand encode, decode;
  ChatCommand chat;
  RenderCommand render;
  InferCommand infer;
  ReceiptCommand validate, verify;
  DownloadCommand download;
  CacheCommand cache;
  KeyCommand keygen;
  SealCommand sign, redact, seal;
  DisputeCommand trace, diff, answer, dispute;
  DoctorCommand doctor;
  BenchCommand bench;
};

}  // namespace

int parse_and_run(int argc, char** argv, bool environment_was_good) {
  CLI::App app{
      "Invar: AI inference that does not change with the machine.\n"
      "Exit codes: 0 done or verified, 1 verification failed, 2 bad input, 3 not covered, 70 internal "
      "error."};
  app.name("invar");
  app.require_subcommand(1);
  app.set_version_flag("--version", "invar " INVAR_VERSION);
  int result = 0;
  Commands c;
  c.doctor.options.environment_was_good = environment_was_good;
  add_run(app, c.run, result);
  add_conversation(app, c.chat, result);
  add_export(app, c.export_model, result);
  add_compile(app, c.compile, result);
  add_render(app, c.render, result);
  add_encode(app, c.encode, result);
  add_infer(app, c.infer, result);
  add_decode(app, c.decode, result);
  add_validate(app, c.validate, result);
  add_verify(app, c.verify, result);
  add_download(app, c.download, result);
  add_cache(app, c.cache, result);
  add_keygen(app, c.keygen, result);
  add_sign(app, c.sign, result);
  add_redact(app, c.redact, result);
  add_seal(app, c.seal, result);
  add_trace(app, c.trace, result);
  add_diff(app, c.diff, result);
  add_answer(app, c.answer, result);
  add_dispute(app, c.dispute, result);
  add_doctor(app, c.doctor, result);
  add_bench(app, c.bench, result);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    return fail(bad_input(std::string(e.what()) + ": see `invar --help`"));
  }
  return result;
}

}  // namespace invar::cli
