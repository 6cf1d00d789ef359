// Schemas of JSON: the closed list of keywords of grammar.4.
#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <tuple>

#include "base/text/utf8.h"
#include "grammar/languages/languages.h"

namespace invar::grammar {
namespace {

using json::Value;

constexpr int64_t kMostItems = 256, kMostLength = 4096;
constexpr std::string_view kAnnotations[] = {"title",    "description", "default",
                                             "examples", "$schema",     "$comment"};
constexpr std::string_view kTypes[] = {"null", "boolean", "object", "array", "number", "integer", "string"};

// Keywords that say something of a value of one type; those of type "" of every value.
struct Keyword {
  std::string_view name, type;
};
constexpr Keyword kKeywords[] = {{"type", ""},
                                 {"enum", ""},
                                 {"const", ""},
                                 {"anyOf", ""},
                                 {"$ref", ""},
                                 {"$defs", ""},
                                 {"definitions", ""},
                                 {"properties", "object"},
                                 {"required", "object"},
                                 {"additionalProperties", "object"},
                                 {"items", "array"},
                                 {"prefixItems", "array"},
                                 {"minItems", "array"},
                                 {"maxItems", "array"},
                                 {"minLength", "string"},
                                 {"maxLength", "string"},
                                 {"pattern", "string"},
                                 {"minimum", "integer"},
                                 {"maximum", "integer"},
                                 {"exclusiveMinimum", "integer"},
                                 {"exclusiveMaximum", "integer"}};

bool is_annotation(std::string_view name) {
  return std::ranges::find(kAnnotations, name) != std::end(kAnnotations);
}

class SchemaReader {
 public:
  SchemaReader(NfaBuilder& b, const Value& root, std::string name)
      : b_(b), root_(root), name_(std::move(name)) {}

  Status read(uint32_t from, uint32_t to) {
    INVAR_CHECK_OK(value(from, root_, "", to));
    while (!waiting_.empty() && !b_.full()) {
      const Rule rule = waiting_.front();
      waiting_.pop_front();
      INVAR_CHECK_OK(build(rule));
    }
    return {};
  }

 private:
  enum Kind { kWhole, kObject, kList, kAnyObject, kAnyList, kCharacter };
  struct Rule {
    Kind kind;
    const Value* schema;
    std::string path;
    uint32_t start, end;
  };
  using Key = std::pair<Kind, const Value*>;

  Error wrong(const std::string& path, const std::string& why) const {
    const std::string place = path.empty() ? "the schema" : json::quote(json::brief("#" + path));
    return bad_input(name_ + ": " + place + ": " + why);
  }
  // The first state of a rule, which is built later; each once.
  uint32_t rule(Kind kind, const Value* schema, const std::string& path) {
    const auto [known, is_new] = rules_.try_emplace({kind, schema}, 0);
    if (!is_new) return known->second;
    const uint32_t start = b_.add(), end = b_.add();
    b_.at(end).end = true;
    known->second = start;
    waiting_.push_back({kind, schema, path, start, end});
    return start;
  }
  void call(uint32_t from, Kind kind, const Value* schema, const std::string& path, uint32_t to) {
    const bool level = kind != kWhole && kind != kCharacter;
    b_.call(from, rule(kind, schema, path), to, level);
  }

  Status build(const Rule& r) {
    switch (r.kind) {
      case kWhole: return value(r.start, *r.schema, r.path, r.end);
      case kObject: return object(r);
      case kList: return list(r);
      case kCharacter: return b_.json_character(r.start, r.end), Status();
      case kAnyObject: {
        static const Value kEmpty = Value::object;
        return object({kObject, &kEmpty, "", r.start, r.end});
      }
      case kAnyList: {
        static const Value kEmpty = Value::object;
        return list({kList, &kEmpty, "", r.start, r.end});
      }
    }
    return {};
  }

