// The member decoder of tokenizer.json (spec/tokens.md tokens.17).
#include "prompt/files/readers.h"

namespace invar::prompt {
namespace {

Result<DecoderPtr> read_replace_decoder(const Json& d, const std::string& where, bool fused) {
  INVAR_TRY(const PatternText pattern, pattern_of(d, where));
  INVAR_TRY(std::string content, text_of(d, "content", where));
  if (fused && pattern.is_regex) return refused(where, "a Regex behind Fuse or ByteLevel");
  if (fused) return make_fused_replace(pattern.text, std::move(content));
  auto replacement = pattern.is_regex ? Replacement::pattern(pattern.text, std::move(content))
                                      : Replacement::literal(pattern.text, std::move(content));
  if (!replacement) return Error{replacement.error().code, where + ": " + replacement.error().message};
  return make_replace_decoder(*std::move(replacement));
}

Result<DecoderPtr> read_strip(const Json& d, const std::string& where, bool fused) {
  INVAR_TRY(const uint32_t content, character_of(d, "content", where));
  INVAR_TRY(const size_t start, size_of(d, "start", where));
  INVAR_TRY(const size_t stop, size_of(d, "stop", where));
  return fused ? make_fused_strip(content, start, stop) : make_strip_decoder(content, start, stop);
}

Result<DecoderPtr> read_metaspace(const Json& d, const std::string& where) {
  INVAR_TRY(const uint32_t replacement, character_of(d, "replacement", where));
  INVAR_TRY(const bool prefix_space, flag_of(d, "add_prefix_space", where, true));
  bool drops_first = prefix_space;
  if (const Json& scheme = member(d, "prepend_scheme"); !scheme.is_null()) {
    static constexpr std::pair<const char*, bool> kSchemes[] = {
        {"always", true}, {"first", true}, {"never", false}};
    INVAR_TRY(drops_first, choice_of(d, "prepend_scheme", where, kSchemes));
    if (drops_first && !prefix_space) return wrong(where, "add_prefix_space contradicts prepend_scheme");
  }
  return make_metaspace_decoder(replacement, drops_first);
}

// Decoders that take tokens, and that a text in parts could not be given.
Result<DecoderPtr> read_for_tokens(const std::string& type, const Json& d, const std::string& where) {
  if (type == "ByteFallback") return make_byte_fallback();
  if (type == "Metaspace") return read_metaspace(d, where);
  if (type == "WordPiece") {
    INVAR_TRY(std::string prefix, text_of(d, "prefix", where));
    INVAR_TRY(const bool cleanup, flag_of(d, "cleanup", where));
    return make_wordpiece_decoder(std::move(prefix), cleanup);
  }
  if (type == "BPEDecoder") {
    INVAR_TRY(std::string suffix, text_of(d, "suffix", where));
    if (suffix.empty()) return refused(where, "an empty suffix");
    return make_bpe_decoder(std::move(suffix));
  }
  return refused(where, "type " + excerpt(type));
}

}  // namespace

Status read_decoder(const Json& d, const std::string& where, DecoderList& out, int depth) {
  if (d.is_null()) return {};
  INVAR_TRY(const std::string type, text_of(d, "type", where));
  if (type == "Sequence")
    return each(d, "decoders", where, depth,
                [&](const Json& v, const std::string& w) { return read_decoder(v, w, out, depth + 1); });
  INVAR_CHECK_OK(expect_few(out.chain.size() + 1, where));
  const bool was_fused = out.fused;
  Result<DecoderPtr> made = DecoderPtr();
  if (type == "Fuse") {
    made = make_fuse();
    out.fused = true;
  } else if (type == "ByteLevel" && !was_fused) {
    out.bytes_first = out.chain.empty();
    made = make_byte_level_decoder(out.bytes_first);
    out.fused = true;
  } else if (type == "Replace") {
    made = read_replace_decoder(d, where, was_fused);
  } else if (type == "Strip") {
    made = read_strip(d, where, was_fused);
  } else if (was_fused) {
    return refused(where, "type " + excerpt(type) + " behind Fuse or ByteLevel");
  } else {
    made = read_for_tokens(type, d, where);
  }
  if (!made) return made.error();
  out.chain.push_back(*std::move(made));
  return {};
}

}  // namespace invar::prompt
