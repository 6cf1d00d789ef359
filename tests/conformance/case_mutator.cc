// Mutates the text of conformance cases.
#include "case_mutator.h"

#include <algorithm>
#include <set>
#include <variant>

#include "conformance/runner.h"  // refusal, compute_sizes

namespace invar::conformance {
namespace {

const std::vector<std::string> kFloatFills = {
    "normal",         "wide",   "tiny",   "huge", "angle",          "score",          "spread",
    "cliff",          "steps",  "minute", "edge", "rare",           "special",        "any",
    "cancel",         "masked", "few",    "zero", "bits(7f800000)", "bits(ffc00001)", "bits(ff800000)",
    "bits(80000000)", "one"};
const std::vector<std::string> kDtypes = {"f32", "bf16", "f16", "f64", "i64", "i32", "i8",
                                          "u8",  "bool", "i16", "u16", "u32", "u64"};
// Around vector widths, blocks of schedules, chunks of work.
const std::vector<int64_t> kSizes = {
    0,   1,   2,   3,   4,    5,    6,    7,    8,    9,    11,   12,   13,   15,   16,   17,   23,  24,  25,
    31,  32,  33,  40,  47,   48,   49,   63,   64,   65,   96,   127,  128,  129,  191,  255,  256, 257, 300,
    511, 512, 513, 640, 1000, 1023, 1024, 1025, 2047, 2048, 2049, 2305, 4095, 4096, 4097, 4609, 8193};
// Sizes where kernels count, index or launch otherwise. Only large cases have them.
const std::vector<int64_t> kLargeSizes = {8192,   16384,  16385,   32767,   32768,  32769,  65535,
                                          65536,  65537,  131071,  131072,  131073, 150001, 262144,
                                          262145, 524289, 1048575, 1048576, 1048577};
// Operands of one kind.
const std::vector<int64_t> kRepeats = {1, 1, 1, 2, 3, 4, 7, 8, 15, 31, 63, 64, 255, 510, 511, 512};
const std::vector<int64_t> kSettings = {-2, -1, 0, 1, 2, 3, 4, 5, 7, 8};
const std::vector<std::string> kFloats = {
    "00000000", "80000000", "3f800000", "bf800000", "3f000000", "40490fdb", "3727c5ac", "00000001",
    "00800000", "7f7fffff", "7f800000", "ff800000", "7fc00000", "2b8cbccc", "42c80000", "c2c80000"};

bool digit(char c) {
  return c >= '0' && c <= '9';
}

// Pieces of `text` from `at` on while `in` holds.
template <class In>
std::string while_(const std::string& text, size_t& at, In in) {
  const size_t from = at;
  while (at < text.size() && in(text[at])) ++at;
  return text.substr(from, at - from);
}

struct Span {
  int first, last;  // pieces of one tensor's dimensions, without the brackets
  bool constant, output;
};
std::vector<Span> tensors(const std::vector<Piece>& p) {
  std::vector<Span> spans;
  bool constant = false, output = false;
  for (int i = 0, from = 0; i < static_cast<int>(p.size()); ++i) {
    if (p[i].kind == Piece::constant) constant = true;
    if (p[i].kind == Piece::other && p[i].text.find("->") != std::string::npos) output = true;
    if (p[i].kind == Piece::open) from = i + 1;
    if (p[i].kind == Piece::close) spans.push_back({from, i, constant, output}), constant = false;
  }
  return spans;
}

std::vector<int> of_kind(const std::vector<Piece>& p, std::initializer_list<Piece::Kind> kinds) {
  std::vector<int> found;
  for (int i = 0; i < static_cast<int>(p.size()); ++i)
    if (std::find(kinds.begin(), kinds.end(), p[i].kind) != kinds.end()) found.push_back(i);
  return found;
}

// One number, wherever it stands in shapes (and settings and fills that follow them), becomes
// another.
void change_size(std::vector<Piece>& p, Random& r) {
  const auto sizes = of_kind(p, {Piece::size});
  if (sizes.empty()) return;
  const std::string old = p[r.of(sizes)].text;
  int64_t n = r.of(r.one_in(8) ? kLargeSizes : kSizes);
  if (r.one_in(3)) n = std::stoll(old) + static_cast<int64_t>(r.below(5)) - 2;
  if (r.one_in(4)) n = static_cast<int64_t>(r.below(600));
  const std::string now = std::to_string(std::max<int64_t>(n, 0));
  const bool all = !r.one_in(4), settings = r.one_in(2);
  for (Piece& piece : p) {
    const bool follows = piece.kind == Piece::setting_number || piece.kind == Piece::fill_number;
    if (piece.text == old && (piece.kind == Piece::size || (follows && settings)) && (all || r.one_in(2)))
      piece.text = now;
  }
}

void change_fill(std::vector<Piece>& p, Random& r) {
  const auto fills = of_kind(p, {Piece::fill});
  if (fills.empty()) return;
  const std::string now = r.of(kFloatFills);
  const int one = r.one_in(3) ? -1 : r.of(fills);
  for (int i : fills) {
    const bool number = i + 1 < static_cast<int>(p.size()) && p[i + 1].kind == Piece::fill_number;
    if ((one < 0 || i == one) && !number) p[i].text = now;  // below(40) stays: it goes with a shape
  }
}

void change_dtype(std::vector<Piece>& p, Random& r) {
  const auto dtypes = of_kind(p, {Piece::dtype});
  if (dtypes.empty()) return;
  const int one = r.of(dtypes);
  const std::string old = p[one].text, now = r.of(kDtypes);
  const bool all = r.one_in(3);
  for (int i : dtypes)
    if (i == one || (all && p[i].text == old)) p[i].text = now;
}

void change_setting(std::vector<Piece>& p, Random& r) {
  const auto settings = of_kind(p, {Piece::setting_number, Piece::setting_f32, Piece::step});
  if (settings.empty()) return;
  Piece& one = p[r.of(settings)];
  if (one.kind == Piece::setting_f32) {
    char text[9];
    std::snprintf(text, sizeof text, "%08x", static_cast<unsigned>(r.next()));
    one.text = r.one_in(4) ? text : r.of(kFloats);
  } else if (one.kind == Piece::step) {
    one.text = std::to_string(1 + r.below(140));
  } else {
    one.text = std::to_string(r.one_in(3) ? static_cast<int64_t>(r.below(70)) : r.of(kSettings));
  }
}

void change_constant(std::vector<Piece>& p, Random& r) {
  std::vector<int> inputs;
  for (int i = 0; i < static_cast<int>(p.size()); ++i) {
    if (p[i].kind == Piece::other && p[i].text.find("->") != std::string::npos) break;
    if (p[i].kind == Piece::dtype) inputs.push_back(i);
  }
  if (inputs.empty()) return;
  const int at = r.of(inputs);
  if (at > 0 && p[at - 1].kind == Piece::constant)
    p.erase(p.begin() + at - 1);
  else
    p.insert(p.begin() + at, {Piece::constant, "@"});
}

// Chooses which inputs are constant, each by a throw.
void change_constants(std::vector<Piece>& p, Random& r) {
  std::vector<Piece> next;
  bool inputs = true;
  for (const Piece& piece : p) {
    if (piece.kind == Piece::other && piece.text.find("->") != std::string::npos) inputs = false;
    if (inputs && piece.kind == Piece::constant) continue;
    if (inputs && piece.kind == Piece::dtype && r.one_in(2)) next.push_back({Piece::constant, "@"});
    next.push_back(piece);
  }
  p = std::move(next);
}

// The pieces of each input, and the space behind it.
std::vector<std::pair<int, int>> inputs_of(const std::vector<Piece>& p) {
  std::vector<std::pair<int, int>> inputs;
  for (int i = 0, from = 0; i < static_cast<int>(p.size()); ++i) {
    if (p[i].text.find("->") != std::string::npos) break;
    if (p[i].text == " " && p[i].kind == Piece::other) inputs.emplace_back(from, i + 1), from = i + 1;
  }
  return inputs;
}

// An input several times, or not at all. Indices may then choose among all inputs.
void change_operands(std::vector<Piece>& p, Random& r) {
  const auto inputs = inputs_of(p);
  if (inputs.empty()) return;
  const auto [from, to] = r.of(inputs);
  const std::vector<Piece> one(p.begin() + from, p.begin() + to);
  if (r.one_in(3)) {
    p.erase(p.begin() + from, p.begin() + to);
    return;
  }
  std::vector<Piece> more;
  for (int64_t n = r.of(kRepeats); n > 0; --n) more.insert(more.end(), one.begin(), one.end());
  p.insert(p.begin() + to, more.begin(), more.end());
  if (r.one_in(2)) return;
  const std::string all = std::to_string(inputs_of(p).size());
  for (int i : of_kind(p, {Piece::fill_number})) p[i].text = all;
}

// A dimension more in front of all tensors of one rank, or of one tensor; or one less.
void change_rank(std::vector<Piece>& p, Random& r) {
  auto spans = tensors(p);
  if (spans.empty()) return;
  auto commas = [&](const Span& s) {
    return std::count_if(p.begin() + s.first, p.begin() + s.last,
                         [](const Piece& x) { return x.text == ","; });
  };
  const Span chosen = spans[r.below(spans.size())];
  const auto rank = commas(chosen);
  const bool more = r.one_in(2), all = !r.one_in(3), weights = r.one_in(2);
  const std::string size = std::to_string(r.one_in(2) ? 1 : r.below(5));
  for (auto s = spans.rbegin(); s != spans.rend(); ++s) {  // from the back: positions before stay
    if (s->first != chosen.first && (!all || commas(*s) != rank || (s->constant && !weights))) continue;
    if (more) {
      std::vector<Piece> front{{Piece::size, size}};
      if (s->first != s->last) front.push_back({Piece::other, ","});
      p.insert(p.begin() + s->first, front.begin(), front.end());
    } else {
      auto end = std::find_if(p.begin() + s->first, p.begin() + s->last,
                              [](const Piece& x) { return x.text == ","; });
      p.erase(p.begin() + s->first, end == p.begin() + s->last ? end : end + 1);
    }
  }
}

// A single dimension becomes 1: what broadcasts.
void change_to_one(std::vector<Piece>& p, Random& r) {
  const auto sizes = of_kind(p, {Piece::size});
  if (!sizes.empty()) p[r.of(sizes)].text = "1";
}

// Elements, or nothing where they are more than `limit`.
bool within(const Case& c, int64_t limit) {
  int64_t total = 0;
  for (const auto* side : {&c.in, &c.out})
    for (const Tensor& t : *side) {
      if (t.shape.size() > ops::kMaxRank) return false;
      int64_t n = 1;
      for (int64_t d : t.shape)
        if (d < 0 || __builtin_mul_overflow(n, std::max<int64_t>(d, 1), &n) || n > limit) return false;
      total += n;
    }
  return total <= limit && c.spare <= limit;
}

}  // namespace

std::vector<Piece> pieces_of(const std::string& text) {
  std::vector<Piece> p;
  bool settings = false, dims = false;
  std::string name;  // of the setting
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    const bool starts_word = i == 0 || text[i - 1] == ' ';
    if (c == '|') settings = true;
    if (settings && starts_word && c >= 'a' && c <= 'z') {
      const size_t equal = std::min(text.find('=', i), text.size() - 1);
      name = text.substr(i, equal - i);
      p.push_back({Piece::other, text.substr(i, equal + 1 - i)});
      i = equal + 1;
      if (text.compare(i, 4, "f32:") == 0) {
        p.push_back({Piece::other, "f32:"}), i += 4;
        p.push_back({Piece::setting_f32, while_(text, i, [](char x) { return x != ' ' && x != ','; })});
      }
    } else if (settings && (digit(c) || c == '-')) {
      p.push_back({name == "seed"                        ? Piece::seed
                   : name == "chunks" || name == "spare" ? Piece::step
                                                         : Piece::setting_number,
                   while_(text, i, [](char x) { return digit(x) || x == '-'; })});
    } else if (!settings && c == '@') {
      p.push_back({Piece::constant, "@"}), ++i;
    } else if (!settings && !dims && c >= 'a' && c <= 'z' && (starts_word || text[i - 1] == '@')) {
      p.push_back({Piece::dtype, while_(text, i, [](char x) { return x != '[' && x != ' '; })});
    } else if (!settings && c == '[') {
      p.push_back({Piece::open, "["}), ++i, dims = true;
    } else if (!settings && c == ']') {
      p.push_back({Piece::close, "]"}), ++i, dims = false;
    } else if (dims && digit(c)) {
      p.push_back({Piece::size, while_(text, i, digit)});
    } else if (!settings && c == ':') {
      p.push_back({Piece::other, ":"}), ++i;
      const std::string fill = while_(text, i, [](char x) { return x != ' ' && x != '('; });
      const bool number = text.compare(i, 1, "(") == 0 && fill != "bits";
      p.push_back({Piece::fill, fill});
      if (number) {
        p.back().text += "(", ++i;
        p.push_back({Piece::fill_number, while_(text, i, digit)});
      } else {
        p.back().text += while_(text, i, [](char x) { return x != ' '; });
      }
    } else {
      p.push_back({Piece::other, text.substr(i++, 1)});
      if (c == '-' && text.compare(i, 1, ">") == 0) p.back().text += ">", ++i;
    }
  }
  return p;
}

