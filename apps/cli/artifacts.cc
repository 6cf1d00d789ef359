// The artifacts that stages exchange, as options name them: token ids, tensors, results.
#include "artifacts.h"

#include <charconv>

#include "base/file/file.h"
#include "base/text/utf8.h"
#include "console.h"
#include "run/npy.h"

namespace invar::cli {

using json::Value;
static constexpr FileKind kTokensFile{"a file of tokens", uint64_t{64} << 20, true};

Result<std::string> text_from(const std::string& option, const std::string& given) {
  static constexpr FileKind kText{"a text", uint64_t{64} << 20, true};
  if (given != "-") return given;
  auto text = read_file("/dev/stdin", kText);
  if (!text) return Error{text.error().code, option + " -: " + text.error().message};
  if (text->ends_with('\n')) text->pop_back();
  if (text->ends_with('\r')) text->pop_back();
  return text;
}

Result<std::string> messages_from(const std::string& option, const std::string& given) {
  INVAR_TRY(const std::string text, text_from(option, given));
  if (valid_prefix(text) < text.size()) return bad_input(option + ": the text is not UTF-8");
  // Members in the order in which everybody writes them: the receipt binds it (chat.3).
  return json::dump(json::list({{{"role", "user"}, {"content", text}}}));
}

std::string file_from(const std::string& given) {
  return given == "-" ? "/dev/stdin" : given;
}

Status deliver(const std::string& output, const std::string& text) {
  return output.empty() ? write_stdout(text) : write_file(output, text);
}

Result<Value> tokens_in(const std::string& file) {
  if (file.empty()) return bad_input("no tokens: pass --tokens 0,5,7 or a JSON file of ids");
  INVAR_TRY(std::string text, read_file(file_from(file), kTokensFile));
  const Value j = json::read_or_null(text);
  return j.is_object() ? j.get("tokens") : j;
}

Result<std::vector<int32_t>> ids_of(const Value& list, const std::string& file) {
  if (!list.is_array())
    return bad_input(file + ": neither a JSON list of token ids nor an object with \"tokens\"");
  std::vector<int32_t> ids;
  for (const Value& t : list.items) {
    if (!t.is_integer() || t.to_int64() < 0 || t.to_int64() > INT32_MAX)
      return bad_input(file + ": entry " + std::to_string(ids.size()) + " is not a token id");
    ids.push_back(static_cast<int32_t>(t.to_int64()));
  }
  return ids;
}

Result<std::vector<int32_t>> tokens_from(const std::vector<int32_t>& given, const std::string& file) {
  if (!given.empty() && file.empty()) return given;
  INVAR_TRY(const Value list, tokens_in(file));
  return ids_of(list, file);
}

Result<run::Function::NamedTensors> tensors_from(const std::string& option,
                                                 const std::vector<std::string>& given) {
  run::Function::NamedTensors tensors;
  for (const std::string& one : given) {
    const size_t equal = one.find('=');
    if (equal == one.npos || equal == 0) return bad_input(option + " " + one + ": not NAME=FILE.npy");
    INVAR_TRY(run::Tensor t, run::read_npy(one.substr(equal + 1)));
    tensors.emplace_back(one.substr(0, equal), std::move(t));
  }
  return tensors;
}

Result<std::vector<std::pair<std::string, int64_t>>> sizes_from(const std::string& option,
                                                                const std::vector<std::string>& given) {
  std::vector<std::pair<std::string, int64_t>> sizes;
  for (const std::string& one : given) {
    const size_t equal = one.rfind('=');
    int64_t size = -1;
    if (equal != one.npos) {
      const char* end = one.data() + one.size();
      const auto [at, error] = std::from_chars(one.data() + equal + 1, end, size);
      if (error != std::errc() || at != end) size = -1;
    }
    if (size < 0 || equal == 0) return bad_input(option + " " + one + ": not NAME=N, such as seq=128");
    sizes.emplace_back(one.substr(0, equal), size);
  }
  return sizes;
}

}  // namespace invar::cli
