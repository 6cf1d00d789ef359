// Validation of a receipt's text without the model (spec/receipt.md receipt.9 to receipt.13).
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "receipt/fields/fields.h"
#include "receipt/fields/rules.h"

namespace invar::receipt {
namespace {

using json::Value;
using Findings = std::vector<Finding>;

// The member of an object, with findings where it is missing. A second one of the same name is
// found by `members`.
const Value* member(const Value& object, std::string_view key, const std::string& path, Findings& f) {
  for (const auto& [name, value] : object.members)
    if (name == key) return &value;
  f.push_back({path, "a value", "nothing"});
  return nullptr;
}

const Value* object(const Value& parent, std::string_view key, Findings& f) {
  const Value* v = member(parent, key, std::string(key), f);
  if (!v || v->kind == Value::object) return v;
  f.push_back({std::string(key), "an object", std::string(json::name_of(v->kind))});
  return nullptr;
}

// Adds findings for unknown and repeated members. An empty `known` allows all names.
void members(const Value& object, const std::string& prefix, const std::vector<std::string>& known,
             Findings& f) {
  std::set<std::string> seen;
  for (const auto& [name, value] : object.members) {
    if (!known.empty() && std::find(known.begin(), known.end(), name) == known.end())
      f.push_back({prefix + name, "no such member", "an unknown member"});
    else if (!seen.insert(name).second)
      f.push_back({prefix + name, "only one", "a second one"});
  }
}

std::optional<Digest> digest(const Value* v, const std::string& path, Findings& f) {
  auto d = v && v->kind == Value::string ? digest_from_hex(v->text) : std::nullopt;
  if (v && !d) f.push_back({path, "64 lower-case hexadecimal digits in quotes", "something else"});
  return d;
}

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
      if (!names.contains(name))
        f.push_back({g.digests + "." + name + g.suffix, "a field of this name", "a digest without a field"});
    std::map<std::string_view, const Value*> first;
    for (const auto& [name, value] : v->members)
      if (!first.emplace(name, &value).second)
        f.push_back({g.digests + "." + name + g.suffix, "only one", "a second one"});
    for (size_t i = 0; i < g.names.size(); ++i) {
      const std::string path = g.digests + "." + g.names[i] + g.suffix;
      const auto it = first.find(g.names[i]);
      if (it == first.end()) f.push_back({path, "a value", "nothing"});
      stated[i] = digest(it == first.end() ? nullptr : it->second, path, f);
    }
  }
  const std::string root_path = g.root + g.suffix;
  const auto root = digest(member(top, g.root, root_path, f), root_path, f);
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
    std::string field = g.prefix + g.names[i] + g.suffix;
    if (!values_changed && digests_changed)
      f.push_back({g.digests + "." + g.names[i] + g.suffix, to_hex(*g.computed[i]), to_hex(*stated[i])});
    else
      f.push_back({field, "a value with digest " + to_hex(*stated[i]),
                   json::brief(g.values[i]) + " with digest " + to_hex(*g.computed[i])});
  }
  if (!values_changed && !digests_changed)
    f.push_back({root_path, to_hex(merkle_root(as_computed)) + " (from the fields)", to_hex(*root)});
}

void check_bound(const Value& top, Receipt& r, Findings& f) {
  Group g{"digests", "receipt_hash",       "",
          "",        leaf_names(r.format), {leaf("schema", json::quote(schema_of(r.format)))},
          {"schema"}};
  for (std::string_view section : kSections) {
    const Value* v = object(top, section, f);
    std::vector<std::string> known;
    for (const Field& field : fields(r.format))
      if (field.section == section) {
        known.emplace_back(field.key);
        const Value* value = v ? member(*v, field.key, field.path(), f) : nullptr;
        const bool good = value && read(field, *value, r, f);
        g.values.push_back(good ? write(field, r, Style::compact) : "");
        g.computed.push_back(good ? std::optional(leaf(field.path(), g.values.back())) : std::nullopt);
      }
    if (v) members(*v, std::string(section) + ".", known, f);
  }
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
    if (!good)
      f.push_back({"execution." + key + g.suffix, "a string", std::string(json::name_of(value->kind))});
    g.names.push_back(key), g.values.push_back(json::quote(value->text));
    g.computed.push_back(good ? std::optional(leaf("execution." + key, g.values.back())) : std::nullopt);
    if (good) r.execution.emplace(key, value->text);
  }
  compare(top, g, f);
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
  auto has = [&](std::string_view key) {
    return std::any_of(top.members.begin(), top.members.end(), [&](const auto& m) { return m.first == key; });
  };
  if (!has("schema") && !has("receipt_hash"))
    return bad_input(std::string(name) + ": not a receipt: it has neither \"schema\" nor \"receipt_hash\"");
  members(top, "",
          {"schema", "model", "program", "input", "output", "digests", "receipt_hash", "execution",
           "execution_digests", "execution_hash"},
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
  if (out) *out = std::move(r);
  return f;
}

}  // namespace invar::receipt
