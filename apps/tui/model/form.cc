#include "model/form.h"

#include <algorithm>

#include "base/text/decimal.h"
#include "model/shell_words.h"

namespace invar::tui {
namespace {

bool has_word(std::string_view words, std::string_view word) {
  for (size_t at = 0; at < words.size();) {
    const size_t end = std::min(words.find(' ', at), words.size());
    if (words.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

bool is_whole(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// cpu, cuda or cuda:N, or several with commas.
bool is_devices(std::string_view list) {
  for (size_t end = 0; end != list.npos; list.remove_prefix(end == list.npos ? 0 : end + 1)) {
    end = list.find(',');
    const std::string_view name = list.substr(0, end);
    if (name != "cpu" && name != "cuda" &&
        !(name.starts_with("cuda:") && is_whole(std::string(name.substr(5)))))
      return false;
  }
  return true;
}

bool is_sampling_number(Field f) {
  return f == Field::temperature || f == Field::top_k || f == Field::top_p || f == Field::min_p;
}

bool is_required(const Form& form, Field f) {
  switch (f) {
    case Field::model: {
      const std::string& command = form[Field::command];
      return command == "run" || command == "chat" || command == "export" || command == "digest";
    }
    case Field::onnx_file:
    case Field::receipts:
    case Field::user:
    case Field::prompt_file:
    case Field::messages: return true;
    case Field::output: return form[Field::command] == "export";
    default: return false;
  }
}

std::optional<std::string> problem(const Form& form, Field f) {
  const FieldInfo& row = info(f);
  const std::string& value = form[f];
  if (value.empty()) {
    if (is_required(form, f)) return std::string("needed by ") + form[Field::command];
    return std::nullopt;
  }
  if (row.kind == Kind::whole && !parse_whole(value, row.least, row.most))
    return "expected a whole number from " + std::to_string(row.least) + " to " + std::to_string(row.most) +
           ", got " + shell_quoted(value);
  if (float number = 0; row.kind == Kind::decimal && (!parse_decimal(value, number).empty() || number < 0))
    return "expected a number such as 0.8, got " + shell_quoted(value);
  if (f == Field::device && !is_devices(value))
    return "expected cpu, cuda or cuda:N, got " + shell_quoted(value);
  if (row.kind == Kind::words) {
    const auto words = split_words(value);
    if (!words) return words.error().message;
    if (f == Field::receipts && words->empty()) return "needed by " + form[Field::command];
  }
  if ((f == Field::prompt || f == Field::user) && value == "-")
    return "a - alone would be standard input, which is the form's; add a space";
  return std::nullopt;
}

// --option VALUE, or --option=VALUE where the value could be taken for an option.
void add_option(std::vector<std::string>& out, const char* option, const std::string& value) {
  if (value.empty() || value[0] == '-') {
    out.push_back(std::string(option) + "=" + value);
  } else {
    out.push_back(option);
    out.push_back(value);
  }
}

// A path that cannot be taken for an option.
std::string positional(const std::string& path) {
  return path.starts_with('-') ? "./" + path : path;
}

void add_field(std::vector<std::string>& out, const Form& form, Field f, const Exists& exists) {
  const FieldInfo& row = info(f);
  const std::string& value = form[f];
  if (f == Field::sampling && value == kGreedy) out.push_back("--no-do-sample");
  if (f == Field::prompt) return add_option(out, row.option, value);  // an empty prompt is one
  if (value.empty() || value == kUnset || *row.option == 0) return;
  if (f == Field::receipt_path) return add_option(out, row.option, next_path(value, exists));
  if (f == Field::device && value == "cpu") return;
  add_option(out, row.option, value);
}

}  // namespace

Form::Form() {
  for (const FieldInfo& row : fields()) (*this)[row.field] = row.initial;
}

bool Form::shows(Field f) const {
  const FieldInfo& row = info(f);
  const Form& form = *this;
  if (*row.commands && !has_word(row.commands, form[Field::command])) return false;
  const bool run = form[Field::command] == "run";
  if (f == Field::prompt) return form[Field::prompt_from] == kFromText;
  if (f == Field::user) return form[Field::prompt_from] == kFromQuestion;
  if (f == Field::prompt_file) return form[Field::prompt_from] == kFromFile;
  if (f == Field::messages) return form[Field::prompt_from] == kFromMessages;
  if (f == Field::system && run) return form[Field::prompt_from] != kFromText;
  if (is_sampling_number(f)) return form[Field::sampling] == kSet;
  return true;
}

std::vector<Field> Form::shown() const {
  std::vector<Field> out;
  for (const FieldInfo& row : fields())
    if (shows(row.field)) out.push_back(row.field);
  return out;
}

std::vector<Problem> Form::problems() const {
  std::vector<Problem> out;
  for (const Field f : shown())
    if (auto message = problem(*this, f)) out.push_back({f, *std::move(message)});
  return out;
}

std::string next_path(const std::string& pattern, const Exists& exists) {
  const size_t at = pattern.rfind('#');
  if (at == pattern.npos) return pattern;
  for (int n = 1;; ++n) {
    std::string path = pattern;
    path.replace(at, 1, std::to_string(n));
    if (!exists(path)) return path;
  }
}

std::vector<std::string> arguments(const Form& form, const Exists& exists) {
  std::vector<std::string> out = {form[Field::command]};
  std::vector<std::string> last;  // positionals, and what the user adds
  for (const Field f : form.shown()) {
    if (info(f).kind == Kind::words) {
      const auto words = split_words(form[f]);
      if (!words) continue;
      for (const std::string& word : *words) last.push_back(f == Field::extra ? word : positional(word));
    } else if (f == Field::onnx_file || (f == Field::model && form[Field::command] == "digest")) {
      last.push_back(positional(form[f]));
    } else {
      add_field(out, form, f, exists);
    }
  }
  out.insert(out.end(), last.begin(), last.end());
  return out;
}

std::vector<std::string> verify_arguments(const std::string& receipt, const std::string& receipts_model,
                                          const std::string& forms_model, const std::string& device) {
  std::vector<std::string> out = {"verify"};
  std::string name = forms_model;
  while (name.size() > 1 && name.ends_with('/')) name.pop_back();
  const bool same =
      !receipts_model.empty() && (name == receipts_model || name.ends_with("/" + receipts_model) ||
                                  name.starts_with(receipts_model + "@"));
  if (same) add_option(out, "--model-name", forms_model);
  if (device != "cpu") add_option(out, "--device", device);
  out.push_back(positional(receipt));
  return out;
}

}  // namespace invar::tui
