// The fields of the form, and the command line that it makes. It knows no terminal.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace invar::tui {

enum class Field {
#include "options/form_names.inc"
};
inline constexpr size_t kFields = static_cast<size_t>(Field::extra) + 1;

enum class Kind {
  choice,  // one of `choices`
  line,    // one line of text
  text,    // several
  words,   // quoted as a shell reads them
  whole,   // a whole number
  decimal,
  model,  // a folder, or a name of the hub
  file,
  folder,
};

struct FieldInfo {
  Field field;
  const char* key;  // in the saved form
  const char* label;
  Kind kind;
  const char* option;    // "" = positional, or the form decides
  const char* commands;  // that take it, separated by spaces; "" = all
  const char* initial;
  std::vector<const char*> choices;  // of another kind than choice: some of the values
  const char* help;
  uint64_t least, most;  // of a whole number
};
const FieldInfo& info(Field);
const std::vector<FieldInfo>& fields();  // in the order of the form

// The choices of fields whose value is not an option's value.
inline constexpr const char *kFromText = "text", *kFromFile = "prompt file", *kFromMessages = "chat messages",
                            *kFromQuestion = "question";
inline constexpr const char *kOfModel = "as the model says", *kGreedy = "most likely token",
                            *kSet = "set below";
inline constexpr const char* kUnset = "not set";

struct Problem {
  Field field;
  std::string message;
};

class Form {
 public:
  Form();  // the initial values
  const std::string& operator[](Field f) const { return values_[static_cast<size_t>(f)]; }
  std::string& operator[](Field f) { return values_[static_cast<size_t>(f)]; }
  // Whether the command takes the field as the other fields stand.
  bool shows(Field) const;
  std::vector<Field> shown() const;
  // Every reason why there is no command line, in the order of the fields.
  std::vector<Problem> problems() const;
  bool operator==(const Form&) const = default;

 private:
  std::array<std::string, kFields> values_;
};

// Whether a file is there.
using Exists = std::function<bool(const std::string&)>;
// `pattern` with # as the first number from 1 up that names no file.
std::string next_path(const std::string& pattern, const Exists&);

// The arguments of `invar`, from the subcommand on, of a form without problems.
std::vector<std::string> arguments(const Form&, const Exists&);

// {"verify", ...} of one receipt. The model of the form is named where it may be the receipt's.
std::vector<std::string> verify_arguments(const std::string& receipt, const std::string& receipts_model,
                                          const std::string& forms_model, const std::string& device);

}  // namespace invar::tui
