// What is asked for -> its automaton -> the tokens of each step.
#include <algorithm>
#include <mutex>
#include <utility>

#include "base/sync/mutex.h"
#include "grammar/automaton/walk.h"
#include "grammar/grammar.h"
#include "grammar/languages/languages.h"
#include "grammar/vocabulary.h"

namespace invar::grammar {
namespace {

using json::Value;

constexpr int kVersion = 1;
// grammar.20
constexpr size_t kMostText = 1 << 20;
constexpr uint64_t kMostStepsOfMask = 1 << 24;
constexpr size_t kMostNodesOfMask = 1 << 12;
// What is kept, which decides nothing.
constexpr size_t kMostBytesKept = 32 << 20;

constexpr std::string_view kKinds[] = {"json", "json_object", "regex", "choice", "tools"};
constexpr std::string_view kMembers[] = {"grammar", "json",        "json_object", "regex",
                                         "choice",  "tools",       "several",     "begin",
                                         "end",     "think_start", "think_end"};

const char* kind_of(const Value& asked) {
  for (const std::string_view kind : kKinds)
    if (asked.contains(kind)) return kind.data();
  return "";
}

Error no_such(const std::string& why) {
  return bad_input(why);
}
Error too_much() {
  return no_such("too much may follow here: it has too many alternatives at once; make it simpler");
}

// The object of grammar.2: its members in their order.
Result<Value> normal_form(const Value& asked) {
  if (!asked.is_object()) return no_such("an object is needed");
  if (const std::string* twice = json::repeated_name(asked))
    return no_such("an object has the member " + json::quote(json::brief(*twice)) + " twice");
  Value form = Value::object;
  form["grammar"] = kVersion;
  int kinds = 0;
  for (const std::string_view kind : kKinds) kinds += !asked.get(kind).is_null();
  if (kinds != 1) return no_such("one of json, json_object, regex, choice and tools is needed");
  for (const auto& [name, value] : asked.members)
    if (std::ranges::find(kMembers, name) == std::end(kMembers))
      return no_such("the member " + json::quote(json::brief(name)) + " is not supported");
  if (const Value& version = asked.get("grammar"); !version.is_null() && version.text != "1")
    return no_such("grammar " + json::brief(json::compact(version)) + " is not known; 1 is");
  for (const std::string_view member : kMembers)
    if (const Value& v = asked.get(member); member != "grammar" && !v.is_null()) form[member] = v;
  return form;
}

Status add_choices(NfaBuilder& b, uint32_t from, const Value& list, uint32_t to) {
  if (!list.is_array() || list.empty()) return no_such("choice: a list of texts is needed");
  std::vector<std::string> texts;
  for (const Value& text : list.items) {
    if (!text.is_string() || text.text.empty())
      return no_such("choice: texts are needed, none of them empty");
    texts.push_back(text.text);
  }
  b.texts(from, texts, to);
  return {};
}

// grammar.14
Status add_tools(NfaBuilder& b, uint32_t from, const Value& form, uint32_t to) {
  const Value &tools = form.get("tools"), &begin = form.get("begin"), &end = form.get("end");
  if (!tools.is_array() || tools.empty()) return no_such("tools: a list of functions is needed");
  if ((!begin.is_null() && !begin.is_string()) || (!end.is_null() && !end.is_string()))
    return no_such("begin and end are texts");
  const Value& several = form.get("several");
  if (!several.is_null() && !several.is_true()) return no_such("several: true is needed");
  const bool list = several.is_true() && begin.text.empty() && end.text.empty();
  const uint32_t call = b.literal(from, list ? "[" : begin.text), behind = b.add();
  b.literal(behind, "}" + (list ? "]" : end.text), to);
  if (several.is_true()) b.literal(behind, "}" + (list ? "," : end.text + "\n" + begin.text), call);
  static const Value kNothing = {{"type", "object"}, {"additionalProperties", false}};
  for (const Value& tool : tools.items) {
    const Value &name = tool.get("name"), *parameters = tool.find("parameters");
    if (!name.is_string() || name.text.empty()) return no_such("tools: a function has a name");
    for (const auto& [member, value] : tool.members)
      if (member != "name" && member != "parameters")
        return no_such("tools: the member " + json::quote(json::brief(member)) + " is not supported");
    const uint32_t arguments = b.literal(call, "{\"name\":" + json::quote(name.text) + ",\"arguments\":");
    INVAR_CHECK_OK(add_schema(b, arguments, parameters ? *parameters : kNothing,
                              "the parameters of " + json::quote(json::brief(name.text)), behind));
  }
  return {};
}

Status add_asked(NfaBuilder& b, uint32_t from, const Value& form, uint32_t to) {
  const std::string_view kind = kind_of(form);
  const Value& asked = form.get(kind);
  static const Value kAnyObject = {{"type", "object"}};
  if (kind != "tools" && (form.contains("begin") || form.contains("end") || form.contains("several")))
    return no_such("begin, end and several go with tools");
  if (kind == "json") return add_schema(b, from, asked, "json_schema", to);
  if (kind == "choice") return add_choices(b, from, asked, to);
  if (kind == "tools") return add_tools(b, from, form, to);
  if (kind == "json_object")
    return asked.is_true() ? add_schema(b, from, kAnyObject, "json_object", to)
                           : no_such("json_object: true is needed");
  if (!asked.is_string()) return no_such("regex: a text is needed");
  return add_pattern(b, from, asked.text, Spelling::raw, false, to);
}

Result<Nfa> automaton_of(const Value& form) {
  NfaBuilder b;
  const uint32_t start = b.add(), end = b.add();
  b.at(end).end = true;
  INVAR_CHECK_OK(add_asked(b, start, form, end));
  auto nfa = b.finish(start);
  if (!nfa) return no_such(nfa.error().message);
  return nfa;
}

Status check_reasoning(const Value& form) {
  const Value &start = form.get("think_start"), &end = form.get("think_end");
  for (const Value* id : {&start, &end})
    if (!id->is_null() && (!id->is_integer() || id->to_double() < 0 || id->to_double() > INT32_MAX))
      return no_such("think_start and think_end are token ids");
  if (!start.is_null() && end.is_null()) return no_such("think_start goes with think_end");
  return {};
}

int32_t token_or_none(const Value& id) {
  return id.is_null() ? -1 : static_cast<int32_t>(id.to_int64());
}

}  // namespace

Result<std::string> canonical(const Value& asked) {
  INVAR_TRY(const Value form, normal_form(asked));
  INVAR_CHECK_OK(check_reasoning(form));
  std::string text = json::compact(form);
  if (text.size() > kMostText)
    return no_such(std::to_string(text.size()) + " bytes; at most " + std::to_string(kMostText) +
                   " are supported");
  if (const auto nfa = automaton_of(form); !nfa) return nfa.error();
  return text;
}

Result<std::string> canonical(std::string_view text, std::string_view name) {
  INVAR_TRY(const Value asked, json::parse(text, name));
  auto form = canonical(asked);
  if (!form) return Error{form.error().code, std::string(name) + ": " + form.error().message};
  return form;
}

std::string with_reasoning(const std::string& text, int32_t start, int32_t end) {
  std::string members = start >= 0 ? ",\"think_start\":" + std::to_string(start) : "";
  members += ",\"think_end\":" + std::to_string(end) + "}";
  return text.substr(0, text.size() - 1) + members;
}

Status check(std::string_view text) {
  INVAR_TRY(const std::string same, canonical(text, "structured_outputs"));
  if (same != text) return no_such("another spelling than " + json::brief(same));
  return {};
}

std::string describe(std::string_view text) {
  const auto form = json::parse(text, "structured_outputs");
  const std::string kind = form ? kind_of(*form) : "";
  if (kind == "json") return "fitting a JSON schema";
  if (kind == "json_object") return "a JSON object";
  if (kind == "regex") return "fitting a regular expression";
  if (kind == "choice") return "one of " + std::to_string(form->get("choice").size()) + " texts";
  if (kind == "tools") return form->get("several").is_true() ? "tool calls" : "a tool call";
  return "";
}

struct Constraint::Impl {
  std::shared_ptr<const Vocabulary> vocabulary;
  int32_t think_start, think_end;
  Mutex mutex;
  Walk walk;
  size_t bytes_kept = 0;
  uint32_t visit = 0;

