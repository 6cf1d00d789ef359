// The fields of the form: one row each.
#include "model/form.h"

namespace invar::tui {

const std::vector<FieldInfo>& fields() {
  static const std::vector<FieldInfo> rows = {
      {Field::command, "command", "command", Kind::choice, "", "", "run",
       {"run", "chat", "verify", "validate", "export", "compile", "doctor", "bench"},
       "run: answers and receipts. chat: a conversation. verify: computes a receipt again. validate: its hashes "
       "alone. export, compile: stages of run. doctor: checks this machine. bench: times it."},
      {Field::model, "model", "model", Kind::model, "--model-name", "run chat verify export bench", "", {},
       "A checkpoint folder, or org/name[@revision] of the Hugging Face hub. Enter lists models."},
      {Field::onnx_file, "onnx_file", "ONNX model", Kind::file, "", "compile", "", {},
       "The .onnx file that becomes a plan. Enter lists files."},
      {Field::receipts, "receipts", "receipts", Kind::words, "", "verify validate", "", {},
       "Receipts, and batches of them, separated by spaces; quotes as in a shell. Enter lists files."},
      {Field::prompt_from, "prompt_from", "prompt from", Kind::choice, "", "run", kFromText,
       {kFromText, kFromFile, kFromMessages}, "Where the prompt stands."},
      {Field::prompt, "prompt", "prompt", Kind::text, "--prompt-text", "run", "", {},
       "The prompt, as many lines as you like: Enter begins a new one, Tab leaves. The model reads it as it stands."},
      {Field::prompt_file, "prompt_file", "prompt file", Kind::file, "--prompt-file", "run", "", {},
       "JSON lines: a string, a list of messages, or an object with prompt or messages; one receipt each."},
      {Field::messages, "messages", "messages", Kind::file, "--messages", "run", "", {},
       "A JSON list of messages, which the model's chat template makes the prompt of."},
      {Field::system, "system", "system", Kind::line, "--system", "run chat", "", {},
       "A system message in front of the others; empty: none."},
      {Field::new_tokens, "new_tokens", "new tokens", Kind::whole, "--max-new-tokens", "run chat", "", {},
       "At most this many new tokens; empty: as the model says, or 128."},
      {Field::sampling, "sampling", "sampling", Kind::choice, "", "run chat", kOfModel,
       {kOfModel, kGreedy, kSet}, "How a token is chosen. The receipt binds it."},
      {Field::temperature, "temperature", "  temperature", Kind::decimal, "--temperature", "run chat", "", {},
       "Divides the logits; above 0. Empty: as the model says."},
      {Field::top_k, "top_k", "  top-k", Kind::whole, "--top-k", "run chat", "", {},
       "Keeps the k most likely tokens; 0: all. Empty: as the model says."},
      {Field::top_p, "top_p", "  top-p", Kind::decimal, "--top-p", "run chat", "", {},
       "Keeps the smallest set of tokens with this probability; 1: all. Empty: as the model says."},
      {Field::min_p, "min_p", "  min-p", Kind::decimal, "--min-p", "run chat", "", {},
       "Keeps tokens of at least this part of the best one's probability; 0: all. Empty: as the model says."},
      {Field::seed, "seed", "seed", Kind::whole, "--seed", "run chat", "", {},
       "Of the counter-based generator; empty: 0. Another seed is another answer and another receipt."},
      {Field::device, "device", "device", Kind::choice, "--device", "run chat verify bench", "cpu",
       {"cpu", "cuda", "cuda:0", "cuda:1", "cuda:2", "cuda:3", "cuda:4", "cuda:5", "cuda:6", "cuda:7"},
       "Where it is computed; never changes a bit."},
      {Field::partitions, "partitions", "partitions", Kind::whole, "--n-partitions", "run chat verify", "", {},
       "Splits the model by layers over so many devices; empty: one. Never changes a bit."},
      {Field::threads, "threads", "threads", Kind::whole, "--threads", "run chat verify doctor bench", "", {},
       "Worker threads; empty: one per core. Never changes a bit."},
      {Field::operation_set, "operation_set", "operation set", Kind::choice, "--operation-set",
       "run chat compile", kUnset, {kUnset, "reproducible", "deterministic", "default"},
       "What is promised of the bits. reproducible: the same on any machine. deterministic: in every run on this "
       "one. default: nothing."},
      {Field::choices, "choices", "numerics", Kind::line, "--choices", "compile", "", {},
       "Numerics choices that may be applied: all, none, or names separated by commas; empty: all."},
      {Field::receipt_path, "receipt_path", "receipt", Kind::line, "--receipt-path", "run",
       "receipts/run-#.json", {}, "Where the receipt goes. # becomes the first number that is free."},
      {Field::receipts_folder, "receipts_folder", "receipts in", Kind::folder, "--receipts", "chat",
       "receipts", {}, "The folder of turn-1.json, turn-2.json, ... Enter lists folders."},
      {Field::output, "output", "output", Kind::line, "--output", "export compile", "", {},
       "export: the folder for model.onnx. compile: the plan; empty: plan.invar beside the model."},
      {Field::suites, "suites", "suites", Kind::words, "", "bench", "", {},
       "math, norm, gemm, conv, decode, attention, move, model or all; empty: all without model."},
      {Field::extra, "extra", "more options", Kind::words, "", "", "", {},
       "Other options of the command, as in a shell: --isa scalar --stop 'the end'. invar COMMAND --help has all."},
  };
  return rows;
}

const FieldInfo& info(Field f) {
  return fields()[static_cast<size_t>(f)];
}

}  // namespace invar::tui
