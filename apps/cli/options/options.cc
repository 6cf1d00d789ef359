// The options of the command line.
#include "base/text/decimal.h"
#include "base/thread_pool.h"
#include "console.h"
#include "options/shared.h"
#include "options/values.h"

namespace invar::cli {
namespace {

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
  auto* cmd = app.add_subcommand("run", "export, compile, infer, decode; write a receipt")->alias("run-all");
  add_model(*cmd, o.model);
  auto* text = cmd->add_option("--prompt-text", o.prompt_text, "the prompt; - is standard input");
  auto* file = cmd->add_option(
      "--prompt-file", o.prompt_file,
      "JSON lines: a string, a list of messages, or an object with \"prompt\" or \"messages\"; one "
      "receipt each");
  auto* messages =
      cmd->add_option("--messages", o.messages,
                      "a JSON list of messages, or an object with \"messages\", which the model's "
                      "chat template makes the prompt of");
  auto* user =
      cmd->add_option("--user", o.user,
                      "one question to a chat model, which its chat template makes the prompt of; - is "
                      "standard input");
  text->excludes(file)->excludes(messages)->excludes(user);
  file->excludes(messages)->excludes(user);
  messages->excludes(user);
  cmd->add_option("--batch-size", o.batch_size,
                  "compute N prompts of --prompt-file together; never changes a bit")
      ->check(whole(1, 1 << 16))
      ->needs(file)
      ->capture_default_str();
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
  add_partitions(*cmd, o.execution);
  cmd->add_flag("--no-kv-cache", o.execution.no_kv_cache, "recompute the whole sequence at every token");
  add_explain(*cmd, o.execution);
  add_operation_set(*cmd, o.operation_set);
  add_numerics(*cmd, o.model.profile);
  cmd->add_option(
      "--receipt-path", o.receipt_path,
      "where the receipt goes, also in place of another (default: receipt.json, and receipt-2.json "
      "where that is there)");
  cmd->add_flag("--record-model-path", o.record_model_path,
                "also write the path of the model on this machine into the receipt");
  cmd->add_option("--sign", o.sign, "sign every receipt with this private key of `invar keygen`; repeatable")
      ->allow_extra_args(false);
  cmd->add_flag("--salt-prompt", o.salt_prompt, "so that `invar redact` can withhold the prompt");
  cmd->add_option("--previous", o.previous, "the receipt of the turn before, which the new one then binds");
  cmd->add_flag("--json", o.json, "one JSON object per prompt on standard output");
  cmd->callback([&o, &result, text, user, file, messages] {
    if (!*text && !*user && !*file && !*messages)
      throw CLI::RequiredError("--prompt-text, --user, --prompt-file or --messages");
    const bool chat = !o.tools.empty() || o.chat.system || o.chat.enable_thinking || !o.chat.date.empty();
    if (*text && chat)
      throw CLI::ValidationError(
          "--tools, --system, --enable-thinking and --date are for --user and messages, not for "
          "--prompt-text");
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
  add_partitions(*cmd, o.execution);
  add_operation_set(*cmd, o.operation_set);
  add_numerics(*cmd, o.model.profile);
  cmd->add_option("--receipts", o.receipts, "the folder of turn-1.json, turn-2.json, ...")
      ->capture_default_str();
  cmd->add_option("--context", o.context, "positions that the conversation may take, at most the model's")
      ->check(whole(1, 1 << 30))
      ->capture_default_str();
  cmd->add_flag("--no-history", o.no_history, "neither read nor keep the lines that were typed before");
  cmd->add_flag("--record-model-path", o.record_model_path,
                "also write the path of the model on this machine into the receipts");
  cmd->add_flag("--json", o.json, "one JSON object per answer on standard output");
  cmd->callback([&o, &result] { result = chat(o); });
}

void add_export(CLI::App& app, ExportCommand& o, int& result) {
  auto* cmd = app.add_subcommand("export", "checkpoint folder -> model.onnx with weights by reference");
  cmd->add_option("--model-name", o.model_name, "checkpoint folder, or org/name")->required();
  cmd->add_option("-o,--output", o.output, "folder for model.onnx")->required();
  cmd->add_flag("--colocate-tensors", o.colocate_tensors, "copy the weights instead of linking them");
  cmd->add_flag("--json", o.json, "one JSON object instead of the path");
  cmd->callback([&o, &result] { result = export_model(o); });
}

void add_compile(CLI::App& app, CompileCommand& o, int& result) {
  auto* cmd = app.add_subcommand("compile", "ONNX model -> plan");
  cmd->add_option("model", o.model, "a .onnx file")->required();
  auto* output = cmd->add_option(
      "-o,--output", o.output,
      "the plan; elsewhere than beside the model its weights are linked (default: plan.invar beside "
      "the model, or in the user's cache where that folder cannot be written)");
  auto* emit =
      cmd->add_option("--emit", o.emit,
                      "print the IR of a stage instead: onnx, repro, plan, torch, or after the pass of this "
                      "name; or the text of the program (spec/program.md), or torch-module: the source of a "
                      "torch.nn.Module");
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
  add_numerics(*cmd, o.profile);
  auto* accuracy = cmd->add_option(
      "--check-accuracy", o.accuracy_file,
      "with --numerics exact16: write no plan; compute these prompts, a text in each line or a JSON list of "
      "ids, under fp32 and exact16, and compare logits, losses and most likely tokens");
  cmd->add_option_function<std::string>(
         "--accuracy-bound",
         [&o](const std::string& text) {
           double& power = o.accuracy_bound.emplace();
           if (!text.starts_with("2^") || !parse_decimal(text.substr(2), power).empty())
             throw CLI::ValidationError("--accuracy-bound", text + " is no power of two such as 2^-8");
         },
         "with --check-accuracy: the largest relative error of the logits, as a power of two (default: "
         "2^-8)")
      ->type_name("NUMBER")
      ->needs(accuracy);
  cmd->add_option("--choices", o.choices,
                  "numerics choices that may be applied: all, none, or names, comma separated "
                  "(spec/choices.md)")
      ->capture_default_str();
  cmd->add_flag("--stateless", o.stateless,
                "past keys and values stay inputs and outputs: a plan for `infer --input`");
  cmd->add_flag("--json", o.json, "one JSON object instead of the lines");
  auto* parts = cmd->add_option("--n-partitions", o.partitions, "with --report: the number of partitions")
                    ->check(whole(1, 1 << 16));
  auto* ranks = cmd->add_option("--tensor-parallel", o.tensor_parallel,
                                "with --report: the number of ranks that divide each partition")
                    ->check(whole(1, 1 << 10));
  auto* report =
      cmd->add_flag("--report", o.report,
                    "write no plan and read no weights: print the layers, bytes and estimated time "
                    "of each partition and rank");
  parts->needs(report), ranks->needs(report);
  accuracy->excludes(output), accuracy->excludes(emit), accuracy->excludes(report);
  cmd->callback([&o, &result] { result = compile(o); });
}

void add_encode(CLI::App& app, TokensCommand& o, int& result) {
  auto* cmd = app.add_subcommand("encode", "text -> token ids");
  cmd->add_option("--model-name", o.model_name, "checkpoint folder, or org/name")->required();
  cmd->add_option("--prompt-text", o.text, "the text; - is standard input")->required();
  cmd->add_flag("--json", o.json, "an object with the ids instead of their list");
  cmd->callback([&o, &result] { result = encode(o); });
}

void add_render(CLI::App& app, RenderCommand& o, int& result) {
  auto* cmd =
      app.add_subcommand("render", "messages -> the text of the prompt, by the model's chat template");
  cmd->add_option("--model-name", o.model_name, "checkpoint folder, or org/name")->required();
  auto* messages =
      cmd->add_option("--messages", o.messages, "a JSON list of messages, or an object with \"messages\"");
  auto* user = cmd->add_option("--user", o.user, "one message of a user; - is standard input");
  messages->excludes(user);
  add_chat(*cmd, o.chat, o.tools);
  cmd->add_flag("--json", o.json, "an object with the prompt and what a receipt binds as input.chat");
  cmd->callback([&o, &result, messages, user] {
    if (!*messages && !*user) throw CLI::RequiredError("--messages or --user");
    result = render(o);
  });
}

void add_infer(CLI::App& app, InferCommand& o, int& result) {
  auto* cmd =
      app.add_subcommand("infer", "plan + token ids -> new token ids, or logits; plan + tensors -> tensors");
  cmd->add_option("plan", o.plan, "a compiled plan")->required();
  add_numerics(*cmd, o.profile);
  cmd->add_option("--tokens", o.tokens,
                  "ids, comma separated; given several times, sequences that are computed together")
      ->allow_extra_args(false);
  cmd->add_option("--tokens-file", o.tokens_file, "a JSON list of ids, or a list of those");
  cmd->add_option("--stop-tokens", o.stop_tokens, "ids that end the answer")
      ->delimiter(',')
      ->check(whole(0, INT32_MAX));
  add_sampling(*cmd, o.sampling);
  add_execution(*cmd, o.execution);
  add_partitions(*cmd, o.execution);
  cmd->add_flag("--no-kv-cache", o.execution.no_kv_cache, "recompute the whole sequence at every token");
  add_explain(*cmd, o.execution);
  cmd->add_option("-o,--output", o.output, "JSON result (default: standard output)");
  cmd->add_option("--logits-output", o.logits_output,
                  "generate nothing; write the logits of every given token: f32 [tokens, vocab], of a name "
                  "in .npy as NumPy reads it, else little-endian bytes");
  cmd->add_option("--input", o.inputs,
                  "NAME=FILE.npy for every input of a plan without memory: tensors instead of tokens");
  cmd->add_option("--tensors-output", o.tensors_output,
                  "with --input: write each output to FOLDER/NAME.npy, too; the folder is made");
  cmd->add_option("--receipt-path", o.receipt_path, "with --input: where the receipt goes");
  cmd->add_flag_callback(
      "--json", [] {}, "accepted as in other commands: the result is JSON");
  cmd->callback([&o, &result] { result = infer(o); });
}

void add_decode(CLI::App& app, TokensCommand& o, int& result) {
  auto* cmd = app.add_subcommand("decode", "token ids -> text");
  cmd->add_option("--model-name", o.model_name, "checkpoint folder, or org/name")->required();
  cmd->add_option("--tokens", o.tokens, "ids, comma separated")->delimiter(',')->check(whole(0, INT32_MAX));
  cmd->add_option("file", o.file, "the JSON that infer wrote, or a JSON list of ids");
  cmd->add_flag("--json", o.json, "an object with the text");
  cmd->callback([&o, &result] { result = decode(o); });
}

void add_download(CLI::App& app, DownloadCommand& o, int& result) {
  auto* cmd =
      app.add_subcommand("download", "model of the Hugging Face hub -> the local cache; prints its folder");
  cmd->add_option("model", o.model_name, "org/name or org/name@revision")->required();
  cmd->add_option("--revision", o.revision, "branch, tag or commit (default: main)");
  cmd->add_flag("--json", o.json, "one JSON object instead of the path");
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
  prune->add_option("--older-than", o.days, "those that no run has used for N days")->check(whole(0, 36500));
  prune->add_option("--max-size", o.max_size,
                    "the least recently used, until this is left: bytes, or as in 20GB");
  prune->add_flag("--all", o.all, "all");
  prune->callback([&o, &result] { result = prune_cache(o); });
}

void add_doctor(CLI::App& app, DoctorCommand& o, int& result) {
  auto* cmd =
      app.add_subcommand("doctor", "check every kernel of this build on this machine against known answers");
  cmd->add_option("--rooms", o.options.rooms, "known answers from FOLDER/OPERATION/*.txt");
  cmd->add_option("--threads", o.options.threads, "worker threads (default, 0: one per core)")
      ->check(whole(0, kMaxThreads));
  cmd->add_option("--soak", o.options.soak, "go on for N seconds: faulty hardware may need a while to show")
      ->check(seconds(1e6));
  cmd->add_option(
      "--report", o.report,
      "also write what an issue needs to a file: versions, processor, GPU, limits, environment and "
      "findings as JSON, without names of users and folders");
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
  check_isa(cmd->add_option("--isa", o.settings.isas, "instruction sets, comma separated (default: the best)")
                ->delimiter(','));
  check_device(cmd->add_option("--device", o.settings.device, "cpu, cuda or cuda:N")->capture_default_str(),
               /*is_list=*/false);
  cmd->parse_complete_callback([&o] { expect_device(o.settings.device); });
  cmd->add_option("--seconds", o.settings.seconds, "per operation, shape and thread count")
      ->check(seconds(3600))
      ->capture_default_str();
  cmd->add_option("--peer", o.settings.peer, "also time this library, in turns")
      ->check(CLI::IsMember({"torch"}));
  cmd->add_option("--python", o.settings.python, "the Python that has the peer");
  cmd->add_option("--model-name", o.model_name, "of the suite model: checkpoint folder, or org/name");
  add_numerics(*cmd, o.settings.profile);
  cmd->add_option("--plot", o.plot, "also draw the result (SVG)");
  cmd->add_flag("--json", o.json, "the result as one JSON object");
  cmd->callback([&o, &result] { result = bench(o); });
}

}  // namespace

void add_commands(CLI::App& app, Commands& c, int& result) {
  add_run(app, c.run, result);
  add_conversation(app, c.chat, result);
  add_export(app, c.export_model, result);
  add_compile(app, c.compile, result);
  add_render(app, c.render, result);
  add_encode(app, c.encode, result);
  add_infer(app, c.infer, result);
  add_decode(app, c.decode, result);
  add_encoder_commands(app, c.encoders, result);
  add_receipt_commands(app, c.receipts, result);
  add_download(app, c.download, result);
  add_cache(app, c.cache, result);
  add_doctor(app, c.doctor, result);
  add_bench(app, c.bench, result);
}

}  // namespace invar::cli
