// Which values, symbols and bodies mean something where, as the text of a plan is read (plan.16).
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace invar::plan {

class Scopes {
 public:
  static constexpr size_t kMaxNested = 64;  // bodies within bodies

  int within() const { return open_.empty() ? -1 : open_.back().body; }  // the body that is read; -1: none
  size_t depth() const { return open_.size(); }
  void begin(int body) { open_.push_back({body, std::exchange(complete_, {})}); }
  // It waits for its node, as those before it do.
  void end() {
    complete_ = std::move(open_.back().before);
    complete_.push_back(open_.back().body);
    open_.pop_back();
  }
  // The bodies that are complete and wait for their node.
  const std::vector<int>& complete() const { return complete_; }
  void take_complete() { complete_.clear(); }
  bool at_top() const { return open_.empty() && complete_.empty(); }

  // The next value. fixed: it may have a slot.
  void define() { of_.push_back(within()), fixed_.push_back(true); }
  void unfix() { fixed_.back() = false; }
  bool fixed(int v) const { return fixed_[v]; }
  bool sees(int v) const { return of_[v] == within(); }
  // Whether a symbol means something here, or does so from here on.
  bool means(const std::string& name, bool introduces) {
    const auto it = symbols_.find(name);
    if (it != symbols_.end())
      return it->second < 0 ||
             std::any_of(open_.begin(), open_.end(), [&](const Open& o) { return o.body == it->second; });
    if (introduces || open_.empty()) symbols_.emplace(name, within());
    return introduces || open_.empty();
  }

 private:
  struct Open {
    int body;
    std::vector<int> before;  // complete outside of it
  };
  std::vector<Open> open_;
  std::vector<int> complete_;
  std::vector<int> of_;  // per value, its body
  std::vector<bool> fixed_;
  std::map<std::string, int> symbols_;  // names that stand in a shape or are bound: the body from where on
};

}  // namespace invar::plan
