// What an engine's session remembers beyond the requests that run, for the next one with the same
// prefix: pages of keys and values, as long as there is room. Where sequences share no pages
// (run::Session::shares_pages says where), each keeps what it has until another request needs it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/hash/sha256.h"
#include "generate/scheduling/prefix_cache.h"
#include "run/session.h"

namespace invar::generate {

// How many tokens both begin with.
int64_t common_prefix(std::span<const int32_t> a, std::span<const int32_t> b);

class PagePool {
 public:
  // root: what a page depends on beyond tokens. keeps: false: nothing is kept, such as where bits
  // may depend on the step that computed a position. The session outlives the pool.
  PagePool(run::Session&, const Digest& root, bool keeps);

  PageNames names() const { return {root_, run::Session::kPagePositions}; }
  // Which of these free sequences is the best for these tokens.
  int64_t choose(std::span<const int64_t> sequences, std::span<const int32_t> tokens) const;
  // Forgets a sequence but for what it has of these tokens, which is not the last one. Returns its
  // position.
  int64_t begin(int64_t sequence, std::span<const int32_t> tokens);
  // Appends the kept pages that go on with these tokens to a sequence whose position is at a page's
  // begin, but not the last token. Returns how many positions there are more.
  int64_t append_kept(int64_t sequence, PageNames&, std::span<const int32_t> tokens);
  // How many positions append_kept() would append to a sequence that has none.
  int64_t kept(PageNames&, std::span<const int32_t> tokens);
  // Keeps the full pages of a sequence from page `first` on. Returns the page behind them. tokens:
  // all that are computed.
  int64_t keep(int64_t sequence, PageNames&, std::span<const int32_t> tokens, int64_t first);
  // The sequence is over. tokens: those that it computed, as far as the next one may have them.
  void release(int64_t sequence, PageNames&, std::span<const int32_t> tokens);
  // Whether so many pages can be taken; kept ones go, those used longest ago first.
  bool make_room(int64_t pages);
  // Pages to be taken before a sequence has so many positions.
  int64_t missing(int64_t sequence, int64_t positions) const;
  // Pages that no sequence uses.
  int64_t free() const;
  // The part that sequences use, from 0 to 1.
  double usage() const;
  // Whether the page at a position has a kept one of the same name.
  bool has(const Digest& name) const { return cache_.has(name); }
  bool keeps() const { return keeps_; }
  bool keeps_pages() const { return keeps_ && paged_; }
  // Somebody else writes into a free sequence.
  void overwrite(int64_t sequence);
  // Nothing is kept any more.
  void clear();

 private:
  auto is_idle() const {
    return [this](int64_t page) { return session_.page_users(page) == 1; };
  }

  run::Session& session_;
  const Digest root_;
  const bool paged_, keeps_;
  // Pages that may be in use.
  int64_t most() const { return std::min(bound_, session_.most_pages()); }

  const int64_t bound_;  // of most()
  PrefixCache cache_;
  std::vector<std::vector<int32_t>> held_;  // without pages: tokens in the memory of free sequences
};

}  // namespace invar::generate
