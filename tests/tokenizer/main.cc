// invar_tokenize TOKENIZER.json: answers requests until standard input ends.
//   request   one letter, a 32-bit little-endian length, that many bytes
//             e, E: encode text with, without special tokens; d, D: decode 32-bit token ids,
//             skipping special tokens or not; s: as d, but token by token
//   answer    one byte (0, or the code of an error), a length, and the ids, the text, or the
//             error's message
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/file/file.h"
#include "prompt/prompt.h"

namespace {

using invar::prompt::Stream;
using invar::prompt::Tokenizer;

void answer(int code, std::string_view content) {
  const auto length = static_cast<uint32_t>(content.size());
  std::putchar(code);
  std::fwrite(&length, 4, 1, stdout);
  std::fwrite(content.data(), 1, content.size(), stdout);
  std::fflush(stdout);
}

void serve(const Tokenizer& t, char what, const std::string& payload) {
  if (what == 'e' || what == 'E') {
    auto ids = t.encode(payload, what == 'e');
    if (!ids) return answer(static_cast<int>(ids.error().code), ids.error().message);
    return answer(0, {reinterpret_cast<const char*>(ids->data()), ids->size() * 4});
  }
  std::vector<int32_t> ids(payload.size() / 4);
  std::memcpy(ids.data(), payload.data(), ids.size() * 4);
  if (what != 's') return answer(0, t.decode(ids, what == 'd'));
  Stream stream(t);
  std::string text;
  for (int32_t id : ids) text += stream.push(id);
  answer(0, text + stream.finish());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: invar_tokenize TOKENIZER.json\n"), 2;
  auto json = invar::read_file(argv[1]);
  auto tokenizer = json ? Tokenizer::parse(*json, argv[1]) : invar::Result<Tokenizer>(json.error());
  if (!tokenizer) {
    std::fprintf(stderr, "%s\n", tokenizer.error().message.c_str());
    return static_cast<int>(tokenizer.error().code);
  }
  char what;
  uint32_t length;
  std::string payload;
  while (std::fread(&what, 1, 1, stdin) == 1 && std::fread(&length, 4, 1, stdin) == 1) {
    payload.resize(length);
    if (std::fread(payload.data(), 1, length, stdin) != length) return 2;
    serve(*tokenizer, what, payload);
  }
}
