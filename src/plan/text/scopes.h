// Lexical scopes of the plan's text: which values and symbols are visible in the body that is being
// read (plan.16).
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

  // The body that is being read; -1: none.
  int current_body() const { return open_.empty() ? -1 : open_.back().body; }
  size_t depth() const { return open_.size(); }
  void enter(int body) { open_.push_back({body, std::exchange(pending_, {})}); }
  // The body is complete and, like those before it, waits for the node that runs it.
  void leave() {
    pending_ = std::move(open_.back().pending_outside);
    pending_.push_back(open_.back().body);
    open_.pop_back();
  }
  const std::vector<int>& pending_bodies() const { return pending_; }
  void attach_pending() { pending_.clear(); }
  bool at_top() const { return open_.empty() && pending_.empty(); }

  void define_value() { body_of_.push_back(current_body()), may_have_slot_.push_back(true); }
  void forbid_slot() { may_have_slot_.back() = false; }  // of the value defined last
  bool may_have_slot(int v) const { return may_have_slot_[v]; }
  bool is_visible(int v) const { return body_of_[v] == current_body(); }
  // Whether a symbol is in scope here. `introduces`: an unknown one enters the scope.
  bool in_scope(const std::string& name, bool introduces) {
    const auto it = symbols_.find(name);
    if (it != symbols_.end())
      return it->second < 0 ||
             std::any_of(open_.begin(), open_.end(), [&](const Open& o) { return o.body == it->second; });
    if (introduces || open_.empty()) symbols_.emplace(name, current_body());
    return introduces || open_.empty();
  }

 private:
  struct Open {
    int body;
    std::vector<int> pending_outside;
  };
  std::vector<Open> open_;
  std::vector<int> pending_;
  std::vector<int> body_of_;  // per value
  std::vector<bool> may_have_slot_;
  std::map<std::string, int> symbols_;  // sized symbols: the body that introduces them, -1: the program
};

}  // namespace invar::plan
