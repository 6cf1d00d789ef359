// invar show: what a receipt, a batch or the receipt of a training says, for people. Hashes and
// signatures are checked, and nothing is computed.
#include "receipts/bound_fields.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "base/text/display.h"
#include "commands.h"
#include "console.h"
#include "generate/verify/verify.h"
#include "progress/terminal_text.h"
#include "receipts/sandbox.h"

namespace invar::cli {
namespace {

using json::Value;

// "  prompt    3 tokens"; further lines are below the first one.
std::string row(std::string what, const std::string& text) {
  what.resize(std::max<size_t>(what.size(), 9), ' ');
  std::string lines = "  " + what + " ";
  for (const char c : text) lines += c == '\n' ? "\n            " : std::string(1, c);
  return lines + "\n";
}

std::string counted(size_t n, const char* what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

// The receipt as JSON without what is long.
Value printed(receipt::Receipt r) {
  for (auto* list : {&r.tensors, &r.input_tensors, &r.output_tensors}) list->clear();
  for (auto* list : {&r.prompt_tokens, &r.tokens}) list->clear();
  r.logits.clear(), r.prompt.clear(), r.text.clear(), r.chat.clear();
  return json::read_or_null(receipt::print(r), json::Order::as_written);
}

Value json_of(const std::vector<receipt::TensorDigest>& tensors) {
  Value list = Value::array;
  for (const receipt::TensorDigest& t : tensors)
    list.add({{"name", t.name}, {"dtype", t.dtype}, {"shape", t.shape}, {"sha256", to_hex(t.sha256)}});
  return list;
}

// How tokens were chosen: the input section without what was asked.
Value sampling_of(const receipt::Receipt& r) {
  Value input = printed(r)["input"];
  for (const char* asked : {"prompt", "tokens", "chat", "previous", "salt"}) input.erase(asked);
  return input;
}

Value head_of(const char* kind, const generate::Verdict& v) {
  return {{"ok", v.ok()}, {"receipt", v.receipt}, {"kind", kind}, {"receipt_hash", v.receipt_hash}};
}

Value json_of(const receipt::Receipt& r, const generate::Verdict& v) {
  const bool tensors = r.format == receipt::kTensorFormat;
  Value j = head_of(tensors ? "tensors" : "answer", v);
  j.update(bound_fields(r));
  if (tensors) {
    j["inputs"] = json_of(r.input_tensors), j["outputs"] = json_of(r.output_tensors);
  } else {
    const bool withheld = !r.withheld.empty();
    j["prompt"] = withheld ? Value() : Value(r.prompt);
    if (const auto messages = generate::messages_of(r); !messages.empty()) {
      j["messages"] = Value::array;
      for (const auto& [role, text] : messages) j["messages"].add({{"role", role}, {"content", text}});
    }
    j["prompt_tokens"] = withheld ? Value() : Value(r.prompt_tokens.size());
    j["answer"] = r.text, j["answer_tokens"] = r.tokens.size(), j["finish_reason"] = r.finish_reason;
    j["sampling"] = sampling_of(r);
    j["salted"] = r.salt != Digest{} || withheld;
  }
  j["withheld"] = Value::array;
  for (const auto& [path, leaf] : r.withheld) j["withheld"].add(path);
  if (r.previous != Digest{}) j["previous"] = to_hex(r.previous);
  j["signed"] = Value::array;
  for (const receipt::KeySignature& s : r.signatures) j["signed"].add(to_hex(s.key));
  j["execution"] = Value::object;
  for (const auto& [key, value] : r.execution) j["execution"][key] = value;
  return j;
}

// The digests are what a reader can compare with those of a publisher.
std::string model_text(const receipt::Receipt& r) {
  const Value fields = bound_fields(r), &model = fields.get("model"), &program = fields.get("program");
  const auto text = [](const Value& from, const char* key) { return from.get(key).text; };
  const std::string revision = text(model, "revision"), recipe = text(program, "recipe");
  std::string lines = row("model", printable(text(model, "name") + (revision.empty() ? "" : "@" + revision)));
  lines += row("weights", text(model, "weights") + " (" + counted(r.tensors.size(), "tensor") + ")");
  if (r.adapter != Digest{}) lines += row("adapter", printable(r.adapter_name) + ", " + to_hex(r.adapter));
  for (const auto& [what, key] : {std::pair("config", "config"), {"tokenizer", "tokenizer"}})
    if (model.contains(key)) lines += row(what, text(model, key));
  if (model.contains("chat_template"))
    lines += row("template", r.chat_template == sha256("") ? "none" : text(model, "chat_template"));
  return lines + row("program", printable((recipe.empty() ? "" : recipe + ", ") + text(program, "digest")) +
                                    "\nnumerics " + printable(text(program, "numerics")) +
                                    (r.profile.empty() ? "" : ", " + printable(r.profile)) +
                                    ", operation set " + printable(r.operation_set));
}

// The prompt and the answer, whole.
std::string answer_text(const receipt::Receipt& r) {
  std::string lines;
  const auto whole = [&](const char* what, const std::string& about, const std::string& text) {
    lines += row(what, about + "\n" + printable_lines(text));
  };
  const std::string tokens = counted(r.prompt_tokens.size(), "token");
  const auto messages = generate::messages_of(r);
  if (!r.withheld.empty())
    lines += row("prompt", "withheld (receipt.27): the receipt has its digest alone");
  else if (messages.empty())
    whole("prompt", tokens, r.prompt);
  else
    lines += row("prompt", tokens + ", by the chat template, of " + counted(messages.size(), "message"));
  for (const auto& [role, text] : messages) whole("", printable(role) + ":", text);
  whole("answer",
        counted(r.tokens.size(), "token") + (r.finish_reason == "length" ? ", cut at max_new_tokens" : ""),
        r.text);
  lines += row("sampling", sample::describe(r.sampling) + ", at most " + std::to_string(r.max_new_tokens) +
                               " new tokens");
  for (const std::string& stop : r.stop_strings)
    lines += row("stop at", '"' + printable(stop) + '"' + (r.stop_in_answer ? ", begun in the answer" : ""));
  if (r.salt != Digest{})
    lines += row("salted", "with a random salt, so `invar redact` can withhold the prompt");
  return lines;
}

std::string tensors_text(const char* what, const std::vector<receipt::TensorDigest>& tensors) {
  std::string lines;
  for (const receipt::TensorDigest& t : tensors) {
    std::string shape;
    for (const int64_t d : t.shape) shape += (shape.empty() ? "" : ", ") + std::to_string(d);
    lines += row(
        what, printable(t.name) + ": " + printable(t.dtype) + " [" + shape + "], sha256 " + to_hex(t.sha256));
  }
  return lines;
}

std::string text_of(const receipt::Receipt& r, const generate::Verdict& v) {
  const bool tensors = r.format == receipt::kTensorFormat;
  std::string lines = printable(v.receipt) + ": the receipt of " +
                      (tensors ? "a computation of tensors" : "an answer of a language model") + "\n" +
                      model_text(r);
  lines += tensors ? tensors_text("input", r.input_tensors) + tensors_text("output", r.output_tensors)
                   : answer_text(r);
  std::string made;
  for (const auto& [key, value] : r.execution)
    if (key != "plan") made += (made.empty() ? "" : ", ") + key + " " + value;
  if (!made.empty()) lines += row("made on", printable(made) + "; no hash binds this");
  if (r.previous != Digest{}) lines += row("previous", to_hex(r.previous));
  std::string signers;
  for (const receipt::KeySignature& s : r.signatures)
    signers += (signers.empty() ? "" : ", ") + to_hex(s.key);
  lines += row("signed", "by " + (signers.empty() ? "nobody" : signers));
  return lines + row("receipt", v.receipt_hash) +
         row("checked",
             r.signatures.empty()
                 ? "every hash fits; nothing was computed: `invar verify` does that"
                 : "every hash and signature fits; nothing was computed: `invar verify` does that");
}

// ---- receipts of trainings (spec/training.md), whose hashes the Python package checks

constexpr std::string_view kTraining = "invar-training-receipt";

bool is_training(std::string_view text) {
  if (text.find(kTraining) == text.npos) return false;
  const Value j = json::read_or_null(text, json::Order::as_written);
  const Value& schema = j.get("schema");
  return schema.is_string() && schema.text.starts_with(kTraining);
}

// training.11: 0x1.8000000000000p-3 -> 0.1875
std::string decimal_of(const Value& loss) {
  const std::string text = loss.is_string() ? loss.text : "";
  if (text.find('x') == text.npos) return printable(text);
  char digits[32];
  const double value = std::strtod(text.c_str(), nullptr);
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

// The member at the end of a path, or null. Nothing of it is copied: a stranger wrote it.
const Value& at(const Value& j, std::initializer_list<const char*> path) {
  const Value* value = &j;
  for (const char* name : path) value = &value->get(name);
  return *value;
}

std::string string_at(const Value& j, std::initializer_list<const char*> path) {
  const Value& value = at(j, path);
  return value.is_string() ? value.text : "";
}

Status show_training(std::string_view text, const std::string& name, bool as_json) {
  const Value j = json::read_or_null(text, json::Order::as_written);
  const Value &steps = at(j, {"steps"}), &settings = at(j, {"program", "settings"});
  if (!steps.is_array() || !at(j, {"initial", "tensors"}).is_array() || !settings.is_object())
    return bad_input(name + ": a receipt of a training whose members are not those of spec/training.md");
  const std::string first = steps.empty() ? "" : decimal_of(at(steps.items.front(), {"loss"})),
                    last = steps.empty() ? "" : decimal_of(at(steps.items.back(), {"loss"})),
                    end = steps.empty() ? string_at(j, {"initial", "state"})
                                        : string_at(steps.items.back(), {"state"}),
                    note =
                        "nothing was checked: `python -m invar.training verify` checks the hashes and "
                        "executes the steps";
  if (as_json)
    return write_stdout(line_of({{"ok", true},
                                 {"receipt", name},
                                 {"kind", "training"},
                                 {"receipt_hash", string_at(j, {"receipt_hash"})},
                                 {"program", at(j, {"program"})},
                                 {"tensors", at(j, {"initial", "tensors"}).size()},
                                 {"steps", steps.size()},
                                 {"first_loss", first},
                                 {"last_loss", last},
                                 {"initial_state", string_at(j, {"initial", "state"})},
                                 {"last_state", end},
                                 {"note", note}}));
  std::string given;
  for (const auto& [key, value] : settings.members)
    if (!value.is_structured())
      given += (given.empty() ? "" : ", ") + key + " " +
               (value.is_string() ? decimal_of(value) : json::dump(value));
  std::string lines = printable(name) + ": the receipt of a training\n";
  const std::string script = string_at(j, {"program", "script"});
  lines +=
      row("script",
          script.empty() ? "none" : printable(script + ", sha256 " + string_at(j, {"program", "sha256"})));
  if (!given.empty()) lines += row("settings", printable(given));
  lines += row("trains", counted(at(j, {"initial", "tensors"}).size(), "tensor") + " in " +
                             counted(steps.size(), "step"));
  if (!steps.empty()) lines += row("loss", printable(first + " in the first step, " + last + " in the last"));
  lines += row("state", printable("from " + string_at(j, {"initial", "state"}) + "\nto   ") + printable(end));
  lines += row("note", note);
  return write_stdout(lines + row("receipt", printable(string_at(j, {"receipt_hash"}))));
}

// Shows one file after another; keeps the worst exit code.
class Shown {
 public:
  explicit Shown(bool as_json) : json_(as_json) {}
  void file(const std::string& path);
  int code() const { return code_; }

 private:
  Result<generate::Verdict> receipt(std::string_view text, const std::string& name,
                                    const generate::InBatch* batch);
  void report(const std::string& name, const Result<generate::Verdict>& verdict);
  void write(const std::string& text) {
    if (count_++ > 0 && !json_) take(write_stdout("\n"));
    take(write_stdout(json_ ? text : for_stream(text, STDOUT_FILENO)));
  }
  void take(const Status& s) {
    if (!s) code_ = std::max(code_, fail(s.error()));
  }

  const bool json_;
  int code_ = 0, count_ = 0;
  bool shown_ = false;  // the receipt that is reported next
  generate::Reader reader_;
};

Result<generate::Verdict> Shown::receipt(std::string_view text, const std::string& name,
                                         const generate::InBatch* batch) {
  INVAR_TRY(generate::Verdict v, reader_.validate(text, name, batch));
  if (!v.ok() || (batch && !json_)) return v;  // of a batch's receipts the short lines are enough
  receipt::Receipt r;
  INVAR_CHECK_OK(receipt::validate(text, name, &r));
  write(json_ ? line_of(json_of(r, v)) : text_of(r, v));
  shown_ = true;
  return v;
}

// Batches, and what does not hold: as `validate` prints them.
void Shown::report(const std::string& name, const Result<generate::Verdict>& verdict) {
  if (std::exchange(shown_, false)) return;
  if (!verdict) return (void)(code_ = std::max(code_, fail(verdict.error())));
  if (!verdict->ok()) code_ = std::max(code_, static_cast<int>(Code::failed));
  if (!json_) return write(generate::report(*verdict));
  Value j = head_of(verdict->ok() ? "batch" : "damaged", *verdict);
  j["receipt"] = name, j["findings"] = Value::array;
  for (const auto& f : verdict->findings)
    j["findings"].add({{"field", f.field}, {"expected", f.expected}, {"found", f.found}});
  write(line_of(j));
}

void Shown::file(const std::string& path) {
  generate::judge_file(
      path, reader_,
      [&](std::string_view text, const std::string& name, const generate::InBatch* batch) {
        if (!is_training(text)) return receipt(text, name, batch);
        if (count_++ > 0 && !json_) take(write_stdout("\n"));
        shown_ = true;
        take(show_training(text, name, json_));
        return Result<generate::Verdict>(generate::Verdict{});
      },
      [&](const std::string& name, const Result<generate::Verdict>& verdict) { report(name, verdict); });
}

}  // namespace

Value bound_fields(const receipt::Receipt& r) {
  const Value all = printed(r);
  Value fields = {{"model", all.get("model")}, {"program", all.get("program")}};
  fields["model"]["tensors"] = r.tensors.size();
  return fields;
}

int show(const ReceiptCommand& c) {
  confine_reader();
  Shown shown(c.json);
  for (const std::string& path : c.receipts) shown.file(path);
  return shown.code();
}

}  // namespace invar::cli
