// The command line: parsing only. The only file that includes CLI11 (6 s of compile time).
#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <new>

#include "base/file/file.h"
#include "base/thread_pool.h"
#include "commands.h"
#include "console.h"
#include "num/env.h"

namespace {

using namespace invar::cli;

void add_model(CLI::App& app, ModelOptions& o) {
  app.add_option("--model-name", o.model_name, "checkpoint folder, or org/name in the Hugging Face cache")
      ->required();
  app.add_option("--plan", o.plan, "use this compiled plan instead of exporting and compiling");
  app.add_option("--task-dir", o.task_dir, "where the export and the plan of this model go");
  app.add_option("--tasks-root", o.tasks_root, "where task folders are made (default: the user's cache)");
  app.add_flag("--colocate-tensors", o.colocate_tensors,
               "copy weights into the task folder instead of linking them");
}

void add_operation_set(CLI::App& app, std::string& set) {
  app.add_option("--operation-set", set,
                 "what is promised of the bits: default (nothing), deterministic (the same in every run on "
                 "this machine), "
                 "reproducible (the same on any machine; the default)");
}

// CLI11 reads 010 as 8, takes +5 and 0x10, and wraps or cuts what is too large or negative. Only plain digits pass.
CLI::Validator whole(uint64_t least, uint64_t most) {
  const std::string range = std::to_string(least) + " to " + std::to_string(most);
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        uint64_t value;
        const char* end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(text.data(), end, value);
        const bool plain = error == std::errc() && stop == end && (text[0] != '0' || text.size() == 1);
        if (plain && value >= least && value <= most) return "";
        return text + " is not a whole number from " + range;
      },
      range);
}

// A decimal number as text, rounded once to T: no hexadecimal, infinity or NaN, no locale, no wider type between.
template <class T>
std::string decimal(const std::string& text, T& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  const bool digits = text.find_first_not_of("0123456789.eE+-") == std::string::npos;
  if (stop != end || !digits || error == std::errc::invalid_argument)
    return text + " is not a decimal number, such as 0.8";
  const bool vanished =
      value == 0 && text.substr(0, text.find_first_of("eE")).find_first_of("123456789") != std::string::npos;
  if (error != std::errc() || vanished)
    return text + " is too large or too small for a floating-point number";
  return "";
}

void add_decimal(CLI::App& app, const std::string& name, std::optional<float>& value, const char* help) {
  app.add_option_function<std::string>(
         name,
         [&value, name](const std::string& text) {
           if (const std::string wrong = decimal(text, value.emplace()); !wrong.empty())
             throw CLI::ValidationError(name, wrong);
         },
         help)
      ->type_name("NUMBER");
}

CLI::Validator seconds(double most) {
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        double value;
        if (std::string wrong = decimal(text, value); !wrong.empty()) return wrong;
        return value >= 0 && value <= most ? ""
                                           : text + " is not from 0 to " + std::to_string(std::lround(most));
      },
      "0 to " + std::to_string(std::lround(most)));
}

void add_execution(CLI::App& app, ExecutionOptions& o) {
  app.add_option("--device", o.device, "cpu, cuda or cuda:N; never changes a bit")->capture_default_str();
  app.add_flag("--cpu-only", o.cpu_only, "never use a GPU");
  app.add_option("--threads", o.threads, "worker threads (default, 0: one per core)")
      ->check(whole(0, invar::kMaxThreads));
  app.add_option("--isa", o.isa, "force one instruction set: reference, scalar, avx2, avx512, neon");
  app.add_option("--prefill-chunk", o.prefill_chunk, "prompt tokens per step (default: 256)")
      ->check(whole(0, 1 << 20));
}

