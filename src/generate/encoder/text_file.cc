// Texts from a file.
#include <algorithm>

#include "base/file/file.h"
#include "base/text/json.h"
#include "generate/encoder/encoder.h"

namespace invar::generate {
namespace {

constexpr FileKind kTextFile{"a file of texts", uint64_t{1} << 30, true};

Result<std::string> read_row(std::string_view row, const std::string& where, const std::string& key) {
  INVAR_TRY(const json::Value line, json::parse(row, where));
  if (line.kind == json::Value::string) return line.text;
  if (line.members.size() == 1 && line.members[0].first == key &&
      line.members[0].second.kind == json::Value::string)
    return line.members[0].second.text;
  return bad_input(where + ": neither a JSON string nor an object with " + json::quote(key) + " alone");
}

}  // namespace

Result<std::vector<EncoderText>> read_text_file(const std::string& path, const std::string& key) {
  INVAR_TRY(const std::string content, read_file(path, kTextFile));
  const bool rows_are_json = path.ends_with(".jsonl");
  std::vector<EncoderText> texts;
  size_t begin = content.starts_with("\xef\xbb\xbf") ? 3 : 0;  // a byte order mark
  for (int line = 1; begin < content.size(); ++line) {
    const size_t end = std::min(content.find('\n', begin), content.size());
    std::string_view row = std::string_view(content).substr(begin, end - begin);
    begin = end + 1;
    if (row.ends_with('\r')) row.remove_suffix(1);
    if (rows_are_json && row.find_first_not_of(" \t") == row.npos) continue;
    EncoderText text;
    text.name = path + ":" + std::to_string(line);
    if (!rows_are_json) {
      text.text = row;
    } else if (auto read = read_row(row, text.name, key)) {
      text.text = std::move(*read);
    } else {
      text.problem = read.error();
    }
    texts.push_back(std::move(text));
  }
  if (texts.empty()) return bad_input(path + ": no texts in it");
  return texts;
}

}  // namespace invar::generate
