#include "serve/batch/results.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/file/file.h"
#include "base/file/temporary_file.h"
#include "base/hash/sha256.h"
#include "generate/verify/verify.h"

namespace invar::serve {

using json::Value;

namespace {

constexpr int kBatchFormat = 1;

// What must be equal wherever it is computed.
Value core_of(const std::string& id, const BatchResult& r) {
  Value core = {{"id", id},
                {"status_code", r.status},
                {"body", r.body},
                {"error", nullptr},
                {"receipts", Value::array}};
  if (!r.is_answer()) core["error"] = {{"code", r.kind}, {"message", r.message}};
  for (const std::string& hash : r.receipts) core["receipts"].add(hash);
  return core;
}

std::string file_of_result(const std::string& id, const BatchResult& r) {
  Value whole = core_of(id, r);
  const std::string digest = to_hex(sha256(json::dump(whole)));
  whole["worker"] = r.worker;
  whole["sha256"] = digest;
  return json::dump(whole) + "\n";
}

// None: it is not what file_of_result() writes.
std::optional<BatchResult> result_of(const std::string& id, std::string_view text) {
  const Value file = json::read_or_null(text, json::Order::as_written);
  BatchResult r;
  r.status = static_cast<int>(file.get("status_code").to_int64());
  r.body = file.get("body");
  r.kind = file.get("error").get("code").text, r.message = file.get("error").get("message").text;
  for (const Value& hash : file.get("receipts").items) r.receipts.push_back(hash.text);
  r.worker = file.get("worker");
  if (file.get("sha256").text != to_hex(sha256(json::dump(core_of(id, r))))) return std::nullopt;
  return r;
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "?";
}

// A file of this content, where there is none. EEXIST: there is one.
Result<int> create_file(const std::string& path, std::string_view content) {
  const std::string temporary = temporary_path(folder_of(path));
  INVAR_CHECK_OK(write_file(temporary, content));
  const int linked = ::link(temporary.c_str(), path.c_str()) == 0 ? 0 : errno;
  if (linked != 0 && linked != EEXIST && !std::filesystem::exists(path)) {  // a file system without links
    if (::rename(temporary.c_str(), path.c_str()) == 0) return 0;
    return bad_input(path + ": " + std::strerror(errno));
  }
  ::unlink(temporary.c_str());
  return linked;
}

}  // namespace

bool BatchResult::same_as(const BatchResult& o) const {
  return json::dump(core_of("", *this)) == json::dump(core_of("", o));
}

Result<BatchResults> BatchResults::open(const std::string& folder, Value worker) {
  for (const char* name : {"results", "receipts", "marks"}) {
    std::error_code ec;
    std::filesystem::create_directories(folder + "/" + name, ec);
    if (ec) return bad_input(folder + ": no folder for results: " + ec.message());
  }
  worker["host"] = host_name();
  worker["pid"] = static_cast<int64_t>(::getpid());
  return BatchResults(folder, std::move(worker));
}

std::string BatchResults::path_of(const std::string& id) const {
  return folder_ + "/results/" + id.substr(0, 2) + "/" + id + ".json";
}

Status BatchResults::agree(const Value& identity, const std::string& input) const {
  const std::string path = folder_ + "/manifest.json";
  const Value mine = {
      {"format", kBatchFormat}, {"input", input.empty() ? Value() : Value(input)}, {"identity", identity}};
  INVAR_TRY(const int made, create_file(path, json::dump(mine, {.indent = 1}) + "\n"));
  if (made == 0) return {};
  INVAR_TRY(const std::string text, read_file(path));
  INVAR_TRY(Value there, json::read(text, path, json::Order::as_written));
  if (there.get("format") != mine.get("format"))
    return bad_input(path + ": its format is not " + std::to_string(kBatchFormat) +
                     ": take another folder (--results)");
  for (const Value& names : {identity, there.get("identity")})
    for (const auto& [name, unused] : names.members)
      if (const Value& theirs = there.get("identity").get(name), &ours = identity.get(name); theirs != ours)
        return bad_input(path + ": " + name + " is " + json::dump(theirs) + " there, and " +
                         json::dump(ours) +
                         " here: the results are of another model: take another folder (--results)");
  if (input.empty() || there.get("input").text == input) return {};
  if (!there.get("input").is_null())
    return bad_input(path + ": the results are of another input file: take another folder (--results)");
  return write_file(path, json::dump(mine, {.indent = 1}) + "\n");
}

Result<Value> BatchResults::identity() const {
  const std::string path = folder_ + "/manifest.json";
  INVAR_TRY(const std::string text, read_file(path));
  INVAR_TRY(Value there, json::read(text, path, json::Order::as_written));
  return there.get("identity");
}

bool BatchResults::has_receipt(const std::string& hash) const {
  const std::string path = receipts() + "/" + hash + ".json";
  const auto text = digest_from_hex(hash) ? read_file(path) : bad_input("");
  if (!text) return false;
  receipt::Receipt read;
  const auto verdict = generate::Reader().read(*text, path, read);
  if (verdict && verdict->ok() && to_hex(receipt::receipt_hash(read)) == hash) return true;
  ::rename(path.c_str(), (path + ".damaged").c_str());  // so that it is written again
  return false;
}

std::optional<BatchResult> BatchResults::find(const std::string& id) const {
  const auto text = read_file(path_of(id));
  if (!text) return std::nullopt;
  auto result = result_of(id, *text);
  if (!result) return std::nullopt;
  for (const std::string& hash : result->receipts)
    if (!has_receipt(hash)) return std::nullopt;
  return result;
}

Status BatchResults::compare(const std::string& id, const BatchResult& there,
                             const BatchResult& again) const {
  if (there.same_as(again)) return {};
  std::error_code ec;
  std::filesystem::create_directories(folder_ + "/unequal", ec);
  std::string paths[2];
  const BatchResult* both[] = {&there, &again};
  for (int i = 0; i < 2; ++i) {
    const std::string text = file_of_result(id, *both[i]);
    paths[i] = folder_ + "/unequal/" + id + "-" + to_hex(sha256(text)).substr(0, 8) + ".json";
    INVAR_CHECK_OK(write_file(paths[i], text));
  }
  const auto name = [](const BatchResult& r) {
    return r.worker.get("host").text + " (process " + r.worker.get("pid").text + ")";
  };
  return Error{Code::failed, "two results of the same work differ: of " + name(there) + " in " + paths[0] +
                                 ", of " + name(again) + " in " + paths[1] +
                                 ": one of these machines computes wrongly: `invar verify` says which"};
}

Status BatchResults::keep(const std::string& id, const BatchResult& result) const {
  const std::string path = path_of(id);
  std::error_code ec;
  std::filesystem::create_directories(folder_of(path), ec);
  const std::string text = file_of_result(id, result);
  INVAR_TRY(const int made, create_file(path, text));
  if (made == 0) return {};
  const auto there = find(id);
  if (there && there->is_final()) return result.is_final() ? compare(id, *there, result) : Status();
  return write_file(path, text);
}

void BatchResults::forget(const std::string& id) const {
  ::unlink(path_of(id).c_str());
}

std::optional<BatchMark> BatchResults::mark_of(const std::string& id) const {
  const auto text = read_file(mark_path(id));
  if (!text) return std::nullopt;
  const Value file = json::read_or_null(*text);
  BatchMark mark{file.get("alone").to_int64(), false};
  const auto pid = static_cast<pid_t>(file.get("pid").to_int64());
  mark.runs = file.get("host").text == host_name() && pid > 0 && pid != ::getpid() && ::kill(pid, 0) == 0;
  return mark;
}

Status BatchResults::mark(const std::string& id, const BatchMark& mark) const {
  const std::string path = mark_path(id),
                    text = json::dump(
                        {{"alone", mark.alone}, {"host", worker_.get("host")}, {"pid", worker_.get("pid")}});
  // Not to the disk: a mark tells of processes that end, not of a machine.
  std::ofstream file(path, std::ios::trunc);
  file << text << "\n";
  file.close();
  return file ? Status() : bad_input(path + ": cannot be written: " + std::strerror(errno));
}

void BatchResults::unmark(const std::string& id) const {
  ::unlink(mark_path(id).c_str());
}

}  // namespace invar::serve
