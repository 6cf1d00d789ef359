// The member pre_tokenizer of tokenizer.json (spec/tokens.md tokens.4).
#include "prompt/files/readers.h"

namespace invar::prompt {
namespace {

constexpr std::pair<const char*, Behavior> kBehaviors[] = {
    {"Isolated", Behavior::isolated},
    {"Removed", Behavior::removed},
    {"MergedWithPrevious", Behavior::merged_with_previous},
    {"MergedWithNext", Behavior::merged_with_next},
    {"Contiguous", Behavior::contiguous}};

Status read_byte_level(const Json& p, const std::string& where, PreTokenizerList& out) {
  INVAR_TRY(const bool prefix_space, flag_of(p, "add_prefix_space", where));
  INVAR_TRY(const bool use_regex, flag_of(p, "use_regex", where, true));
  if (prefix_space) out.steps.push_back(make_prefix_space());
  if (use_regex) {
    static constexpr char kGpt2[] =
        R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
    INVAR_TRY(Regex regex, Regex::pattern(kGpt2));
    out.steps.push_back(make_split(std::move(regex), Behavior::isolated, false, "of ByteLevel"));
  }
  out.steps.push_back(make_byte_characters());
  out.ends_with_bytes = true;
  return {};
}

Result<PreTokenizerPtr> read_split(const Json& p, const std::string& where) {
  INVAR_TRY(const Behavior behavior, choice_of(p, "behavior", where, kBehaviors));
  INVAR_TRY(const bool invert, flag_of(p, "invert", where));
  INVAR_TRY(const PatternText pattern, pattern_of(p, where));
  auto regex = pattern.is_regex ? Regex::pattern(pattern.text) : Regex::literal(pattern.text);
  if (!regex) return Error{regex.error().code, where + ": " + regex.error().message};
  return make_split(*std::move(regex), behavior, invert, excerpt(pattern.text));
}

Result<PreTokenizerPtr> read_metaspace_splitter(const Json& p, const std::string& where) {
  static constexpr std::pair<const char*, PrependScheme> kSchemes[] = {
      {"always", PrependScheme::always}, {"first", PrependScheme::first}, {"never", PrependScheme::never}};
  INVAR_TRY(const uint32_t replacement, character_of(p, "replacement", where));
  PrependScheme scheme = PrependScheme::always;
  if (!member(p, "prepend_scheme").is_null()) {
    INVAR_TRY(scheme, choice_of(p, "prepend_scheme", where, kSchemes));
  }
  INVAR_TRY(const bool prefix_space, flag_of(p, "add_prefix_space", where, true));
  if (!prefix_space && !member(p, "prepend_scheme").is_null() && scheme != PrependScheme::never)
    return wrong(where, "add_prefix_space contradicts prepend_scheme");
  if (!prefix_space) scheme = PrependScheme::never;
  INVAR_TRY(const bool split, flag_of(p, "split", where, true));
  return make_metaspace(replacement, scheme, split);
}

Result<PreTokenizerPtr> read_one_pre_tokenizer(const std::string& type, const Json& p,
                                               const std::string& where) {
  if (type == "Split") return read_split(p, where);
  if (type == "Metaspace") return read_metaspace_splitter(p, where);
  if (type == "Whitespace") return make_whitespace();
  if (type == "WhitespaceSplit") return make_whitespace_split();
  if (type == "Digits") {
    INVAR_TRY(const bool individual, flag_of(p, "individual_digits", where));
    return make_digits(individual);
  }
  if (type == "Punctuation") {
    if (member(p, "behavior").is_null()) return make_punctuation(Behavior::isolated);
    INVAR_TRY(const Behavior behavior, choice_of(p, "behavior", where, kBehaviors));
    return make_punctuation(behavior);
  }
  if (type == "CharDelimiterSplit") {
    INVAR_TRY(const uint32_t delimiter, character_of(p, "delimiter", where));
    return make_char_delimiter_split(delimiter);
  }
  if (type == "FixedLength") {
    INVAR_TRY(const size_t length, size_of(p, "length", where, 5));
    if (length == 0) return wrong(where, "length must not be 0");
    return make_fixed_length(length);
  }
  return refused(where, "type " + excerpt(type));
}

}  // namespace

Status read_pre_tokenizer(const Json& p, const std::string& where, PreTokenizerList& out, int depth) {
  if (p.is_null()) return {};
  INVAR_TRY(const std::string type, text_of(p, "type", where));
  if (type == "Sequence")
    return each(p, "pretokenizers", where, depth, [&](const Json& v, const std::string& w) {
      return read_pre_tokenizer(v, w, out, depth + 1);
    });
  INVAR_CHECK_OK(expect_few(out.steps.size() + 1, where));
  if (type == "ByteLevel") return read_byte_level(p, where, out);
  out.ends_with_bytes = false;
  if (type == "BertPreTokenizer") {
    out.steps.push_back(make_whitespace_split());
    out.steps.push_back(make_punctuation(Behavior::isolated));
    return {};
  }
  INVAR_TRY(PreTokenizerPtr step, read_one_pre_tokenizer(type, p, where));
  out.steps.push_back(std::move(step));
  return {};
}

}  // namespace invar::prompt
