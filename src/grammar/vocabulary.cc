#include "grammar/vocabulary.h"

#include <algorithm>

#include "base/text/utf8.h"

namespace invar::grammar {
namespace {

using Bytes = std::vector<std::optional<std::string>>;

TokenTree tree_of(const Bytes& tokens, std::vector<int32_t> ids) {
  const auto bytes = [&](int32_t id) -> const std::string& { return *tokens[static_cast<size_t>(id)]; };
  // Byte by byte as unsigned numbers, and by id.
  std::ranges::sort(ids, [&](int32_t a, int32_t b) {
    const int order = bytes(a).compare(bytes(b));
    return order != 0 ? order < 0 : a < b;
  });
  TokenTree tree;
  std::vector<uint32_t> path;  // the nodes from the root to the last token's end
  const auto leave = [&](size_t depth) {
    for (; path.size() > depth; path.pop_back())
      tree.nodes[path.back()].behind = static_cast<uint32_t>(tree.nodes.size());
  };
  for (uint32_t i = 0; i < ids.size(); ++i) {
    const std::string& now = bytes(ids[i]);
    const std::string_view before = i > 0 ? std::string_view(bytes(ids[i - 1])) : std::string_view();
    leave(static_cast<size_t>(std::ranges::mismatch(before, now).in1 - before.begin()));
    while (path.size() < now.size()) {
      const auto byte = static_cast<uint8_t>(now[path.size()]);
      path.push_back(static_cast<uint32_t>(tree.nodes.size()));
      tree.nodes.push_back({byte, static_cast<uint32_t>(path.size()), 0, i, 0});
    }
    ++tree.nodes[path.back()].count;
    tree.deepest = std::max(tree.deepest, static_cast<uint32_t>(now.size()));
  }
  leave(0);
  tree.ids = std::move(ids);
  return tree;
}

// The number of characters, or 0 where the bytes are not plain.
int32_t plain_characters(const std::string& bytes) {
  if (valid_prefix(bytes) != bytes.size()) return 0;
  size_t count = 0;
  for (const char c : bytes) {
    if (c == '"' || c == '\\' || static_cast<uint8_t>(c) < 0x20) return 0;
    count += (static_cast<uint8_t>(c) & 0xc0) != 0x80;
  }
  return count <= static_cast<size_t>(kMostPlain) ? static_cast<int32_t>(count) : 0;
}

}  // namespace

Vocabulary::Vocabulary(std::vector<std::optional<std::string>> tokens) {
  auto made = std::make_unique<Impl>();
  made->tokens = std::move(tokens);
  made->all_plain.resize((made->tokens.size() + 63) / 64);
  std::vector<int32_t> all, rest;
  for (size_t i = 0; i < made->tokens.size(); ++i) {
    const auto& bytes = made->tokens[i];
    if (!bytes || bytes->empty()) continue;
    const auto id = static_cast<int32_t>(i);
    all.push_back(id);
    if (const int32_t n = plain_characters(*bytes); n > 0)
      made->plain.push_back({n, id}), made->all_plain[i / 64] |= uint64_t{1} << i % 64;
    else
      rest.push_back(id);
  }
  std::ranges::stable_sort(made->plain, {}, &Impl::Plain::characters);
  made->all = tree_of(made->tokens, std::move(all));
  made->rest = tree_of(made->tokens, std::move(rest));
  impl_ = std::move(made);
}
Vocabulary::Vocabulary(Vocabulary&&) noexcept = default;
Vocabulary::~Vocabulary() = default;

}  // namespace invar::grammar
