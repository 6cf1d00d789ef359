#include "receipt/fields/members.h"

#include <algorithm>
#include <set>

namespace invar::receipt {

using Findings = std::vector<Finding>;
using json::Value;

const Value* find(const Value& object, std::string_view key) {
  for (const auto& [name, value] : object.members)
    if (name == key) return &value;
  return nullptr;
}

const Value* member(const Value& object, std::string_view key, const std::string& path, Findings& f) {
  if (const Value* v = find(object, key)) return v;
  f.push_back({path, "a value", "nothing"});
  return nullptr;
}

const Value* object(const Value& parent, std::string_view key, Findings& f) {
  const Value* v = member(parent, key, std::string(key), f);
  if (!v || v->kind == Value::object) return v;
  f.push_back({std::string(key), "an object", std::string(json::name_of(v->kind))});
  return nullptr;
}

void members(const Value& object, const std::string& prefix, const std::vector<std::string>& known,
             Findings& f) {
  std::set<std::string> seen;
  for (const auto& [name, value] : object.members) {
    if (full(f)) return;
    if (!known.empty() && std::find(known.begin(), known.end(), name) == known.end())
      f.push_back({prefix + name, "no such member", "an unknown member"});
    else if (!seen.insert(name).second)
      f.push_back({prefix + name, "only one", "a second one"});
  }
}

std::vector<Finding> bounded(Findings f) {
  if (f.size() <= kMostFindings) return f;
  f.resize(kMostFindings);
  f.push_back({"further fields", "no finding", "more findings, which are not listed"});
  return f;
}

std::optional<Digest> digest_of(const Value* v, const std::string& path, Findings& f) {
  auto d = v && v->kind == Value::string ? digest_from_hex(v->text) : std::nullopt;
  if (v && !d) f.push_back({path, "64 lower-case hexadecimal digits in quotes", "something else"});
  return d;
}

}  // namespace invar::receipt
