// Spells the moving of elements in torch. Dimensions that only a call decides have no number here,
// so some texts differ for them.
#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

using Ints = std::vector<int64_t>;

// Python's slices shorten what a dimension that only a call decides does not have: narrow() and
// strided() refuse. An empty slice may start behind what is there, which narrow() would refuse,
// too.
std::string narrowed(const TorchCall& c, size_t d, int64_t start, const Dim& n, const Dim& count) {
  std::string first = std::to_string(start);
  if (start && !n.constant() && !count.constant())
    first = start > 0 ? cat("min(", start, ", ", c[0], ".size(", d, "))")
                      : cat("max(", start, ", -", c[0], ".size(", d, "))");
  return cat(".narrow(", d, ", ", first, ", ", torch_text(count), ")");
}

std::string span(int64_t start, int64_t step, int64_t n, int64_t count) {
  const int64_t end = start + count * step;
  return cat(start ? std::to_string(start) : "", ":", end >= n && count ? "" : std::to_string(end),
             step == 1 ? "" : cat(":", step));
}

Result<std::string> sliced(const TorchCall& c) {
  const Ints starts = c.ints("starts", c.rank()), steps = c.ints("steps", c.rank());
  std::vector<std::string> spans;
  std::string narrow;
  for (size_t d = 0; d < c.rank(); ++d) {
    const Dim &n = c.shape_of(0)[d], &count = c.type.shape[d];
    const bool known = n.constant() && count.constant();
    const int64_t start = starts[d] + (starts[d] < 0 && known ? n.value : 0);
    if (start == 0 && steps[d] == 1 && n == count) {
      spans.emplace_back(":");
    } else if (steps[d] == 1 && !known) {
      spans.emplace_back(":");
      narrow += narrowed(c, d, start, n, count);
    } else if (steps[d] < 1 || !known) {
      return cat("rooms.move.strided(", c[0], ", ", python::list_of(starts), ", ", python::list_of(steps),
                 ", ", c.shape(), ")");
    } else {
      spans.push_back(span(start, steps[d], n.value, count.value));
    }
  }
  while (!spans.empty() && spans.back() == ":") spans.pop_back();
  return c[0] + (spans.empty() ? "" : "[" + python::join(spans) + "]") + narrow;
}

// functional.pad adds this to one end of a dimension: a number, or a text if only a call decides
// it.
struct Amount {
  int64_t number = 0;
  std::string text = {};
  std::string shown() const { return text.empty() ? std::to_string(number) : text; }
};

// The last dimension first, begin and end; from the first dimension that is not kept.
std::vector<Amount> pad_amounts(const TorchCall& c) {
  const Ints begins = c.ints("begins", c.rank());
  std::vector<Amount> amounts;
  bool kept = true;
  size_t first = 0;
  for (size_t d = 0; d < c.rank() && kept; ++d) {
    kept = begins[d] == 0 && c.shape_of(0)[d] == c.type.shape[d];
    first = kept ? d + 1 : d;
  }
  for (size_t d = c.rank(); d-- > first;) {
    const Dim &n = c.shape_of(0)[d], &m = c.type.shape[d];
    Amount end;
    if (n.constant() && m.constant())
      end.number = m.value - n.value - begins[d];
    else if (!(n == m && begins[d] == 0))
      end.text = cat(torch_text(m), " - (", torch_text(n), ")", begins[d] ? cat(" - ", begins[d]) : "");
    amounts.push_back({begins[d]}), amounts.push_back(end);
  }
  return amounts;
}

std::string shown(const std::vector<Amount>& amounts) {
  std::vector<std::string> texts;
  for (const Amount& a : amounts) texts.push_back(a.shown());
  return python::tuple_of(texts);
}

Result<std::string> pad_call(const TorchCall& c) {
  if (c.size() > 1)
    return cat("rooms.move.pad(", c[0], ", ", c[1], ", ", python::list_of(c.ints("begins", c.rank())), ", ",
               c.shape(), ")");
  const std::vector<Amount> amounts = pad_amounts(c);
  return amounts.empty() ? c[0] : cat("functional.pad(", c[0], ", ", shown(amounts), ")");
}

