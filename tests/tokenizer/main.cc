// invar_tokenize FILE: answers requests until standard input ends. FILE is a tokenizer.json, a
// SentencePiece *.model (no end tokens are added), or a *.tiktoken with the name of its encoding.
//   request   one letter, a 32-bit little-endian length, that many bytes
//             e, E: encode text with, without special tokens; d, D: decode 32-bit token ids,
//             skipping special tokens or not; s: as d, but token by token; t, T: encode, decode
//             (skipping special tokens) a row of length and content, and answer with the seconds, a
//             double
//   answer    one byte (0, or the code of an error), a length, and the ids, the text, or the
//             error's message
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>

#include "base/file/file.h"
#include "prompt/prompt.h"

namespace {

using invar::Result;
using invar::prompt::Stream;
using invar::prompt::Tokenizer;

void answer(int code, std::string_view content) {
  const auto length = static_cast<uint32_t>(content.size());
  std::putchar(code);
  std::fwrite(&length, 4, 1, stdout);
  std::fwrite(content.data(), 1, content.size(), stdout);
  std::fflush(stdout);
}

std::vector<int32_t> ids_of(std::string_view bytes) {
  std::vector<int32_t> ids(bytes.size() / 4);
  std::memcpy(ids.data(), bytes.data(), ids.size() * 4);
  return ids;
}

// The time that all parts of the payload take in turn.
void measure(const Tokenizer& t, char what, std::string_view payload) {
  std::vector<std::string_view> parts;
  while (payload.size() >= 4) {
    uint32_t length;
    std::memcpy(&length, payload.data(), 4);
    parts.push_back(payload.substr(4, length));
    payload.remove_prefix(4 + parts.back().size());
  }
  std::vector<std::vector<int32_t>> rows;
  for (std::string_view p : parts) rows.push_back(what == 'T' ? ids_of(p) : std::vector<int32_t>());
  size_t size = 0;
  const auto start = std::chrono::steady_clock::now();
  for (size_t i = 0; i < parts.size(); ++i) {
    if (what == 'T') {
      size += t.decode(rows[i]).size();
    } else if (auto ids = t.encode(parts[i])) {
      size += ids->size();
    }
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  answer(size ? 0 : 1, {reinterpret_cast<const char*>(&seconds), sizeof seconds});
}

Result<Tokenizer> opened(const std::string& path) {
  INVAR_TRY(const std::string content, invar::read_file(path));
  if (path.ends_with(".model")) return Tokenizer::parse_sentencepiece(content, path, {false, false});
  if (path.ends_with(".tiktoken"))
    return Tokenizer::parse_tiktoken(content, path, std::filesystem::path(path).stem().string());
  return Tokenizer::parse(content, path);
}

void serve(const Tokenizer& t, char what, const std::string& payload) {
  if (what == 't' || what == 'T') return measure(t, what, payload);
  if (what == 'e' || what == 'E') {
    auto ids = t.encode(payload, what == 'e');
    if (!ids) return answer(static_cast<int>(ids.error().code), ids.error().message);
    return answer(0, {reinterpret_cast<const char*>(ids->data()), ids->size() * 4});
  }
  const std::vector<int32_t> ids = ids_of(payload);
  if (what != 's') return answer(0, t.decode(ids, what == 'd'));
  Stream stream(t);
  std::string text;
  for (int32_t id : ids) text += stream.push(id);
  answer(0, text + stream.finish());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: invar_tokenize FILE\n"), 2;
  auto tokenizer = opened(argv[1]);
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
