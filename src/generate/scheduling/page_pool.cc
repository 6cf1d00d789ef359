#include "generate/scheduling/page_pool.h"

#include <algorithm>
#include <utility>

#include "device/memory.h"

namespace invar::generate {
namespace {

constexpr int64_t kOfPage = run::Session::kPagePositions;

int64_t pages_for(int64_t positions) {
  return (positions + kOfPage - 1) / kOfPage;
}

// Where the session has no bound: those of all sequences, of two where there is one, which leaves
// room for what earlier answers had; or of half the machine's memory. One sequence fits in any
// case.
int64_t bound_of(const run::Session& s) {
  if (!s.shares_pages() || s.most_pages() != INT64_MAX) return INT64_MAX;
  const int64_t one = pages_for(s.capacity());
  const auto half =
      static_cast<int64_t>(Allocation::physical_memory() / 2 / std::max<size_t>(s.page_bytes(), 1));
  return std::max(one, std::min(one * std::max<int64_t>(s.sequences(), 2), half));
}

}  // namespace

int64_t common_prefix(std::span<const int32_t> a, std::span<const int32_t> b) {
  return std::ranges::mismatch(a, b).in1 - a.begin();
}

PagePool::PagePool(run::Session& session, const Digest& root, bool keeps)
    : session_(session),
      root_(root),
      paged_(session.shares_pages()),
      keeps_(keeps),
      bound_(bound_of(session)),
      held_(static_cast<size_t>(paged_ ? 0 : session.sequences())) {}

int64_t PagePool::choose(std::span<const int64_t> sequences, std::span<const int32_t> tokens) const {
  if (paged_) return sequences.front();
  const auto worth = [&](int64_t i) {
    const std::vector<int32_t>& held = held_[static_cast<size_t>(i)];
    return std::pair(common_prefix(held, tokens), -static_cast<int64_t>(held.size()));
  };
  return *std::ranges::max_element(sequences, {}, worth);
}

int64_t PagePool::begin(int64_t sequence, std::span<const int32_t> tokens) {
  if (paged_) return session_.reset(sequence);
  std::vector<int32_t> held = std::exchange(held_[static_cast<size_t>(sequence)], {});
  if (tokens.empty()) held.clear();
  return session_.reset(sequence, held.empty() ? 0 : common_prefix(held, tokens.first(tokens.size() - 1)));
}

void PagePool::overwrite(int64_t sequence) {
  if (!paged_) held_[static_cast<size_t>(sequence)].clear();
}

int64_t PagePool::append_kept(int64_t sequence, PageNames& names, std::span<const int32_t> tokens) {
  const int64_t position = session_.position(sequence);
  if (!keeps_ || !paged_ || position % kOfPage != 0) return 0;
  const std::vector<int64_t> found =
      cache_.find(names, tokens, position / kOfPage, (static_cast<int64_t>(tokens.size()) - 1) / kOfPage);
  if (!found.empty()) session_.append_pages(sequence, found);
  return session_.position(sequence) - position;
}

int64_t PagePool::kept(PageNames& names, std::span<const int32_t> tokens) {
  if (!keeps_ || !paged_) return 0;
  const int64_t end = (static_cast<int64_t>(tokens.size()) - 1) / kOfPage;
  return static_cast<int64_t>(cache_.find(names, tokens, 0, end).size()) * kOfPage;
}

int64_t PagePool::keep(int64_t sequence, PageNames& names, std::span<const int32_t> tokens, int64_t first) {
  if (!keeps_ || !paged_) return first;
  const int64_t end = session_.position(sequence) / kOfPage;
  for (; first < end; ++first)
    if (const Digest& name = names.of(tokens, first); !cache_.has(name))
      cache_.add(name, session_.keep_page(sequence, first));
  return end;
}

void PagePool::release(int64_t sequence, PageNames& names, std::span<const int32_t> tokens) {
  const int64_t position = tokens.empty() ? 0 : session_.position(sequence);
  if (!paged_) {
    if (keeps_) held_[static_cast<size_t>(sequence)].assign(tokens.begin(), tokens.begin() + position);
    return;
  }
  for (int64_t i = keeps_ ? position / kOfPage : 0; i > 0; --i) cache_.use(names.of(tokens, i - 1));
  session_.reset(sequence);
}

bool PagePool::make_room(int64_t pages) {
  if (!paged_) return true;
  while (session_.used_pages() + pages > most() || !session_.has_room(pages)) {
    const auto page = cache_.evict(is_idle());
    if (!page) return false;
    session_.drop_page(*page);
  }
  return true;
}

int64_t PagePool::missing(int64_t sequence, int64_t positions) const {
  if (!paged_) return 0;
  return std::max<int64_t>(pages_for(std::min(positions, session_.capacity())) - session_.pages_of(sequence),
                           0);
}

int64_t PagePool::free() const {
  return paged_ ? most() - session_.used_pages() + cache_.count(is_idle()) : INT64_MAX;
}

double PagePool::usage() const {
  if (paged_) return 1 - static_cast<double>(free()) / static_cast<double>(most());
  int64_t used = 0;
  for (int64_t i = 0; i < session_.sequences(); ++i) used += session_.position(i);
  return static_cast<double>(used) / static_cast<double>(session_.sequences() * session_.capacity());
}

void PagePool::clear() {
  while (const auto page = cache_.evict([](int64_t) { return true; })) session_.drop_page(*page);
  for (std::vector<int32_t>& held : held_) held.clear();
}

}  // namespace invar::generate