void add_sampling(CLI::App& app, SamplingOptions& o) {
  app.add_option("--max-new-tokens", o.max_new_tokens, "at most this many new tokens (default: 128)")
      ->check(whole(1, 1 << 30));
  add_decimal(app, "--temperature", o.temperature, "divide logits by this; > 0");
  app.add_option("--top-k", o.top_k, "keep the k most likely tokens; 0 = all")->check(whole(0, INT32_MAX));
  add_decimal(app, "--top-p", o.top_p, "keep the smallest set with this probability; 1 = all");
  app.add_option("--seed", o.seed, "seed of the counter-based generator")
      ->check(whole(0, UINT64_MAX))
      ->capture_default_str();
  auto* greedy = app.add_flag("--no-do-sample", o.no_do_sample, "always take the most likely token");
  for (const char* drawing : {"--temperature", "--top-k", "--top-p"})
    greedy->excludes(app.get_option(drawing));
}

}  // namespace

int main(int argc, char** argv) try {
  keep_running_without_streams();
  invar::report_truncated_maps();
  // A library may have left this thread rounding or flushing otherwise; numbers are read from text here, too.
  const bool environment_was_good = invar::num::arithmetic_env_ok();
  const invar::num::ArithmeticEnv env;
  CLI::App app{
      "Invar: AI inference that does not change with the machine.\n"
      "Exit codes: 0 done or verified, 1 verification failed, 2 bad input, 3 not covered, 70 internal "
      "error."};
  app.name("invar");
  app.require_subcommand(1);
  app.set_version_flag("--version", "invar " INVAR_VERSION);
  int result = 0;

  RunOptions run_options;
  auto* run_cmd = app.add_subcommand("run", "export, compile, infer, decode; write a receipt");
  add_model(*run_cmd, run_options.model);
  auto* text = run_cmd->add_option("--prompt-text", run_options.prompt_text, "the prompt");
  auto* file = run_cmd->add_option("--prompt-file", run_options.prompt_file,
                                   "JSON lines: a string or an object with \"prompt\"; one receipt each");
  text->excludes(file);
  add_sampling(*run_cmd, run_options.sampling);
  run_cmd->add_flag("--no-generation-config", run_options.sampling.no_generation_config,
                    "take no defaults of sampling and length from the checkpoint's generation_config.json");
  add_execution(*run_cmd, run_options.execution);
  run_cmd->add_flag("--no-kv-cache", run_options.execution.no_kv_cache,
                    "recompute the whole sequence at every token");
  add_operation_set(*run_cmd, run_options.model.operation_set);
  run_cmd->add_option("--receipt-path", run_options.receipt_path, "where the receipt goes")
      ->capture_default_str();
  run_cmd->add_flag("--record-model-path", run_options.record_model_path,
                    "also write the path of the model on this machine into the receipt");
  run_cmd->add_flag("--json", run_options.json, "one JSON object per prompt on standard output");
  run_cmd->callback([&] {
    if (!*text && !*file) throw CLI::RequiredError("--prompt-text or --prompt-file");
    result = run(run_options);
  });

  ExportCommand export_options;
  auto* export_cmd =
      app.add_subcommand("export", "checkpoint folder -> model.onnx with weights by reference");
  export_cmd->add_option("--model-name", export_options.model_name, "checkpoint folder, or org/name")
      ->required();
  export_cmd->add_option("-o,--output", export_options.output, "folder for model.onnx")->required();
  export_cmd->add_flag("--colocate-tensors", export_options.colocate_tensors,
                       "copy the weights instead of linking them");
  export_cmd->callback([&] { result = export_model(export_options); });

  CompileCommand compile_options;
  auto* compile_cmd = app.add_subcommand("compile", "ONNX model -> plan");
  compile_cmd->add_option("model", compile_options.model, "a .onnx file")->required();
  compile_cmd->add_option("-o,--output", compile_options.output,
                          "the plan (default: plan.invar beside the model)");
  compile_cmd->add_option(
      "--emit", compile_options.emit,
      "print the IR of a stage instead: onnx, repro, plan, or behind a pass of this name");
  compile_cmd
      ->add_option("--opt", compile_options.opt,
                   "0 to 3: how much is rewritten (default: 3); never changes a bit of what is computed")
      ->check(whole(0, 3));
  compile_cmd
      ->add_option(
          "--size", compile_options.sizes,
          "NAME=N: memory is reported for this size of an open dimension (default: 64); the plan stays "
          "as it is")
      ->allow_extra_args(false);
  compile_cmd
      ->add_option(
          "--bind", compile_options.bound,
          "NAME=FILE.npy: this input's value, known from now on (shapes, axes, sizes); once for each input")
      ->allow_extra_args(false);
  compile_cmd
      ->add_option("--dim", compile_options.dims,
                   "NAME=N: the plan is for this size of a dimension alone: NAME as the model says it, or "
                   "INPUT.AXIS where it has no name (input.0=1); once for each dimension")
      ->allow_extra_args(false);
  add_operation_set(*compile_cmd, compile_options.operation_set);
  compile_cmd
      ->add_option(
          "--choices", compile_options.choices,
          "numerics choices that may be applied: all, none, or names, comma separated (spec/choices.md)")
      ->capture_default_str();
  compile_cmd->add_flag("--stateless", compile_options.stateless,
                        "past keys and values stay inputs and outputs: a plan for `infer --input`");
  compile_cmd->callback([&] { result = compile(compile_options); });

  TokensCommand encode_options;
  auto* encode_cmd = app.add_subcommand("encode", "text -> token ids");
  encode_cmd->add_option("--model-name", encode_options.model_name, "checkpoint folder, or org/name")
      ->required();
  encode_cmd->add_option("--prompt-text", encode_options.text, "the text")->required();
  encode_cmd->callback([&] { result = encode(encode_options); });

  InferCommand infer_options;
  auto* infer_cmd =
      app.add_subcommand("infer", "plan + token ids -> new token ids, or logits; plan + tensors -> tensors");
  infer_cmd->add_option("plan", infer_options.plan, "a compiled plan")->required();
  infer_cmd
      ->add_option("--tokens", infer_options.tokens,
                   "ids, comma separated; given several times, sequences that are computed together")
      ->allow_extra_args(false);
  infer_cmd->add_option("--tokens-file", infer_options.tokens_file, "a JSON list of ids, or a list of those");
  infer_cmd->add_option("--stop-tokens", infer_options.stop_tokens, "ids that end the answer")
      ->delimiter(',')
      ->check(whole(0, INT32_MAX));
  add_sampling(*infer_cmd, infer_options.sampling);
  add_execution(*infer_cmd, infer_options.execution);
  infer_cmd->add_flag("--no-kv-cache", infer_options.execution.no_kv_cache,
                      "recompute the whole sequence at every token");
  infer_cmd->add_option("-o,--output", infer_options.output, "JSON result (default: standard output)");
  infer_cmd->add_option(
      "--logits-output", infer_options.logits_output,
      "generate nothing; write the logits of every given token (little-endian f32 [tokens, vocab])");
  infer_cmd->add_option("--input", infer_options.inputs,
                        "NAME=FILE.npy for every input of a plan without memory: tensors instead of tokens");
  infer_cmd->add_option("--tensors-output", infer_options.tensors_output,
                        "with --input: write each output to FOLDER/NAME.npy, too");
  infer_cmd->callback([&] { result = infer(infer_options); });

  TokensCommand decode_options;
  auto* decode_cmd = app.add_subcommand("decode", "token ids -> text");
  decode_cmd->add_option("--model-name", decode_options.model_name, "checkpoint folder, or org/name")
      ->required();
  decode_cmd->add_option("--tokens", decode_options.tokens, "ids, comma separated")
      ->delimiter(',')
      ->check(whole(0, INT32_MAX));
  decode_cmd->add_option("file", decode_options.file, "the JSON that infer wrote, or a JSON list of ids");
  decode_cmd->callback([&] { result = decode(decode_options); });

  ReceiptCommand validate_options, verify_options;
  auto* validate_cmd = app.add_subcommand("validate", "check a receipt's structure and hashes");
  validate_cmd->add_option("receipt", validate_options.receipt, "a receipt")->required();
  validate_cmd->add_flag("--json", validate_options.json, "the verdict as JSON");
  validate_cmd->callback([&] { result = validate(validate_options); });
  auto* verify_cmd = app.add_subcommand("verify", "recompute a receipt and compare bit for bit");
  verify_cmd->add_option("receipt", verify_options.receipt, "a receipt")->required();
  verify_cmd->add_option("--model-name", verify_options.model.model_name,
                         "the checkpoint: a folder, or org/name in the Hugging Face cache");
  verify_cmd->add_option("--plan", verify_options.model.plan,
                         "compare with this compiled plan instead of compiling the checkpoint");
  add_execution(*verify_cmd, verify_options.execution);
  verify_cmd->add_flag("--json", verify_options.json, "the verdict as JSON");
  verify_cmd->callback([&] { result = verify(verify_options); });

  DoctorCommand doctor_options;
  doctor_options.environment_was_good = environment_was_good;
  auto* doctor_cmd =
      app.add_subcommand("doctor", "check every kernel of this build on this machine against known answers");
  doctor_cmd->add_option("--rooms", doctor_options.rooms, "known answers from FOLDER/OPERATION/*.txt");
  doctor_cmd->add_option("--threads", doctor_options.threads, "worker threads (default, 0: one per core)")
      ->check(whole(0, invar::kMaxThreads));
  doctor_cmd
      ->add_option("--soak", doctor_options.soak,
                   "go on for so many seconds: faulty hardware may need a while to show")
      ->check(seconds(1e6));
  doctor_cmd->add_flag("--json", doctor_options.json, "the findings as JSON");
  doctor_cmd->callback([&] { result = doctor(doctor_options); });

  BenchCommand bench_options;
  auto* bench_cmd =
      app.add_subcommand("bench", "time of every operation: of this machine's limits, and to a peer");
  bench_cmd->add_option("suites", bench_options.suites,
                        "math, norm, gemm, conv, decode, attention, move, model, all (default: all "
                        "without model)");
  bench_cmd->add_option("--op", bench_options.op, "one operation of spec/opset.toml");
  bench_cmd->add_option("--shape", bench_options.shape,
                        "with --op: this call instead, a line as in bench.txt");
  bench_cmd
      ->add_option("--threads", bench_options.threads,
                   "thread counts, comma separated (default: 1 and one per core)")
      ->delimiter(',')
      ->check(whole(1, invar::kMaxThreads));
  bench_cmd->add_option("--isa", bench_options.isas, "instruction sets, comma separated (default: the best)")
      ->delimiter(',');
  bench_cmd->add_option("--device", bench_options.device, "cpu, cuda or cuda:N")->capture_default_str();
  bench_cmd->add_option("--seconds", bench_options.seconds, "per operation, shape and thread count")
      ->check(seconds(3600))
      ->capture_default_str();
  bench_cmd->add_option("--peer", bench_options.peer, "also time this library, in turns")
      ->check(CLI::IsMember({"torch"}));
  bench_cmd->add_option("--python", bench_options.python, "the Python that has the peer");
  bench_cmd->add_option("--model-name", bench_options.model_name,
                        "of the suite model: checkpoint folder, or org/name");
  bench_cmd->add_option("--plot", bench_options.plot, "also draw the result (SVG)");
  bench_cmd->add_flag("--json", bench_options.json, "the result as one JSON object");
  bench_cmd->callback([&] { result = bench(bench_options); });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    return fail(invar::bad_input(std::string(e.what()) + ": see `invar --help`"));
  }
  return result;
} catch (const std::bad_alloc&) {
  return fail(
      {invar::Code::bad_input, "out of memory: use a smaller model, a shorter context, or a larger machine"});
} catch (const std::exception& e) {
  return fail({invar::Code::internal, std::string("internal error: ") + e.what() + ": please report it"});
}