  Status any(uint32_t from, uint32_t to) {
    static const Value kEmpty = Value::object;
    call(from, kWhole, &kEmpty, "", to);
    return {};
  }
  Status value(uint32_t from, const Value& schema, const std::string& path, uint32_t to) {
    if (schema.is_boolean()) return schema.is_true() ? any(from, to) : Status();
    if (!schema.is_object()) return wrong(path, "a schema is an object, true or false");
    INVAR_CHECK_OK(check_keywords(schema, path));
    if (const Value* ref = schema.find("$ref")) {
      INVAR_TRY(const Found found, find(*ref, path));
      call(from, kWhole, found.schema, found.path, to);
      return {};
    }
    if (schema.contains("enum") || schema.contains("const")) return constants(from, schema, path, to);
    if (const Value* choices = schema.find("anyOf")) {
      if (!choices->is_array() || choices->empty())
        return wrong(path + "/anyOf", "a list of schemas is needed");
      for (size_t i = 0; i < choices->size() && !b_.full(); ++i)
        INVAR_CHECK_OK(value(from, choices->items[i], path + "/anyOf/" + std::to_string(i), to));
      return {};
    }
    INVAR_TRY(const auto types, types_of(schema, path));
    for (const std::string_view type : types) {
      INVAR_CHECK_OK(of_type(from, type, schema, path, to));
    }
    return {};
  }

  // Every keyword is of the list, and none stands where it would be forgotten.
  Status check_keywords(const Value& schema, const std::string& path) const {
    std::string_view alone;  // a keyword beside which only annotations may be
    for (const std::string_view name : {"$ref", "enum", "const", "anyOf"})
      if (alone.empty() && schema.contains(name)) alone = name;
    const bool constant = alone == "enum" || alone == "const";
    for (const auto& [name, ignored] : schema.members) {
      if (is_annotation(name)) continue;
      const auto* keyword = std::ranges::find(kKeywords, name, &Keyword::name);
      if (keyword == std::end(kKeywords)) {
        std::string all;
        for (const Keyword& k : kKeywords) all += (all.empty() ? "" : ", ") + std::string(k.name);
        return wrong(path, "the keyword " + json::quote(json::brief(name)) +
                               " is not supported; supported are " + all);
      }
      const bool defines = name == "$defs" || name == "definitions" || name == alone;
      if (!alone.empty() && !defines && !(constant && name == "type"))
        return wrong(path, "the keyword " + json::quote(name) + " is not supported beside " +
                               json::quote(alone) + ": leave one of the two out");
    }
    return {};
  }
  Result<std::vector<std::string_view>> types_of(const Value& schema, const std::string& path) const {
    const Value* given = schema.find("type");
    std::vector<std::string_view> types;
    if (!given) {
      for (const std::string_view type : kTypes)
        if (type != "integer") types.push_back(type);
      if (std::ranges::any_of(
              kKeywords, [&](const Keyword& k) { return k.type == "integer" && schema.contains(k.name); }))
        return wrong(path, "a bound of numbers needs \"type\": \"integer\"");
      return types;
    }
    std::vector<const Value*> names;
    if (!given->is_array()) names.push_back(given);
    for (const Value& one : given->items) names.push_back(&one);
    if (names.empty()) return wrong(path + "/type", "a list of types is empty");
    for (const Value* one : names) {
      const auto* known = std::ranges::find(kTypes, one->is_string() ? one->text : std::string());
      if (known == std::end(kTypes))
        return wrong(path + "/type", json::brief(json::compact(*one)) + " is no type of JSON Schema");
      if (std::ranges::count(types, *known) == 0) types.push_back(*known);
    }
    return types;
  }

  struct Found {
    const Value* schema;
    std::string path;
  };
  Result<Found> find(const Value& ref, const std::string& path) const {
    if (!ref.is_string() || !ref.text.starts_with('#'))
      return wrong(path + "/$ref", "only a place in this schema is supported, as \"#/$defs/NAME\"");
    const Value* at = &root_;
    std::string_view rest = std::string_view(ref.text).substr(1);
    if (!rest.empty() && !rest.starts_with("/$defs/") && !rest.starts_with("/definitions/"))
      return wrong(path + "/$ref", "only # and what is in #/$defs/ or #/definitions/ is supported");
    while (!rest.empty()) {
      rest.remove_prefix(1);
      const std::string_view raw = rest.substr(0, rest.find('/'));
      rest.remove_prefix(raw.size());
      std::string name;
      for (size_t i = 0; i < raw.size(); ++i) {
        const bool escaped = raw[i] == '~' && i + 1 < raw.size() && (raw[i + 1] == '0' || raw[i + 1] == '1');
        name += !escaped ? raw[i] : raw[++i] == '0' ? '~' : '/';
      }
      const Value* next = at->is_object() ? at->find(name) : nullptr;
      if (!next) return wrong(path + "/$ref", "there is no " + json::quote(json::brief(ref.text)));
      at = next;
    }
    return Found{at, ref.text.substr(1)};
  }

