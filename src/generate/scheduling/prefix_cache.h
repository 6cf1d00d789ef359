// Pages of keys and values by the tokens that they are of, so that a sequence need not compute the
// prefix that it has in common with another one. A position of a reproducible program has the same
// bits in whichever step it is computed (plan.11), so no bit depends on what is found here.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/hash/sha256.h"

namespace invar::generate {

// The names of a sequence's full pages: each is the SHA-256 of the one before and of the page's
// tokens, so it is of all tokens up to the page's end, and of the root.
class PageNames {
 public:
  // root: of what else decides keys and values: program, weights, adapter.
  PageNames(const Digest& root, int64_t page_positions) : root_(root), page_(page_positions) {}
  // The name of the page `index`. The tokens have that page, and are those of earlier calls.
  const Digest& of(std::span<const int32_t> tokens, int64_t index);
  int64_t page_positions() const { return page_; }

 private:
  Digest root_;
  int64_t page_;
  std::vector<Digest> names_;
};

// Knows which pages are kept under which names; the pages are the session's.
class PrefixCache {
 public:
  // The pages of these tokens from page `first` on that are kept, one after another, up to page
  // `end`. They are used now.
  std::vector<int64_t> find(PageNames&, std::span<const int32_t> tokens, int64_t first, int64_t end);
  bool has(const Digest& name) const { return pages_.contains(name); }
  // Keeps a page under a name that no page has.
  void add(const Digest& name, int64_t page);
  // The page is used now. Those of a sequence are to be named from its end on, so that its end goes
  // first: the pages behind one that is gone are of no use.
  void use(const Digest& name);
  // Takes out the page that was used longest ago among those that may go, and returns it.
  template <class MayGo>
  std::optional<int64_t> evict(const MayGo& may_go) {
    for (auto it = oldest_first_.begin(); it != oldest_first_.end(); ++it) {
      const auto found = pages_.find(it->second);
      const int64_t page = found->second.page;
      if (!may_go(page)) continue;
      pages_.erase(found), oldest_first_.erase(it);
      return page;
    }
    return std::nullopt;
  }
  template <class MayGo>
  int64_t count(const MayGo& may_go) const {
    int64_t n = 0;
    for (const auto& [name, kept] : pages_) n += may_go(kept.page);
    return n;
  }
  size_t size() const { return pages_.size(); }

 private:
  struct Kept {
    int64_t page;
    uint64_t used;  // when, counted in uses
  };
  struct First {
    size_t operator()(const Digest& d) const {
      size_t first;
      std::memcpy(&first, d.data(), sizeof first);
      return first;
    }
  };
  std::unordered_map<Digest, Kept, First> pages_;
  std::map<uint64_t, Digest> oldest_first_;
  uint64_t uses_ = 0;
};

}  // namespace invar::generate
