#include "model/receipts.h"

#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "base/file/file.h"
#include "base/text/json.h"

namespace invar::tui {
namespace {

namespace fs = std::filesystem;
using json::Value;

constexpr size_t kMostFiles = 5000;
constexpr uint64_t kLargest = 64 << 20;

// object[a][b] where it is a string.
std::string text_at(const Value& object, const char* a, const char* b) {
  const Value& value = object.get(a).get(b);
  return value.is_string() ? value.text : "";
}
int64_t count_at(const Value& object, const char* a, const char* b) {
  return static_cast<int64_t>(object.get(a).get(b).items.size());
}

std::string title_of(const std::string& prompt, const std::string& chat) {
  std::string title = prompt;
  const Value object = json::read_or_null(chat);
  for (const Value& message : object.get("messages").items)
    if (const Value& content = message.get("content"); content.is_string()) title = content.text;
  std::string line;
  for (const char c : title.substr(0, 400))
    if (c != '\n' && c != '\r' && c != '\t')
      line += c;
    else if (!line.empty() && line.back() != ' ')
      line += ' ';
  return line;
}

}  // namespace

bool read_receipt(const std::string& text, ReceiptEntry& e) {
  const Value object = json::read_or_null(text);
  const Value &schema = object.get("schema"), &hash = object.get("receipt_hash");
  if (!schema.is_string() || !hash.is_string()) return false;
  if (!schema.text.starts_with("invar-receipt")) return false;
  e.hash = hash.text;
  e.model = text_at(object, "model", "name");
  e.prompt = text_at(object, "input", "prompt");
  e.title = title_of(e.prompt, text_at(object, "input", "chat"));
  e.answer = text_at(object, "output", "text");
  e.finish = text_at(object, "output", "finish_reason");
  e.operation_set = text_at(object, "program", "operation_set");
  e.numerics = text_at(object, "program", "numerics");
  e.profile = text_at(object, "program", "profile");
  e.device = text_at(object, "execution", "device");
  e.version = text_at(object, "execution", "version");
  e.prompt_tokens = count_at(object, "input", "tokens");
  e.answer_tokens = count_at(object, "output", "tokens");
  return true;
}

Status ReceiptFolder::open(const std::string& folder) {
  folder_ = folder;
  entries_.clear(), waiting_.clear();
  others_ = left_out_ = 0;
  std::error_code ec;
  fs::directory_iterator files(folder, ec);
  if (ec) return bad_input(folder + ": " + ec.message());
  for (; !ec && files != fs::directory_iterator(); files.increment(ec)) {
    ReceiptEntry e;
    e.path = files->path().string(), e.name = files->path().filename().string();
    if (!e.name.ends_with(".json") || e.name.starts_with('.')) continue;
    struct stat s;
    if (::stat(e.path.c_str(), &s) != 0 || !S_ISREG(s.st_mode)) continue;
    e.modified = s.st_mtime, e.bytes = static_cast<uint64_t>(s.st_size);
    waiting_.push_back(std::move(e));
  }
  std::sort(waiting_.begin(), waiting_.end(), [](const ReceiptEntry& a, const ReceiptEntry& b) {
    return a.modified != b.modified ? a.modified < b.modified : a.name < b.name;
  });
  if (waiting_.size() > kMostFiles) {
    left_out_ = waiting_.size() - kMostFiles;
    waiting_.erase(waiting_.begin(), waiting_.end() - kMostFiles);
  }
  return {};
}

bool ReceiptFolder::read_some(uint64_t bytes) {
  for (uint64_t read = 0; !waiting_.empty() && read < bytes;) {
    ReceiptEntry e = std::move(waiting_.back());
    waiting_.pop_back();
    read += e.bytes + 4096;
    const auto text = e.bytes <= kLargest ? read_file(e.path) : Result<std::string>(bad_input("large"));
    if (text && read_receipt(*text, e))
      entries_.push_back(std::move(e));
    else
      ++others_;
  }
  return !waiting_.empty();
}

std::string date_text(int64_t seconds) {
  const std::time_t t = seconds;
  std::tm tm{};
  char text[32] = "";
  if (localtime_r(&t, &tm)) std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &tm);
  return text;
}

}  // namespace invar::tui