std::string join(const std::vector<Piece>& pieces) {
  std::string text;
  for (const Piece& p : pieces) text += p.text;
  return text;
}

std::optional<Case> accepted(std::string_view op, const std::string& text, int64_t limit) {
  auto cases = parse(text, "", op);
  if (!cases || cases->size() != 1 || !within(cases->front(), limit)) return std::nullopt;
  Case& c = cases->front();
  for (const Tensor& t : c.in)  // a fill that this dtype does not have
    if (Tensor one = t; !t.fill.empty()) {
      if (t.fill.find("(0)") != std::string::npos) return std::nullopt;  // below(0): no number
      one.shape = {1};
      if (!materialise(one, 0, 0)) return std::nullopt;
    }
  if (!refusal(op, c).empty()) return std::nullopt;
  if (!c.chunks.empty())
    for (const auto* side : {&c.in, &c.out})
      for (const Tensor& t : *side)
        if (t.shape.size() < 2 || t.shape[1] != c.out[0].shape[1]) c.chunks.clear();
  return std::move(c);
}

Case mutated(std::string_view op, const Case& from, Random& r, int changes, int64_t limit) {
  using Change = void (*)(std::vector<Piece>&, Random&);
  static const std::vector<Change> kChanges = {
      change_size,     change_size, change_size,  change_fill,   change_fill,      change_setting,
      change_constant, change_rank, change_dtype, change_to_one, change_constants, change_operands};
  Case c = from;
  std::vector<Piece> pieces = pieces_of(from.text);
  for (Piece& p : pieces)
    if (p.kind == Piece::seed) p.text = std::to_string(r.below(1u << 30));
  if (auto seeded = accepted(op, join(pieces), limit)) c = *std::move(seeded);
  for (int change = 0, tries = 0; change < changes && tries < 40; ++tries) {
    std::vector<Piece> next = pieces;
    r.of(kChanges)(next, r);
    if (r.one_in(3)) r.of(kChanges)(next, r);  // some are accepted only together
    auto ok = accepted(op, join(next), limit);
    if (!ok) continue;
    pieces = std::move(next), c = *std::move(ok);
    ++change;
  }
  return c;
}

