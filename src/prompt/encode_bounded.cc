// Texts and pairs of texts in a bounded number of tokens, see prompt.h.
#include <algorithm>

#include "prompt/tokenizer_impl.h"

namespace invar::prompt {
namespace {

using Encoding = Tokenizer::Encoding;
using PairPiece = Tokenizer::Impl::PairPiece;

// How many tokens stay of two texts that together may have `room`: the longer one gives first, as
// in Hugging Face tokenizers (longest_first).
std::pair<size_t, size_t> shares(size_t first, size_t second, size_t room) {
  if (first + second <= room) return {first, second};
  const size_t shorter = std::min({first, second, room / 2});
  return first > second ? std::pair{room - shorter, shorter} : std::pair{shorter, room - shorter};
}

Encoding arranged(const std::vector<PairPiece>& pieces, const std::vector<int32_t>& first,
                  const std::vector<int32_t>& second) {
  Encoding out;
  for (const PairPiece& piece : pieces) {
    const std::vector<int32_t> one = {piece.id};
    const auto& ids = piece.id == Tokenizer::Impl::kText     ? first
                      : piece.id == Tokenizer::Impl::kSecond ? second
                                                             : one;
    out.ids.insert(out.ids.end(), ids.begin(), ids.end());
    out.types.resize(out.ids.size(), piece.type);
  }
  return out;
}

}  // namespace

Result<Encoding> Tokenizer::encode(std::string_view text, const std::string_view* second,
                                   int64_t max_length) const {
  std::vector<PairPiece> pieces = {{Impl::kText, 0}};
  std::vector<int32_t> behind;
  if (second) {
    if (impl_->pair_templates.size() > 1 ||
        (!impl_->pair_templates.empty() && impl_->pair_templates[0].empty()))
      return not_covered("tokenizer: its post-processor of pairs of texts is not covered");
    pieces = {{Impl::kText, 0}, {Impl::kSecond, 1}};
    if (!impl_->pair_templates.empty()) pieces = impl_->pair_templates[0];
    INVAR_TRY(behind, encode(*second, /*add_special_tokens=*/false));
  } else {
    for (const std::vector<int32_t>& t : impl_->templates) {
      std::vector<PairPiece> around;
      for (const int32_t id : t) {
        if (id != Impl::kText)
          around.push_back({id, 0});
        else
          around.insert(around.end(), pieces.begin(), pieces.end());
      }
      pieces = std::move(around);
    }
  }
  INVAR_TRY(std::vector<int32_t> front, encode(text, /*add_special_tokens=*/false));
  const size_t special = pieces.size() - (second ? 2 : 1), all = front.size() + behind.size();
  if (max_length > 0) {
    const auto most = static_cast<size_t>(max_length);
    if (most < special)
      return bad_input("a length of " + std::to_string(max_length) + " tokens has no room for the " +
                       std::to_string(special) + " special tokens");
    const auto [first_size, second_size] = second
                                               ? shares(front.size(), behind.size(), most - special)
                                               : std::pair{std::min(front.size(), most - special), size_t{0}};
    front.resize(first_size), behind.resize(second_size);
  }
  Encoding out = arranged(pieces, front, behind);
  out.cut = static_cast<int64_t>(all - front.size() - behind.size());
  return out;
}

}  // namespace invar::prompt
