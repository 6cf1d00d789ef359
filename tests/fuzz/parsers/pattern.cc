// Fuzzes the regular expressions of tokenizers: matches lie in the text and move on, and a search
// ends. An input: the pattern, the text.
#include "fuzz/parsers/parts.h"
#include "prompt/regex/matches.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace invar;
  const auto parts = parts_of(data, size);
  const auto regex = prompt::Regex::pattern(parts[0]);
  if (!regex) return expect(regex.error()), 0;
  std::string text(
      parts.size() > 1 ? parts[1] : "Don't  stop 12345\n\u00e9\u4e2d \U0001f600aaaaaaaaaaaaaaaaaaaaaaaaaaaa");
  if (valid_prefix(text) < text.size()) return 0;
  for (int round = 0; round < 2; ++round, text += text + text + text) {
    prompt::Regex::Scratch scratch;
    prompt::Matches matches(*regex, text, scratch);
    size_t last = 0, count = 0;
    while (const auto m = matches.next()) {
      if (m->begin < last || m->end < m->begin || m->end > text.size()) defect("a match outside the text");
      for (const size_t at : {m->begin, m->end})
        if (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80)
          defect("half a character");
      last = m->end;
      if (++count > 2 * text.size() + 2) defect("matches without end");
    }
  }
  return 0;
}
