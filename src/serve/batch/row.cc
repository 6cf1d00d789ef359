#include "serve/batch/row.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "base/hash/sha256.h"
#include "base/text/display.h"

namespace invar::serve {

using json::Value;

namespace {

constexpr std::string_view kChats = "/v1/chat/completions";
// Those of routes.toml that a line may ask.
constexpr struct {
  std::string_view path;
  bool draws;
} kPaths[] = {
#include "options/batch_paths.inc"
};

auto path_of(std::string_view url) {
  return std::ranges::find(kPaths, url, [](const auto& row) { return row.path; });
}

uint64_t digits_of(const std::string& id, size_t from) {
  uint64_t number = 0;
  std::from_chars(id.data() + from, id.data() + from + 16, number, 16);
  return number;
}

// 48 bits, which every client's numbers hold.
uint64_t seed_of(const std::string& body) {
  return digits_of(to_hex(sha256("invar batch seed\n" + body)), 0) >> 16;
}

// Why the members of a line are no request; "": they are one.
std::string problem_of_line(const Value& line) {
  const auto is_text = [&](const char* name) {
    return line.get(name).is_string() && !line.get(name).text.empty();
  };
  if (!is_text("custom_id")) return "custom_id: a text is needed";
  if (line.get("method").text != "POST") return "method: POST is needed";
  const std::string& url = line.get("url").text;
  if (path_of(url) == std::end(kPaths)) {
    std::string known;
    for (const auto& row : kPaths) known += (known.empty() ? "" : ", ") + std::string(row.path);
    return "url: one of " + known + " is needed, not '" + excerpt(url) + "'";
  }
  const Value& body = line.get("body");
  if (!body.is_object()) return "body: an object is needed";
  if (body.get("stream").is_true()) return "stream: a batch has no streams: leave it out";
  return "";
}

}  // namespace

BatchRow read_batch_row(std::string_view text, size_t number, const Value& identity) {
  BatchRow row;
  row.line = number;
  auto line = json::parse(text, "line " + std::to_string(number));
  if (!line || !line->is_object()) {
    row.problem = line ? "line " + std::to_string(number) + ": an object is needed" : line.error().message;
    return row;
  }
  if (line->get("custom_id").is_string()) row.custom_id = line->get("custom_id").text;
  if (const std::string* twice = json::repeated_name(*line)) {
    row.problem = "an object has the member '" + excerpt(*twice) + "' twice";
    return row;
  }
  row.problem = problem_of_line(*line);
  if (!row.problem.empty()) return row;
  row.url = line->get("url").text;
  Value& body = (*line)["body"];
  if (row.url == kChats && identity.contains("date") && body.get("date").is_null())
    body["date"] = identity.get("date");
  row.body = json::dump(body);
  if (path_of(row.url)->draws && body.get("seed").is_null()) {
    body["seed"] = seed_of(row.body);
    row.body = json::dump(body);
  }
  row.rechecks = line->get("invar").get("recheck").is_true();
  row.id = to_hex(sha256(json::dump(identity) + "\n" + row.url + "\n" + row.body));
  return row;
}

std::vector<BatchRow> read_batch(std::string_view text, const Value& identity) {
  std::vector<BatchRow> rows;
  std::unordered_map<std::string, size_t> lines;  // of the custom ids
  text.remove_prefix(json::mark_length(text));
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    BatchRow row = read_batch_row(line, number, identity);
    if (!row.custom_id.empty()) {
      const auto [first, fresh] = lines.emplace(row.custom_id, number);
      if (!fresh) {
        row.problem = "custom_id: line " + std::to_string(first->second) + " has it, too";
        row.id.clear();
      }
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

bool is_in_shard(const BatchRow& row, uint64_t shard, uint64_t shards) {
  return digits_of(row.id, 0) % shards == shard;
}

bool is_in_sample(const BatchRow& row, double percent) {
  return static_cast<double>(digits_of(row.id, 16)) < percent / 100 * 18446744073709551616.0;
}

}  // namespace invar::serve