std::string check_huge_shapes(std::string_view op, const std::vector<ops::KernelRef>& rows, const Case& from,
                              Random& r) {
  static const std::vector<int64_t> kHuge = {0,
                                             0,
                                             1,
                                             2,
                                             3,
                                             int64_t{1} << 16,
                                             (int64_t{1} << 31) - 1,
                                             int64_t{1} << 31,
                                             int64_t{1} << 32,
                                             int64_t{1} << 40,
                                             int64_t{1} << 55,
                                             int64_t{1} << 59};
  static const std::vector<int64_t> kAny = {INT64_MIN,        INT64_MIN + 1,    -1,       0, 1,
                                            int64_t{1} << 31, int64_t{1} << 62, INT64_MAX};
  Case c = from;
  std::vector<Tensor*> tensors;
  for (auto* side : {&c.in, &c.out})
    for (Tensor& t : *side) tensors.push_back(&t);
  // A size that stands in several places goes along in all of them, mostly: else every check would
  // stop at once.
  for (int changes = 1 + static_cast<int>(r.below(4)); changes > 0; --changes) {
    const Tensor& t = *r.of(tensors);
    if (t.shape.empty()) continue;
    const int64_t old = r.of(t.shape), now = r.one_in(3) && old < int64_t{1} << 59
                                                 ? old * static_cast<int64_t>(1 + r.below(4))
                                                 : r.of(kHuge);
    const bool all = !r.one_in(4);
    for (Tensor* other : tensors)
      for (int64_t& d : other->shape)
        if (d == old && (all || r.one_in(2))) d = now;
  }
  for (auto& [name, value] : c.attrs)
    if (auto* i = std::get_if<int64_t>(&value); i && r.one_in(3)) *i = r.of(kAny);
  for (Tensor* t : tensors) {
    uint64_t bytes = size_of(t->dtype);
    for (int64_t d : t->shape)
      if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(std::max<int64_t>(d, 1)), &bytes) ||
          bytes > uint64_t{1} << 60)
        return "tensors that a plan can hold";
  }
  std::string wrong = refusal(op, c);
  if (wrong.empty()) compute_sizes(rows, c);
  return wrong;
}

