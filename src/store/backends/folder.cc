// A folder of ID.json, and the records of this process in memory.
#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>

#include "base/file/file.h"
#include "base/file/write_files.h"
#include "base/hash/sha256.h"
#include "store/store.h"

namespace invar::store {
namespace {

namespace fs = std::filesystem;

class Folder : public Store {
 public:
  explicit Folder(std::string folder) : folder_(std::move(folder)) {}

  Status put(const std::vector<Entry>& entries, const std::vector<Record>& records) override {
    const std::lock_guard lock(mutex_);
    std::vector<NewContent> files;
    for (const Entry& entry : entries)
      if (std::error_code ec; !fs::exists(path(entry.id), ec)) files.push_back({path(entry.id), entry.text});
    INVAR_CHECK_OK(write_files(files));
    for (const Entry& entry : entries)
      if (!entry.key.empty()) ids_.emplace(entry.key, entry.id);
    for (const Record& record : records) {
      const bool known = std::ranges::any_of(
          records_, [&](const Record& r) { return r.answer == record.answer && r.choice == record.choice; });
      if (!known) records_.push_back(record);
    }
    while (records_.size() > kMostRecords) records_.pop_front();
    return {};
  }

  Result<std::optional<std::string>> receipt(const std::string& id) override {
    std::error_code ec;
    if (!digest_from_hex(id) || !fs::exists(path(id), ec)) return std::optional<std::string>();
    INVAR_TRY(std::string text, read_file(path(id)));
    return std::optional(std::move(text));
  }

  Result<std::optional<Entry>> answer_to(const std::string& key) override {
    std::string id;
    {
      const std::lock_guard lock(mutex_);
      const auto found = ids_.find(key);
      if (found == ids_.end()) return std::optional<Entry>();
      id = found->second;
    }
    INVAR_TRY(auto text, receipt(id));
    if (!text) return std::optional<Entry>();
    return std::optional(Entry{id, *std::move(text), key, 0});
  }

  Result<std::vector<Record>> records(const std::string& request) override {
    const std::lock_guard lock(mutex_);
    std::vector<Record> found;
    for (const Record& record : records_)
      if (record.request == request) found.push_back(record);
    std::ranges::sort(found, [](const Record& a, const Record& b) {
      return std::pair(a.answer, a.choice) < std::pair(b.answer, b.choice);
    });
    return found;
  }

  Status expire(const Retention& keep, int64_t now) override {
    const std::lock_guard lock(mutex_);
    std::vector<std::pair<int64_t, fs::path>> all;
    std::error_code ec;
    for (fs::directory_iterator at(folder_, ec), end; !ec && at != end; at.increment(ec)) {
      if (at->path().extension() != ".json" || !digest_from_hex(at->path().stem().string())) continue;
      const auto written = std::chrono::file_clock::to_sys(at->last_write_time(ec)).time_since_epoch();
      all.emplace_back(std::chrono::duration_cast<std::chrono::milliseconds>(written).count(), at->path());
    }
    std::ranges::sort(all);
    const auto most = static_cast<size_t>(keep.receipts);
    for (size_t i = 0; i < all.size(); ++i)
      if ((keep.seconds > 0 && all[i].first < now - keep.seconds * 1000) ||
          (most > 0 && all.size() - i > most))
        fs::remove(all[i].second, ec);
    if (ec) return bad_input(folder_ + ": old receipts cannot be removed: " + ec.message());
    if (keep.seconds > 0)
      std::erase_if(records_, [&](const Record& r) { return r.time < now - keep.seconds * 1000; });
    while (most > 0 && records_.size() > most) records_.pop_front();
    return {};
  }

  Status probe() override {
    const std::string file = folder_ + "/.probe";
    INVAR_CHECK_OK(write_file(file, "{}"));
    std::error_code ec;
    fs::remove(file, ec);
    return {};
  }

 private:
  static constexpr size_t kMostRecords = 10000;
  std::string path(const std::string& id) const { return folder_ + "/" + id + ".json"; }

  const std::string folder_;
  std::mutex mutex_;
  std::map<std::string, std::string> ids_;  // by key
  std::deque<Record> records_;
};

}  // namespace

Result<std::unique_ptr<Store>> open_folder(const std::string& folder) {
  std::error_code ec;
  fs::create_directories(folder, ec);
  if (ec) return bad_input(folder + ": no folder for receipts: " + ec.message());
  return std::unique_ptr<Store>(std::make_unique<Folder>(folder));
}

}  // namespace invar::store