// Says if functional.pad continues x in this way: it does so in up to the last three dimensions,
// and by less than they have.
bool is_continued(const TorchCall& c, const std::vector<Amount>& amounts) {
  const size_t rank = c.rank();
  if (c.types[0].dtype != DType::f32 || rank < 3 || rank > 5) return false;
  if (amounts.empty() || amounts.size() > 2 * (rank - 2)) return false;
  for (const Dim& n : c.shape_of(0))
    if (!n.constant()) return false;
  for (size_t i = 0; i < amounts.size(); ++i) {
    const int64_t n = c.shape_of(0)[rank - 1 - i / 2].value;
    if (!amounts[i].text.empty() || amounts[i].number < 0 || amounts[i].number >= n) return false;
  }
  return true;
}

Result<std::string> continued(const TorchCall& c, const char* mode, const char* of_torch) {
  std::vector<Amount> amounts = pad_amounts(c);
  if (of_torch && is_continued(c, amounts)) {
    amounts.resize(2 * (c.rank() - 2));
    return cat("functional.pad(", c[0], ", ", shown(amounts), ", mode=\"", of_torch, "\")");
  }
  return cat("rooms.move.continued(", c[0], ", \"", mode, "\", ", python::list_of(c.ints("begins", c.rank())),
             ", ", c.shape(), ")");
}

Result<std::string> permuted(const TorchCall& c) {
  Ints perm = c.ints("perm");
  if (perm.empty())
    for (size_t d = c.rank(); d-- > 0;) perm.push_back(static_cast<int64_t>(d));
  const std::string list = python::list_of(perm);
  return c.rank() ? cat(c[0], ".permute(", list.substr(1, list.size() - 2), ")") : c[0];
}

Result<std::string> iota(const TorchCall& c) {
  return cat(c[0], " + torch.arange(", torch_text(c.type.shape[0]), ", dtype=", c.dtype(), ", device=", c[0],
             ".device) * ", c[1]);
}

Result<std::string> one_hot(const TorchCall& c) {
  const int64_t axis = c.i("axis"), rank = static_cast<int64_t>(c.type.shape.size());
  return cat("rooms.move.one_hot(", c[0], ", ", c[1], ", axis=", axis,
             ", depth=", torch_text(c.type.shape[static_cast<size_t>(axis < 0 ? axis + rank : axis)]), ")");
}

Result<std::string> trilu(const TorchCall& c) {
  return cat("torch.", c.i("upper") ? "triu" : "tril", "(", c[0], ", diagonal=", c.i("k"), ")");
}

}  // namespace

void spell_move(TorchSpellings& spellings) {
  spellings.add("concat", [](const TorchCall& c) -> Result<std::string> {
    return cat("torch.cat(", python::tuple_of(c.from(0)), ", dim=", c.i("axis"), ")");
  });
  spellings.add("depth_to_space", [](const TorchCall& c) -> Result<std::string> {
    return cat(c.i("crd") ? "functional.pixel_shuffle" : "rooms.move.depth_to_space", "(", c[0], ", ",
               c.i("blocksize"), ")");
  });
  spellings.add("expand", "{0}.expand({shape})");
  spellings.add("iota", iota);
  spellings.add("one_hot", one_hot);
  spellings.add("pad", pad_call);
  spellings.add("pad_edge", [](const TorchCall& c) { return continued(c, "edge", "replicate"); });
  spellings.add("pad_reflect", [](const TorchCall& c) { return continued(c, "reflect", "reflect"); });
  spellings.add("pad_wrap", [](const TorchCall& c) { return continued(c, "wrap", nullptr); });
  spellings.add("reverse_sequence", [](const TorchCall& c) -> Result<std::string> {
    return cat("rooms.move.reverse_sequence(", c[0], ", ", c[1], ", time_axis=", c.i("time_axis"), ")");
  });
  spellings.add("slice", sliced);
  spellings.add("space_to_depth", "rooms.move.space_to_depth({0}, {blocksize})");
  spellings.add("transpose", permuted);
  spellings.add("trilu", [](const TorchCall& c) { return spelled_as_signed(trilu, c); });
}

}  // namespace invar::compiler