std::vector<std::string> simpler(const std::string& text) {
  const std::vector<Piece> pieces = pieces_of(text);
  std::vector<std::string> found;
  auto add = [&](const std::vector<Piece>& p) {
    std::string t = join(p);
    if (t != text && std::find(found.begin(), found.end(), t) == found.end()) found.push_back(std::move(t));
  };
  std::set<std::string> sizes;
  for (const Piece& p : pieces)
    if (p.kind == Piece::size && p.text.size() < 16) sizes.insert(p.text);
  for (const std::string& size : sizes) {
    const int64_t n = std::stoll(size);
    for (int64_t smaller : {int64_t{1}, int64_t{2}, n / 2, n - n / 4, n - 8, n - 1}) {
      if (smaller < 1 || smaller >= n) continue;
      for (bool follow : {true, false}) {
        std::vector<Piece> p = pieces;
        for (Piece& piece : p) {
          const bool follows = piece.kind == Piece::setting_number || piece.kind == Piece::fill_number;
          if (piece.text == size && (piece.kind == Piece::size || (follow && follows)))
            piece.text = std::to_string(smaller);
        }
        add(p);
      }
    }
  }
  const auto inputs = inputs_of(pieces);
  for (size_t keep : {inputs.size() / 2, inputs.size() - 1}) {
    std::vector<Piece> p = pieces;
    if (keep > 0 && keep < inputs.size())
      p.erase(p.begin() + inputs[keep].first, p.begin() + inputs.back().second), add(p);
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    std::vector<Piece> p = pieces;
    if (p[i].kind == Piece::constant) p.erase(p.begin() + static_cast<int64_t>(i)), add(p);
    if (p[i].kind == Piece::size && p[i].text.size() < 16)
      for (int64_t smaller : {int64_t{1}, int64_t{std::stoll(p[i].text)} - 1})
        if (smaller >= 1 && std::to_string(smaller) != p[i].text) p[i].text = std::to_string(smaller), add(p);
    if (p[i].kind == Piece::fill && p[i].text.find('(') == std::string::npos && p[i].text != "one" &&
        p[i].text != "any")
      for (const char* plain : {"one", "normal"})
        if (p[i].text != plain) p[i].text = plain, add(p);
  }
  return found;
}

}  // namespace invar::conformance