  Status constants(uint32_t from, const Value& schema, const std::string& path, uint32_t to) {
    std::vector<const Value*> all;
    const Value *list = schema.find("enum"), *constant = schema.find("const");
    if (constant && list) return wrong(path, "enum and const together are not supported: leave one out");
    if (constant) all.push_back(constant);
    if (list && (!list->is_array() || list->empty()))
      return wrong(path + "/enum", "a list of values is needed");
    for (size_t i = 0; list && i < list->size(); ++i) all.push_back(&list->items[i]);
    std::vector<std::string_view> types;
    if (schema.contains("type")) {
      INVAR_TRY(types, types_of(schema, path));
    }
    std::vector<std::string> texts;
    for (const Value* one : all)
      if (types.empty() || std::ranges::any_of(types, [&](auto type) { return has_type(*one, type); }))
        texts.push_back(json::compact(*one));
    b_.texts(from, texts, to);
    return {};
  }
  static bool has_type(const Value& v, std::string_view type) {
    switch (v.kind) {
      case Value::null: return type == "null";
      case Value::boolean: return type == "boolean";
      case Value::string: return type == "string";
      case Value::array: return type == "array";
      case Value::object: return type == "object";
      case Value::number: return type == "number" || (type == "integer" && v.is_integer());
    }
    return false;
  }

  Status of_type(uint32_t from, std::string_view type, const Value& schema, const std::string& path,
                 uint32_t to) {
    if (type == "null") return b_.literal(from, "null", to), Status();
    if (type == "boolean") return b_.literal(from, "true", to), b_.literal(from, "false", to), Status();
    const bool plain = std::ranges::none_of(
        kKeywords, [&](const Keyword& k) { return k.type == type && schema.contains(k.name); });
    if (type == "object" || type == "array") {
      const bool object = type == "object";
      if (plain)
        call(from, object ? kAnyObject : kAnyList, nullptr, "", to);
      else
        call(from, object ? kObject : kList, &schema, path, to);
      return {};
    }
    if (type == "string") return text(from, schema, path, to);
    if (type == "integer") return whole_number(from, schema, path, to);
    if (std::ranges::any_of(kKeywords,
                            [&](const Keyword& k) { return k.type == "integer" && schema.contains(k.name); }))
      return wrong(path, "a bound of numbers is supported of \"type\": \"integer\" alone");
    add_number(b_, from, to);
    return {};
  }

  // A count; -1: there is none.
  Result<int64_t> count(const Value& schema, const char* name, int64_t most, const std::string& path) const {
    const Value* v = schema.find(name);
    if (!v) return -1;
    if (!v->is_integer() || v->to_double() < 0)
      return wrong(path + "/" + name, "a whole number from 0 is needed");
    if (v->to_double() > static_cast<double>(most))
      return wrong(path + "/" + name, "at most " + std::to_string(most) + " is supported");
    return v->to_int64();
  }

  Status text(uint32_t from, const Value& schema, const std::string& path, uint32_t to) {
    INVAR_TRY(const int64_t given, count(schema, "minLength", kMostLength, path));
    INVAR_TRY(const int64_t most, count(schema, "maxLength", kMostLength, path));
    const int64_t least = std::max<int64_t>(given, 0);
    uint32_t state = b_.literal(from, "\"");
    if (const Value* pattern = schema.find("pattern")) {
      if (given >= 0 || most >= 0)
        return wrong(path,
                     "minLength and maxLength beside pattern are not supported: say them in the pattern");
      if (!pattern->is_string()) return wrong(path + "/pattern", "a text is needed");
      const uint32_t end = b_.add();
      if (const Status added = add_pattern(b_, state, pattern->text, Spelling::json, true, end); !added)
        return wrong(path + "/pattern", added.error().message);
      b_.literal(end, "\"", to);
      return {};
    }
    for (int64_t i = 0; !b_.full(); ++i) {
      b_.at(state).room = most < 0 ? kAnyRoom : static_cast<int32_t>(most - i);
      if (i >= least) b_.bytes(state, '"', '"', to);
      if (most >= 0 ? i >= most : i >= least) break;
      const uint32_t next = b_.add();
      call(state, kCharacter, nullptr, "", next);
      state = next;
    }
    if (most < 0) b_.json_character(state, state);
    return {};
  }