  Impl(std::shared_ptr<const Vocabulary> v, const Value& form, Nfa nfa)
      : vocabulary(std::move(v)),
        think_start(token_or_none(form.get("think_start"))),
        think_end(token_or_none(form.get("think_end"))),
        walk(std::move(nfa)) {}

  // The part of the answer that has to fit; none while the model reasons (grammar.16).
  std::optional<std::span<const int32_t>> fitted(std::span<const int32_t> answer) const {
    if (think_end < 0) return answer;
    if (think_start >= 0 && (answer.empty() || answer[0] != think_start)) return answer;
    const auto end = std::ranges::find(answer, think_end);
    if (end == answer.end()) return std::nullopt;
    return answer.subspan(static_cast<size_t>(end - answer.begin()) + 1);
  }
  int32_t node_after(std::span<const int32_t> tokens) {
    int32_t node = walk.start();
    const auto& all = vocabulary->impl().tokens;
    for (const int32_t t : tokens) {
      const auto i = static_cast<size_t>(t);
      if (t < 0 || i >= all.size() || !all[i]) return Walk::kDead;
      for (const char c : *all[i]) node = walk.step(node, static_cast<uint8_t>(c));
    }
    return node;
  }
  Status mark(int32_t from, const TokenTree& tree, std::vector<uint64_t>& tokens);
  Result<std::shared_ptr<const std::vector<uint64_t>>> tokens_at(int32_t node);
};

// Sets the tokens of a tree whose bytes lead on from a node. grammar.13, grammar.20.
Status Constraint::Impl::mark(int32_t from, const TokenTree& tree, std::vector<uint64_t>& tokens) {
  std::vector<int32_t> at(tree.deepest + 1);
  at[0] = from;
  ++visit;
  uint64_t steps = 0;
  size_t distinct = 0;
  for (uint32_t i = 0; i < tree.nodes.size();) {
    const TokenTree::Node& n = tree.nodes[i];
    const int32_t next = walk.step(at[n.depth - 1], n.byte);
    if (next == Walk::kDead) {
      i = n.behind;
      continue;
    }
    Walk::Node& node = walk[next];
    steps += node.at.size() + 1;
    distinct += std::exchange(node.visited, visit) != visit;
    if (node.too_many || steps > kMostStepsOfMask || distinct > kMostNodesOfMask) return too_much();
    for (uint32_t k = n.first; k < n.first + n.count; ++k) {
      const auto id = static_cast<size_t>(tree.ids[k]);
      tokens[id / 64] |= uint64_t{1} << id % 64;
    }
    at[n.depth] = next, ++i;
  }
  return {};
}

Result<std::shared_ptr<const std::vector<uint64_t>>> Constraint::Impl::tokens_at(int32_t node) {
  if (walk[node].tokens) return walk[node].tokens;
  const Vocabulary::Impl& v = vocabulary->impl();
  std::vector<uint64_t> tokens(v.all_plain.size());
  // Most of what may stand within a string is known without a walk.
  const Walk::Room room = walk.room(node, kMostPlain);
  const bool fits_all = room.characters >= kMostPlain;
  if (fits_all) tokens = v.all_plain;
  for (const auto& [characters, id] : v.plain) {
    if (fits_all || !room.only || characters > room.characters) break;
    tokens[static_cast<size_t>(id) / 64] |= uint64_t{1} << id % 64;
  }
  INVAR_CHECK_OK(mark(node, fits_all || room.only ? v.rest : v.all, tokens));
  bytes_kept += tokens.size() * sizeof(uint64_t);
  walk[node].tokens = std::make_shared<const std::vector<uint64_t>>(std::move(tokens));
  return walk[node].tokens;
}

Constraint::Constraint(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Constraint::~Constraint() = default;

Result<std::shared_ptr<const Constraint>> Constraint::make(std::string_view text,
                                                           std::shared_ptr<const Vocabulary> vocabulary) {
  INVAR_TRY(const Value form, json::parse(text, "structured_outputs"));
  INVAR_TRY(Nfa nfa, automaton_of(form));
  return std::make_shared<const Constraint>(
      std::make_unique<Impl>(std::move(vocabulary), form, std::move(nfa)));
}

struct ConstraintCache::Impl {
  static constexpr size_t kMost = 16;
  Mutex mutex;
  std::shared_ptr<const Vocabulary> vocabulary;
  std::vector<std::pair<std::string, std::shared_ptr<const Constraint>>>
      kept;  // the last one used at the end
};
ConstraintCache::ConstraintCache() : impl_(std::make_unique<Impl>()) {}
ConstraintCache::~ConstraintCache() = default;

Result<std::shared_ptr<const Constraint>> ConstraintCache::of(const std::string& text,
                                                              const MakeVocabulary& make) {
  const std::lock_guard lock(impl_->mutex);
  auto& kept = impl_->kept;
  if (const auto known = std::ranges::find(kept, text, [](const auto& k) { return k.first; });
      known != kept.end()) {
    std::rotate(known, known + 1, kept.end());
    return kept.back().second;
  }
  if (!impl_->vocabulary) {
    INVAR_TRY(Vocabulary made, make());
    impl_->vocabulary = std::make_shared<const Vocabulary>(std::move(made));
  }
  INVAR_TRY(auto made, Constraint::make(text, impl_->vocabulary));
  if (kept.size() == Impl::kMost) kept.erase(kept.begin());
  return kept.emplace_back(text, std::move(made)).second;
}

Result<Allowed> Constraint::after(std::span<const int32_t> answer) const {
  const auto fitted = impl_->fitted(answer);
  if (!fitted) return Allowed{true, true};
  const std::lock_guard lock(impl_->mutex);
  if (impl_->walk.bytes() + impl_->bytes_kept > kMostBytesKept) impl_->walk.clear(), impl_->bytes_kept = 0;
  const int32_t node = impl_->node_after(*fitted);
  if (impl_->walk[node].too_many) return too_much();
  Allowed allowed;
  INVAR_TRY(allowed.tokens, impl_->tokens_at(node));
  allowed.complete = impl_->walk[node].accepts;
  if (answer.empty()) allowed.also = impl_->think_start;
  return allowed;
}

}  // namespace invar::grammar
