// The pages of an engine's session: those that sequences use, and those of earlier sequences that
// are kept for the next one with the same prefix, as long as there is room.
#pragma once

#include <cstdint>
#include <span>

#include "base/hash/sha256.h"
#include "generate/scheduling/prefix_cache.h"
#include "run/session.h"

namespace invar::generate {

class PagePool {
 public:
  // root: what a page depends on beyond tokens. shares: false: nothing is kept, such as where bits
  // may depend on the step that computed a position. The session outlives the pool.
  PagePool(run::Session&, const Digest& root, bool shares);

  PageNames names() const { return {root_, run::Session::kPagePositions}; }
  // Appends the kept pages that go on with these tokens to a sequence whose position is at a page's
  // begin, but not the last token. Returns how many positions there are more.
  int64_t append_kept(int64_t sequence, PageNames&, std::span<const int32_t> tokens);
  // Keeps the full pages of a sequence from page `first` on. Returns the page behind them. tokens:
  // all that are computed.
  int64_t keep(int64_t sequence, PageNames&, std::span<const int32_t> tokens, int64_t first);
  // The sequence is over.
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
  bool shares() const { return shares_; }
  // Nothing is kept any more.
  void clear();

 private:
  auto is_idle() const {
    return [this](int64_t page) { return session_.page_users(page) == 1; };
  }

  run::Session& session_;
  const Digest root_;
  const bool paged_, shares_;
  const int64_t most_;  // pages; 0: the session has none
  PrefixCache cache_;
};

}  // namespace invar::generate