  Status whole_number(uint32_t from, const Value& schema, const std::string& path, uint32_t to) {
    std::optional<int64_t> least, most;
    for (const auto& [name, bound, step] :
         {std::tuple("minimum", &least, 0), std::tuple("exclusiveMinimum", &least, 1),
          std::tuple("maximum", &most, 0), std::tuple("exclusiveMaximum", &most, -1)}) {
      const Value* v = schema.find(name);
      if (!v) continue;
      const bool small = v->is_integer() && v->to_double() > -9e18 && v->to_double() < 9e18;
      if (!small) return wrong(path + "/" + name, "a whole number of less than 9e18 in size is needed");
      const int64_t n = v->to_int64() + step, before = bound->value_or(n);
      *bound = bound == &least ? std::max(n, before) : std::min(n, before);
    }
    WholeRange range;
    if (least) range.least = std::to_string(*least);
    if (most) range.most = std::to_string(*most);
    return add_whole_number(b_, from, range, to);
  }

  Status list(const Rule& r) {
    INVAR_TRY(const int64_t given, count(*r.schema, "minItems", kMostItems, r.path));
    INVAR_TRY(const int64_t most, count(*r.schema, "maxItems", kMostItems, r.path));
    const Value *prefix = r.schema->find("prefixItems"), *items = r.schema->find("items");
    static const Value kTrue(true);
    if (prefix && (!prefix->is_array() || prefix->size() > static_cast<size_t>(kMostItems)))
      return wrong(r.path + "/prefixItems", "a list of at most 256 schemas is needed");
    const auto first = static_cast<int64_t>(prefix ? prefix->size() : 0);
    const int64_t least = std::max<int64_t>(given, 0);
    // States of their own up to here; behind it one more item is as the last.
    const int64_t single = most >= 0 ? most : std::max({least, first, int64_t{1}});
    uint32_t state = b_.literal(r.start, "[");
    const auto item = [&](int64_t i, uint32_t from, uint32_t to) {
      const uint32_t begin = i > 0 ? b_.literal(from, ",") : from;
      if (i < first)
        return value(begin, prefix->items[static_cast<size_t>(i)],
                     r.path + "/prefixItems/" + std::to_string(i), to);
      const Value& rest = items ? *items : kTrue;
      if (rest.is_boolean()) return rest.is_true() ? any(begin, to) : Status();
      return call(begin, kWhole, &rest, r.path + "/items", to), Status();
    };
    for (int64_t i = 0; !b_.full(); ++i) {
      if (i >= least) b_.bytes(state, ']', ']', r.end);
      if (i == single) break;
      const uint32_t next = b_.add();
      INVAR_CHECK_OK(item(i, state, next));
      state = next;
    }
    return most < 0 ? item(single, state, state) : Status();
  }

  // A key that no list declares: plain characters, none of the names.
  void other_key(uint32_t from, const std::vector<const std::string*>& names, uint32_t to) {
    static const std::vector<CodePoints> kPlain =
        normal({{0x20, 0x21}, {0x23, 0x5b}, {0x5d, kLastCodePoint}});
    const uint32_t rest = b_.add();
    b_.code_point(rest, kPlain, Spelling::raw, rest);
    b_.bytes(rest, '"', '"', to);
    b_.at(rest).room = kAnyRoom;
    struct Node {
      uint32_t state = 0;
      bool is_name = false;
      std::map<uint32_t, size_t> next;
    };
    std::deque<Node> nodes(1);
    nodes[0].state = b_.literal(from, "\"");
    for (const std::string* name : names) {
      size_t at = 0;
      for (size_t i = 0; i < name->size();) {
        const uint32_t c = decode_utf8(*name, i);
        const auto [known, is_new] = nodes[at].next.try_emplace(c, nodes.size());
        at = known->second;
        if (is_new) nodes.emplace_back().state = b_.add();
      }
      nodes[at].is_name = true;
    }
    for (const Node& node : nodes) {
      std::vector<CodePoints> others = complement(kPlain);
      for (const auto& [c, child] : node.next) {
        others.push_back({c, c});
        if (c >= 0x20 && c != '"' && c != '\\')
          b_.code_point(node.state, {{c, c}}, Spelling::raw, nodes[child].state);
      }
      b_.code_point(node.state, complement(std::move(others)), Spelling::raw, rest);
      if (!node.is_name) b_.bytes(node.state, '"', '"', to);
    }
  }

