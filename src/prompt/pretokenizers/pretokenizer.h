// Pre-tokenizers: cut a text into the words that the model encodes one by one (spec/tokens.md
// tokens.4).
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "prompt/regex/regex.h"
#include "prompt/regex/replace.h"

namespace invar::prompt {

enum class Behavior { isolated, removed, merged_with_previous, merged_with_next, contiguous };

struct Word {
  std::string_view text;
  bool from_start;  // its first character comes from the very start of the whole text
};

class PreTokenizer {
 public:
  struct Scratch {
    Regex::Scratch regex;
    std::vector<Word> words, next;
    std::deque<std::string> texts;  // what pre-tokenizers have rewritten; the words refer to it
  };
  virtual ~PreTokenizer() = default;
  // Appends the words of a piece in order; none is empty. The views live as long as the text and
  // the scratch memory. An error: a pattern takes too many steps.
  virtual Status split(Word piece, Scratch& scratch, std::vector<Word>& out) const = 0;
};

// Makers of each kind; what each does: tokens.4.
using PreTokenizerPtr = std::unique_ptr<const PreTokenizer>;
PreTokenizerPtr make_split(Regex regex, Behavior behavior, bool invert, std::string shown);
PreTokenizerPtr make_digits(bool individual);
PreTokenizerPtr make_punctuation(Behavior behavior);
PreTokenizerPtr make_whitespace_split();
PreTokenizerPtr make_whitespace();
PreTokenizerPtr make_char_delimiter_split(uint32_t delimiter);
PreTokenizerPtr make_fixed_length(size_t characters);
enum class PrependScheme { always, first, never };
PreTokenizerPtr make_metaspace(uint32_t replacement, PrependScheme scheme, bool split);
// Puts a space before a piece that does not begin with one.
PreTokenizerPtr make_prefix_space();
// Writes bytes as ByteLevel's characters (tokens.6).
PreTokenizerPtr make_byte_characters();
// Cuts before a run of the character that follows another one.
PreTokenizerPtr make_cut_before(uint32_t character);

// Runs all of them, and calls word(std::string_view) for every word in order; its errors pass.
// not_covered: together they rewrite more than most_rewritten() bytes.
template <class F>
Status pre_tokenize(const std::vector<PreTokenizerPtr>& steps, Word piece, PreTokenizer::Scratch& scratch,
                    F&& word) {
  auto& words = scratch.words;
  words.assign(1, piece);
  size_t left = most_rewritten(piece.text.size()), texts = scratch.texts.size();
  for (const PreTokenizerPtr& step : steps) {
    scratch.next.clear();
    for (const Word& w : words) INVAR_CHECK_OK(step->split(w, scratch, scratch.next));
    words.swap(scratch.next);
    for (; texts < scratch.texts.size(); ++texts) {
      if (scratch.texts[texts].size() > left)
        return not_covered("the tokenizer's pre-tokenizers make this text too long");
      left -= scratch.texts[texts].size();
    }
  }
  for (const Word& w : words) INVAR_CHECK_OK(word(w.text));
  return {};
}

}  // namespace invar::prompt
