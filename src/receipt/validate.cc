// Validation of a receipt's text without the model (spec/receipt.md receipt.9 to receipt.13).
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "receipt/fields/fields.h"
#include "receipt/fields/members.h"
#include "receipt/fields/rules.h"
#include "receipt/signatures/signatures.h"

namespace invar::receipt {
namespace {

using json::Value;
using Findings = std::vector<Finding>;

// One group of leaves under one root: the bound fields, or the execution section.
struct Group {
  std::string digests, root;                    // member names: of the object with the leaves, of the root
  std::string prefix, suffix;                   // of a field's path in findings
  std::vector<std::string> names;               // keys in the digests object
  std::vector<std::optional<Digest>> computed;  // nullopt: unreadable, with a finding
  std::vector<std::string> values;              // compact, for messages
};

// receipt.12: tells a changed value from a changed digest and from a changed root.
void compare(const Value& top, const Group& g, Findings& f) {
  std::vector<std::optional<Digest>> stated(g.names.size());
  if (const Value* v = object(top, g.digests, f)) {
    // The execution section may have any number of names.
    const std::set<std::string_view> names(g.names.begin(), g.names.end());
    for (const auto& [name, value] : v->members)
      if (!names.contains(name) && !full(f))
        f.push_back({g.digests + "." + name + g.suffix, "a field of this name", "a digest without a field"});
    std::map<std::string_view, const Value*> first;
    for (const auto& [name, value] : v->members)
      if (!first.emplace(name, &value).second && !full(f))
        f.push_back({g.digests + "." + name + g.suffix, "only one", "a second one"});
    for (size_t i = 0; i < g.names.size() && !full(f); ++i) {
      const std::string path = g.digests + "." + g.names[i] + g.suffix;
      const auto it = first.find(g.names[i]);
      if (it == first.end()) f.push_back({path, "a value", "nothing"});
      stated[i] = digest_of(it == first.end() ? nullptr : it->second, path, f);
    }
  }
  const std::string root_path = g.root + g.suffix;
  const auto root = digest_of(member(top, g.root, root_path, f), root_path, f);
  if (!root) return;

  std::vector<Digest> as_stated, as_computed;  // a missing one is replaced by the other
  std::vector<size_t> differing;
  for (size_t i = 0; i < g.names.size(); ++i) {
    if (!stated[i] && !g.computed[i]) return;  // nothing more to learn
    as_stated.push_back(stated[i] ? *stated[i] : *g.computed[i]);
    as_computed.push_back(g.computed[i] ? *g.computed[i] : *stated[i]);
    if (as_stated[i] != as_computed[i]) differing.push_back(i);
  }
  const bool values_changed = merkle_root(as_stated) == *root,
             digests_changed = merkle_root(as_computed) == *root;
  for (size_t i : differing) {
    if (full(f)) return;
    std::string field = g.prefix + g.names[i] + g.suffix;
    if (!values_changed && digests_changed)
      f.push_back(
          {g.digests + "." + g.names[i] + g.suffix, to_hex(*g.computed[i]), to_hex(*stated[i]), true});
    else
      f.push_back({field, "the digest " + to_hex(*g.computed[i]) + " of it",
                   json::brief(g.values[i]) + " with digest " + to_hex(*stated[i]), true});
  }
  if (!values_changed && !digests_changed)
    f.push_back({root_path, to_hex(merkle_root(as_computed)) + " (from the fields)", to_hex(*root), true});
}

// A field that stands in the text, and what was made of it.
struct Read {
  Field field;
  bool good = false;
};

// receipt.24, receipt.27
Read read_field(const Value& top, const Value* section, const Field& field, Receipt& r, Findings& f) {
  const std::string path = field.path();
  const Value* value = section ? member(*section, field.key, path, f) : nullptr;
  if (value && value->kind == Value::null && may_be_withheld(field) && r.format > 1) {
    const Value* digests = find(top, "digests");
    const Value* stated = digests ? find(*digests, path) : nullptr;
    r.withheld[path] = stated ? digest_from_hex(stated->text).value_or(Digest{}) : Digest{};
    return {field, false};
  }
  const bool good = value && read(field, *value, r, f);
  if (good && !stands(field, r))
    f.push_back({path, "no such member where it has no effect", write(field, r, Style::compact)});
  return {field, good};
}

// receipt.27: all or none is withheld, so that nothing that is left confirms a guess.
void check_withheld(const Receipt& r, Findings& f) {
  if (r.withheld.empty()) return;
  for (const Field& field : fields(r))
    if (may_be_withheld(field) && !r.withheld.contains(field.path()))
      f.push_back({field.path(), "null, because other fields are withheld", "a value"});
  if (r.salt == Digest{} && !r.withheld.contains(std::string(kSaltPath)))
    f.push_back({std::string(kSaltPath), "null, because other fields are withheld", "nothing"});
}

void check_bound(const Value& top, Receipt& r, Findings& f) {
  Group g{"digests", "receipt_hash", "", "", {"schema"}, {leaf("schema", json::quote(schema_of(r.format)))},
          {"schema"}};
  std::vector<Read> all;
  for (std::string_view section : kSections) {
    const Value* v = object(top, section, f);
    std::vector<std::string> known;
    for (const Field& field : fields(r.format)) {
      if (field.section != section) continue;
      known.emplace_back(field.key);
      if (!field.optional || (v && find(*v, field.key))) all.push_back(read_field(top, v, field, r, f));
    }
    if (v) members(*v, std::string(section) + ".", known, f);
  }
  for (const Read& one : all) {  // not before the salt is known
    g.names.push_back(one.field.path());
    g.values.push_back(one.good ? write(one.field, r, Style::compact) : "");
    g.computed.push_back(one.good ? std::optional(leaf(one.field, r)) : std::nullopt);
  }
  check_withheld(r, f);
  if (f.empty()) check_ranges(r, f);
  compare(top, g, f);
  if (f.empty()) check_consistency(r, f);
}

void check_execution(const Value& top, Receipt& r, Findings& f) {
  Group g{"execution_digests", "execution_hash", "execution.", " (informational)", {}, {}, {}};
  const Value* v = object(top, "execution", f);
  if (!v) return;
  members(*v, "execution.", {}, f);
  std::map<std::string, const Value*> sorted;
  for (const auto& [key, value] : v->members) sorted.emplace(key, &value);
  for (const auto& [key, value] : sorted) {
    const bool good = value->kind == Value::string;
    if (!good && !full(f))
      f.push_back({"execution." + key + g.suffix, "a string", std::string(json::name_of(value->kind))});
    g.names.push_back(key), g.values.push_back(json::quote(value->text));
    g.computed.push_back(good ? std::optional(leaf("execution." + key, g.values.back())) : std::nullopt);
    if (good) r.execution.emplace(key, value->text);
  }
  compare(top, g, f);
}

// Whether a member that only receipts of REE have stands at the top or in one of its objects.
bool is_of_ree(const Value& top) {
  const auto known = [](const Value& v) {
    return find(v, "ree_version") || find(v, "tokens_hash") || find(v, "prompt_hash");
  };
  return known(top) || std::ranges::any_of(top.members, [&](const auto& m) { return known(m.second); });
}

// Whether the receipt's own digest says that this is its schema: then it is no damaged text.
bool is_sealed_schema(const Value& top, const std::string& schema) {
  for (const auto& [section, digests] : top.members)
    if (section == "digests")
      for (const auto& [key, value] : digests.members)
        if (key == "schema") return value.text == to_hex(leaf("schema", json::quote(schema)));
  return false;
}

}  // namespace

Result<std::vector<Finding>> validate(std::string_view text, std::string_view name, Receipt* out) {
  INVAR_TRY(const Value top, json::parse(text, name));
  Findings f;
  if (!find(top, "schema") && is_of_ree(top))
    return not_covered(
        std::string(name) +
        ": a receipt of Gensyn's REE: its bits are those of REE's kernels, and REE verifies it; "
        "`invar run` with the same model and prompt makes one that Invar verifies");
  if (!find(top, "schema") && !find(top, "receipt_hash"))
    return bad_input(std::string(name) + ": not a receipt: it has neither \"schema\" nor \"receipt_hash\"");
  if (const Value* v = find(top, "schema"); v && v->text.starts_with("invar-training-receipt"))
    return not_covered(std::string(name) +
                       ": a receipt of a training (spec/training.md): its steps are executed by " +
                       "`python -m invar.training verify " + std::string(name) + "`");
  members(top, "",
          {"schema", "model", "program", "input", "output", "digests", "receipt_hash", "signatures",
           "execution", "execution_digests", "execution_hash"},
          f);
  Receipt r{};
  if (const Value* v = member(top, "schema", "schema", f)) {
    const std::string schema = v->kind == Value::string ? v->text : "";
    r.format = format_of(schema);
    if (r.format == 0 && is_sealed_schema(top, schema))
      return not_covered(std::string(name) + ": the receipt has the format " +
                         json::quote(json::brief(schema)) + ", which this build does not know; it knows " +
                         json::quote(schema_of(1)) + ", " + json::quote(schema_of(2)) + " and " +
                         json::quote(schema_of(kTensorFormat)) + ": use a newer invar");
    if (r.format == 0) {
      r.format = kNewestFormat;
      f.push_back({"schema", json::quote(schema_of(r.format)),
                   v->kind == Value::string ? json::quote(json::brief(schema)) : "something else"});
    }
  }
  check_bound(top, r, f);
  check_execution(top, r, f);
  read_signatures(top, r.signatures, f);
  if (f.empty()) check_signatures(r.signatures, kSignedReceipt, receipt_hash(r), f);
  if (out) *out = std::move(r);
  return bounded(std::move(f));
}

}  // namespace invar::receipt
