// The first difference between two receipts, see compare.h.
#include <algorithm>
#include <map>

#include "base/text/json.h"
#include "dispute/compare.h"

namespace invar::dispute {
namespace {

std::string text_of(const json::Value& v) {
  if (v.kind == json::Value::null) return "nothing";
  if (v.kind == json::Value::string) return json::quote(json::brief(v.text));
  if (v.kind == json::Value::array) return "a list of " + std::to_string(v.items.size());
  return v.kind == json::Value::object ? "an object" : v.text;
}

// The path to the first difference below two values, and both contents; absent: they are equal.
struct At {
  std::string path, a, b;
};
std::optional<At> first_json_difference(const json::Value& a, const json::Value& b, const std::string& path) {
  if (a.kind != b.kind) return At{path, text_of(a), text_of(b)};
  for (size_t i = 0; i < std::min(a.items.size(), b.items.size()); ++i)
    if (auto at = first_json_difference(a.items[i], b.items[i], path + "[" + std::to_string(i) + "]"))
      return at;
  for (size_t i = 0; i < std::min(a.members.size(), b.members.size()); ++i) {
    const std::string member = path + (path.empty() ? "" : ".") + a.members[i].first;
    if (auto at = first_json_difference(a.members[i].second, b.members[i].second, member)) return at;
  }
  if (a.text == b.text && a.items.size() == b.items.size() && a.members.size() == b.members.size()) return {};
  return At{path, text_of(a), text_of(b)};
}

const json::Value& member(const json::Value& v, std::string_view name) {
  for (const json::Member& m : v.members)
    if (m.first == name) return m.second;
  static const json::Value none;
  return none;
}

json::Value as_json(const receipt::Receipt& r) {
  return *json::parse(receipt::print(r), "a receipt");  // print() writes JSON
}

// "3 of 47 differ: a, b, c; only the first has d"; "" where the lists are equal.
std::string tensors_text(const std::vector<receipt::TensorDigest>& a,
                         const std::vector<receipt::TensorDigest>& b) {
  constexpr size_t kNamed = 5;
  const auto listed = [](const std::vector<std::string>& names) {
    std::string list;
    for (size_t i = 0; i < names.size() && i < kNamed; ++i) list += (i ? ", " : "") + json::brief(names[i]);
    return list + (names.size() > kNamed ? " and " + std::to_string(names.size() - kNamed) + " more" : "");
  };
  std::map<std::string_view, const receipt::TensorDigest*> of_b;
  for (const receipt::TensorDigest& t : b) of_b.emplace(t.name, &t);
  std::vector<std::string> differing, only_a, only_b;
  size_t both = 0;
  for (const receipt::TensorDigest& t : a) {
    const auto found = of_b.find(t.name);
    if (found == of_b.end()) {
      only_a.push_back(t.name);
      continue;
    }
    const receipt::TensorDigest& other = *found->second;
    ++both;
    if (t.dtype != other.dtype || t.shape != other.shape || t.sha256 != other.sha256)
      differing.push_back(t.name);
    of_b.erase(found);
  }
  for (const auto& [name, t] : of_b) only_b.emplace_back(name);
  if (differing.empty() && only_a.empty() && only_b.empty()) return "";
  std::string text = std::to_string(differing.size()) + " of " + std::to_string(both) + " differ";
  if (!differing.empty()) text += ": " + listed(differing);
  if (!only_a.empty())
    text += "; " + std::to_string(only_a.size()) + " in the first alone: " + listed(only_a);
  if (!only_b.empty())
    text += "; " + std::to_string(only_b.size()) + " in the second alone: " + listed(only_b);
  return text;
}

// Why two receipts differ whose first differing field this is.
std::string cause_of(const std::string& field, const receipt::Receipt& a, const receipt::Receipt& b) {
  auto of = [&](std::string_view section) { return field.starts_with(section); };
  if (field == "schema") return "two formats of receipts: the hashes cannot be equal";
  if (of("model.weights") || of("model.tensors")) return "other weights: the digests of the tensors differ";
  if (of("model.name") || of("model.revision")) return "another label: the computation may be the same";
  if (of("model.")) return "another checkpoint: its config, tokenizer or chat template differs";
  if (of("program.numerics")) return "another numerics version: it computes other bits";
  if (of("program.") && a.profile != b.profile)
    return "another profile: one side computed with --numerics " + a.profile +
           ", the other with --numerics " + b.profile + ", each of which has bits of its own";
  if (of("program.")) return "another program: what is computed differs";
  if (of("input.")) return "another question: input or sampling differs";
  return "model, program and input are equal, so one side computed other bits or its receipt was changed: a "
         "kernel that does not conform, faulty memory, or a forged receipt";
}

}  // namespace

Difference compare_receipts(const receipt::Receipt& a, const receipt::Receipt& b) {
  Difference d;
  const json::Value left = as_json(a), right = as_json(b);
  std::string first;
  auto compare_field = [&](const std::string& path, const json::Value& x, const json::Value& y) {
    const auto at = first_json_difference(x, y, path);
    if (!at) return;
    // Labels are no reason where anything else differs.
    if (first.empty() || first.starts_with("model.name") || first.starts_with("model.revision"))
      first = at->path;
    d.where.emplace_back("field", at->path + ": " + at->a + " and " + at->b);
  };
  compare_field("schema", member(left, "schema"), member(right, "schema"));
  for (const char* section : {"model", "program", "input", "output"})
    for (const json::Member& m : member(left, section).members)
      compare_field(section + ("." + m.first), m.second, member(member(right, section), m.first));
  d.equal = d.where.empty();
  if (d.equal) return d;
  for (const auto& [what, lists] : {std::pair("tensors", std::pair(&a.tensors, &b.tensors)),
                                    {"inputs", {&a.input_tensors, &b.input_tensors}},
                                    {"outputs", {&a.output_tensors, &b.output_tensors}}})
    if (const std::string text = tensors_text(*lists.first, *lists.second); !text.empty())
      d.where.emplace_back(what, text);
  d.parting = parting_of(a, b);
  d.cause = receipt::receipt_hash(a) == receipt::receipt_hash(b)
                ? "the same receipt, of equal hash, whose prompt one side withholds (receipt.27)"
                : cause_of(first, a, b);
  if (!first.starts_with("output.")) return d;
  const size_t steps = std::min(a.tokens.size(), b.tokens.size());
  size_t step = 0;
  while (step < steps && a.tokens[step] == b.tokens[step] && a.logits[step] == b.logits[step]) ++step;
  if (step < steps)
    d.where.emplace_back(
        "step", std::to_string(step) + ": tokens " + std::to_string(a.tokens[step]) + " and " +
                    std::to_string(b.tokens[step]) + ", logits " +
                    (a.logits[step] == b.logits[step] ? "equal, so one token is not what the sampler picks"
                                                      : "differ"));
  if (a.format == receipt::kTensorFormat) return d;  // they have no steps to trace
  d.next =
      "invar trace RECEIPT -o trace.json, each side with the same receipt; then invar diff of both traces";
  return d;
}

}  // namespace invar::dispute