  struct Property {
    const std::string* name;
    const Value* schema;
    std::string path;
    bool required;
  };
  // In the order of `properties`; what is required beside them comes after them.
  Result<std::vector<Property>> properties_of(const Rule& r, const Value& additional) const {
    std::vector<Property> all;
    const Value *properties = r.schema->find("properties"), *required = r.schema->find("required");
    if (properties && !properties->is_object()) return wrong(r.path + "/properties", "an object is needed");
    if (properties)
      for (const auto& [name, schema] : properties->members)
        all.push_back({&name, &schema, r.path + "/properties/" + name, false});
    if (required && !required->is_array()) return wrong(r.path + "/required", "a list of names is needed");
    std::map<std::string_view, size_t> places;
    for (size_t i = 0; i < all.size(); ++i) places.emplace(*all[i].name, i);
    for (size_t i = 0; required && i < required->size(); ++i) {
      const Value& name = required->items[i];
      if (!name.is_string()) return wrong(r.path + "/required", "a list of names is needed");
      const auto [known, is_new] = places.try_emplace(name.text, all.size());
      if (!is_new) {
        all[known->second].required = true;
        continue;
      }
      if (additional.is_boolean() && !additional.is_true())
        return wrong(r.path + "/required", json::quote(json::brief(name.text)) +
                                               " is no property, and additionalProperties is false");
      all.push_back({&name.text, &additional, r.path + "/additionalProperties", true});
    }
    return all;
  }
  Status object(const Rule& r) {
    static const Value kTrue(true);
    const Value* given = r.schema->find("additionalProperties");
    const Value& additional = given ? *given : kTrue;
    INVAR_TRY(const std::vector<Property> properties, properties_of(r, additional));
    std::vector<const std::string*> names;
    uint32_t none = b_.literal(r.start, "{"), some = b_.add();  // no member so far, or some
    for (const Property& p : properties) {
      if (b_.full()) return {};
      names.push_back(p.name);
      const uint32_t key = b_.add(), next = b_.add();
      b_.skip(none, key);
      b_.literal(some, ",", key);
      INVAR_CHECK_OK(member(b_.literal(key, json::quote(*p.name) + ":"), *p.schema, p.path, next));
      if (!p.required) b_.skip(some, next);
      const uint32_t still_none = b_.add();
      if (!p.required) b_.skip(none, still_none);
      none = still_none, some = next;
    }
    b_.bytes(none, '}', '}', r.end), b_.bytes(some, '}', '}', r.end);
    if (additional.is_boolean() && !additional.is_true()) return {};
    const uint32_t key = b_.add(), colon = b_.add(), behind = b_.literal(colon, ":");
    b_.skip(none, key);
    b_.literal(some, ",", key);
    other_key(key, names, colon);
    return member(behind, additional, r.path + "/additionalProperties", some);
  }
  // The schema of additional members is that of several, and is built once.
  Status member(uint32_t from, const Value& schema, const std::string& path, uint32_t to) {
    if (schema.is_boolean() || !path.ends_with("/additionalProperties")) return value(from, schema, path, to);
    return call(from, kWhole, &schema, path, to), Status();
  }

  NfaBuilder& b_;
  const Value& root_;
  const std::string name_;
  std::map<Key, uint32_t> rules_;
  std::deque<Rule> waiting_;
};

}  // namespace

Status add_schema(NfaBuilder& b, uint32_t from, const Value& schema, const std::string& name, uint32_t to) {
  if (const std::string* twice = json::repeated_name(schema))
    return bad_input(name + ": an object has the member " + json::quote(json::brief(*twice)) + " twice");
  return SchemaReader(b, schema, name).read(from, to);
}

}  // namespace invar::grammar
