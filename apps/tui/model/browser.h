// The list behind Enter on a path: models of the hub's cache, folders and files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace invar::tui {

struct HubModel {
  std::string name;
  uint64_t bytes = 0;
};
// Reads the output of `invar cache list --json`.
std::vector<HubModel> hub_models(const std::string& json);

class Browser {
 public:
  enum class Wants { model, file, folder };
  struct Entry {
    enum class Kind { hub, here, up, model, folder, file };
    Kind kind;
    std::string name;   // as shown
    std::string value;  // what is chosen, or the folder that is entered
  };
  Browser(Wants wants, const std::string& start, std::string ending = "");

  void set_hub(const std::vector<HubModel>&);
  const std::vector<Entry>& entries() const { return entries_; }
  const std::string& folder() const { return folder_; }
  const std::string& problem() const { return problem_; }
  size_t at() const { return at_; }
  void move(long by);
  void select(size_t at);
  // The next entry from the selected one that begins with the text, if there is one.
  void jump(const std::string& start);
  // The value that was chosen; "" where a folder was entered instead.
  std::string choose();

 private:
  void list();

  Wants wants_;
  std::string folder_, ending_, problem_;
  std::vector<HubModel> hub_;
  std::vector<Entry> entries_;
  size_t at_ = 0;
  bool moved_ = false;  // the user chose where it stands
};

}  // namespace invar::tui
