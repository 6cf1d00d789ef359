#include "model/browser.h"

#include <algorithm>
#include <filesystem>

#include "base/text/json.h"
#include "base/text/size_text.h"

namespace invar::tui {
namespace fs = std::filesystem;
using json::Value;

std::vector<HubModel> hub_models(const std::string& text) {
  std::vector<HubModel> out;
  const Value object = json::read_or_null(text);
  for (const Value& m : object.get("models").items) {
    const Value &name = m.get("name"), &bytes = m.get("bytes");
    if (!name.is_string()) continue;
    HubModel model{name.text};
    if (bytes.is_unsigned()) model.bytes = bytes.to_uint64();
    if (out.empty() || out.back().name != model.name) out.push_back(std::move(model));
  }
  return out;
}

namespace {

// Relative to the working folder where it lies there: shorter, and as the user would type it.
std::string shown_path(const fs::path& path) {
  std::error_code ec;
  const std::string relative = fs::relative(path, ec).string();
  return ec || relative.empty() || relative.starts_with("..") ? path.string() : relative;
}

}  // namespace

Browser::Browser(Wants wants, const std::string& start, std::string ending)
    : wants_(wants), ending_(std::move(ending)) {
  std::error_code ec;
  fs::path at = start.empty() ? fs::path(".") : fs::path(start);
  if (!fs::is_directory(at, ec) || (wants == Wants::model && fs::exists(at / "config.json", ec)))
    at = at.has_parent_path() ? at.parent_path() : fs::path(".");
  if (!fs::is_directory(at, ec)) at = ".";
  folder_ = fs::canonical(at, ec).string();
  if (ec) folder_ = "/";
  list();
}

void Browser::set_hub(const std::vector<HubModel>& models) {
  const std::string selected = entries_.empty() ? "" : entries_[at_].value;
  hub_ = models;
  list();
  if (!moved_) return;
  for (size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].value == selected) return select(i);
}

void Browser::list() {
  entries_.clear();

  problem_.clear();
  at_ = 0;
  if (wants_ == Wants::model)
    for (const HubModel& m : hub_)
      entries_.push_back(
          {Entry::Kind::hub, m.name + (m.bytes ? "  (" + size_text(m.bytes) + ")" : ""), m.name});
  const fs::path folder(folder_);
  if (wants_ == Wants::folder) entries_.push_back({Entry::Kind::here, "this folder", shown_path(folder)});
  if (folder.has_relative_path()) entries_.push_back({Entry::Kind::up, "..", folder.parent_path().string()});
  std::vector<Entry> folders, files;
  std::error_code ec;
  for (fs::directory_iterator it(folder, ec); !ec && it != fs::directory_iterator(); it.increment(ec)) {
    const std::string name = it->path().filename().string();
    std::error_code no;
    if (name.starts_with('.')) continue;
    if (it->is_directory(no)) {
      const bool model = wants_ == Wants::model && fs::exists(it->path() / "config.json", no);
      folders.push_back({model ? Entry::Kind::model : Entry::Kind::folder, name + "/",
                         model ? shown_path(it->path()) : it->path().string()});
    } else if (wants_ == Wants::file && name.ends_with(ending_)) {
      files.push_back({Entry::Kind::file, name, shown_path(it->path())});
    }
  }
  if (ec) problem_ = folder_ + ": " + ec.message();
  const auto by_name = [](const Entry& a, const Entry& b) { return a.name < b.name; };
  std::sort(folders.begin(), folders.end(), by_name);
  std::sort(files.begin(), files.end(), by_name);
  // Models first: they are what is looked for.
  std::stable_partition(folders.begin(), folders.end(),
                        [](const Entry& e) { return e.kind == Entry::Kind::model; });
  entries_.insert(entries_.end(), folders.begin(), folders.end());
  entries_.insert(entries_.end(), files.begin(), files.end());
  for (size_t i = 0; i < entries_.size() && entries_[at_].kind == Entry::Kind::up; ++i) at_ = i;
}

void Browser::move(long by) {
  if (entries_.empty()) return;
  moved_ = true;
  at_ = static_cast<size_t>(
      std::clamp(static_cast<long>(at_) + by, 0L, static_cast<long>(entries_.size()) - 1));
}

void Browser::select(size_t at) {
  if (at >= entries_.size()) return;
  at_ = at;
  moved_ = true;
}

void Browser::jump(const std::string& start) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    const size_t at = (at_ + i + (start.size() == 1)) % entries_.size();
    if (entries_[at].name.starts_with(start)) return select(at);
  }
}

std::string Browser::choose() {
  if (entries_.empty()) return "";
  const Entry entry = entries_[at_];
  if (entry.kind != Entry::Kind::up && entry.kind != Entry::Kind::folder) return entry.value;
  const std::string left = fs::path(folder_).filename().string() + "/";
  folder_ = entry.value;
  moved_ = false;
  list();
  if (entry.kind == Entry::Kind::up)
    for (size_t i = 0; i < entries_.size(); ++i)
      if (entries_[i].name == left) select(i);
  return "";
}

}  // namespace invar::tui
