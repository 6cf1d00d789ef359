#include <algorithm>
#include <charconv>
#include <optional>

#include "base/text/display.h"
#include "base/text/json.h"
#include "prompt/chat.h"
#include "prompt/jinja/template.h"
#include "prompt/jinja/value/python_text.h"

namespace invar::prompt {
namespace {

using invar::json::Value;
using jinja::Date;

// The object of chat.1.
struct Chat {
  const Value *messages = nullptr, *tools = nullptr, *documents = nullptr, *variables = nullptr;
  std::string name;  // of the template; "" = chosen
  bool add_generation_prompt = true, continue_final_message = false;
  std::optional<std::string> date;
};

// "2026-11-24T15:04:05"
std::optional<Date> parse_date(std::string_view s) {
  if (s.size() != 19 || s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[13] != ':' || s[16] != ':')
    return std::nullopt;
  const auto number = [&](size_t at, size_t n, int least, int most) -> std::optional<int> {
    int value = 0;
    const auto [end, wrong] = std::from_chars(s.data() + at, s.data() + at + n, value);
    const bool whole = wrong == std::errc() && end == s.data() + at + n && s[at] != '-';
    return whole && value >= least && value <= most ? std::optional(value) : std::nullopt;
  };
  const auto year = number(0, 4, 1, 9999), month = number(5, 2, 1, 12), day = number(8, 2, 1, 31),
             hour = number(11, 2, 0, 23), minute = number(14, 2, 0, 59), second = number(17, 2, 0, 59);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  constexpr int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (*year % 4 == 0 && *year % 100 != 0) || *year % 400 == 0;
  if (*day > days[*month - 1] + (*month == 2 && leap)) return std::nullopt;
  return Date{*year, *month, *day, *hour, *minute, *second};
}

Status expect(const Value& v, Value::Kind kind, const std::string& where) {
  if (v.kind == kind) return {};
  return bad_input(where + ": " + std::string(json::name_of(kind)) + " is needed, not " +
                   std::string(json::name_of(v.kind)));
}

Status expect_objects(const Value& v, const std::string& where) {
  INVAR_CHECK_OK(expect(v, Value::array, where));
  for (size_t i = 0; i < v.items.size(); ++i)
    INVAR_CHECK_OK(expect(v.items[i], Value::object, where + "[" + std::to_string(i) + "]"));
  return {};
}

Status not_text(const std::string& where, const std::string& what) {
  return not_covered(where + ": " + what + " is no text, and a prompt is text alone: leave it out");
}

// Other files than texts, under the names that clients give them.
Status expect_no_media(const Value& object, const std::string& where) {
  for (const auto& [key, v] : object.members)
    for (const std::string_view media :
         {"image", "images", "image_url", "audio", "audios", "input_audio", "video", "videos", "video_url"})
      if (key == media && v.kind != Value::null && !(v.kind == Value::array && v.items.empty()))
        return not_text(where, excerpt(key));
  return {};
}

// One part of a message, or a list of them. A model of text has no place for others (chat.8).
Status expect_text_parts(const Value& v, const std::string& where) {
  for (size_t i = 0; i < v.items.size(); ++i)
    INVAR_CHECK_OK(expect_text_parts(v.items[i], where + "[" + std::to_string(i) + "]"));
  if (v.kind != Value::object) return {};
  INVAR_CHECK_OK(expect_no_media(v, where));
  for (const auto& [key, member] : v.members) {
    if (key == "type" && member.text != "text" && member.text != "thinking")
      return not_text(where, "a part of type " + json::quote(json::brief(member.text)));
    if (key == "thinking") {
      INVAR_CHECK_OK(expect_text_parts(member, where + ": thinking"));
    }
  }
  return {};
}

Status expect_text_messages(const Value& messages, const std::string& where) {
  for (size_t i = 0; i < messages.items.size(); ++i) {
    const std::string at = where + "[" + std::to_string(i) + "]";
    INVAR_CHECK_OK(expect_no_media(messages.items[i], at));
    for (const auto& [key, v] : messages.items[i].members)
      if (key == "content") {
        INVAR_CHECK_OK(expect_text_parts(v, at + ": content"));
      }
  }
  return {};
}

Status read_member(Chat& chat, const std::string& key, const Value& v, const std::string& where) {
  const auto flag = [&](bool& to) -> Status {
    INVAR_CHECK_OK(expect(v, Value::boolean, where));
    return to = v.text == "true", Status();
  };
  if (key == "messages") {
    INVAR_CHECK_OK(expect_objects(v, where));
    if (v.items.empty()) return bad_input(where + ": at least one message is needed");
    INVAR_CHECK_OK(expect_text_messages(v, where));
    chat.messages = &v;
  } else if (key == "tools" || key == "documents") {
    if (v.kind == Value::null) return {};
    INVAR_CHECK_OK(expect_objects(v, where));
    (key == "tools" ? chat.tools : chat.documents) = &v;
  } else if (key == "variables") {
    INVAR_CHECK_OK(expect(v, Value::object, where));
    for (const auto& [name, value] : v.members)
      for (const char* other : {"messages", "tools", "documents", "add_generation_prompt"})
        if (name == other) return bad_input(where + ": " + name + " is a member of the chat itself");
    chat.variables = &v;
  } else if (key == "template") {
    INVAR_CHECK_OK(expect(v, Value::string, where));
    chat.name = v.text;
  } else if (key == "date") {
    INVAR_CHECK_OK(expect(v, Value::string, where));
    if (!parse_date(v.text)) return bad_input(where + ": no date such as 2026-11-24T15:04:05");
    chat.date = v.text;
  } else if (key == "add_generation_prompt") {
    return flag(chat.add_generation_prompt);
  } else if (key == "continue_final_message") {
    return flag(chat.continue_final_message);
  } else {
    return bad_input(where +
                     ": no such member of a chat: it has messages, tools, documents, template, "
                     "add_generation_prompt, continue_final_message, date and variables");
  }
  return {};
}

Result<Chat> read(const Value& object, const std::string& name) {
  INVAR_CHECK_OK(expect(object, Value::object, name));
  Chat chat;
  std::vector<std::string> seen;
  for (const auto& [key, v] : object.members) {
    const std::string where = name + ": " + excerpt(key);
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) return bad_input(where + " is given twice");
    seen.push_back(key);
    INVAR_CHECK_OK(read_member(chat, key, v, where));
  }
  if (!chat.messages) return bad_input(name + ": a chat needs \"messages\"");
  const bool asked = std::find(seen.begin(), seen.end(), "add_generation_prompt") != seen.end();
  if (chat.continue_final_message && asked && chat.add_generation_prompt)
    return bad_input(name + ": continue_final_message and add_generation_prompt exclude one another");
  if (chat.continue_final_message) chat.add_generation_prompt = false;
  return chat;
}

// chat.3: members in one order, what has no effect left out.
std::string spelled(const Chat& chat, bool used_date) {
  std::string out = "{\"messages\":" + json::compact(*chat.messages);
  const auto add = [&](const char* key, const Value* v) {
    if (v) out.append(",\"").append(key).append("\":").append(json::compact(*v));
  };
  add("tools", chat.tools);
  add("documents", chat.documents);
  if (!chat.name.empty()) out += ",\"template\":" + json::quote(chat.name);
  if (chat.continue_final_message)
    out += ",\"continue_final_message\":true";
  else if (!chat.add_generation_prompt)
    out += ",\"add_generation_prompt\":false";
  if (used_date && chat.date) out += ",\"date\":" + json::quote(*chat.date);
  if (chat.variables && !chat.variables->members.empty()) add("variables", chat.variables);
  return out + "}";
}

// The transformers' order of choice (chat.2).
Result<const std::pair<const std::string, std::string>*> choose(const ChatTemplates& templates,
                                                                const Chat& chat, const std::string& where) {
  const auto& texts = templates.texts;
  if (texts.empty()) return bad_input(where + ": the model has no chat template: give the prompt as text");
  std::string names;
  for (const auto& [name, text] : texts) names += (names.empty() ? "" : ", ") + json::quote(name);
  const auto found = [&](const std::string& name) -> const std::pair<const std::string, std::string>* {
    const auto at = texts.find(name);
    return at == texts.end() ? nullptr : &*at;
  };
  if (!chat.name.empty()) {
    if (const auto* t = found(chat.name)) return t;
    return bad_input(where + ": the model has no chat template " + json::quote(chat.name) + ", it has " +
                     names);
  }
  if (chat.tools)
    if (const auto* t = found("tool_use")) return t;
  if (const auto* t = found("default")) return t;
  return bad_input(where + ": none of the model's chat templates is the default: name one of " + names);
}

using Members = std::vector<std::pair<jinja::Value, jinja::Value>>;

// Null members go; reasoning stands under each of its names.
Result<Members> message(const Value& given, const std::string& where) {
  Members members;
  std::optional<jinja::Value> reasoning;
  for (const auto& [key, item] : given.members) {
    auto v = jinja::from_json(item);
    if (!v) return Error{v.error().code, where + ": " + excerpt(key) + ": " + v.error().message};
    if (!v->none()) members.emplace_back(jinja::text(key), std::move(*v));
  }
  const jinja::Value one = jinja::dict(members);
  for (const char* name : {"reasoning_content", "thinking", "reasoning"})
    if (const jinja::Value* v = one.dict()->find(name); v && !reasoning) reasoning = *v;
  members = one.dict()->members;
  if (!reasoning) return members;
  Members aliased{{jinja::text("thinking"), *reasoning}};
  aliased.insert(aliased.end(), members.begin(), members.end());
  aliased.emplace_back(jinja::text("reasoning_content"), *reasoning);
  return jinja::dict(std::move(aliased)).dict()->members;
}

constexpr std::string_view kTag = "CONTINUE_FINAL_MESSAGE_TAG ";

// Marks the end of the last message's text, which is returned.
Result<std::string> mark_end(Members& last, const std::string& where) {
  const auto tag = [](jinja::Value& v) {
    const std::string plain = *v.string();
    v = jinja::text(plain + std::string(kTag));
    return plain;
  };
  for (auto& [key, value] : last) {
    if (*key.string() != "content") continue;
    if (value.string()) return tag(value);
    if (!value.sequence()) break;
    std::vector<jinja::Value> blocks = value.sequence()->elements;
    for (size_t i = blocks.size(); i-- > 0;) {
      const jinja::Dict* block = blocks[i].dict();
      if (!block || !block->find("text") || !block->find("text")->string()) continue;
      Members members = block->members;
      std::string plain;
      for (auto& [k, v] : members)
        if (k.string() && *k.string() == "text") plain = tag(v);
      blocks[i] = jinja::dict(std::move(members));
      value = jinja::list(std::move(blocks));
      return plain;
    }
  }
  return bad_input(where + ": continue_final_message: the last message has no text to continue");
}

Result<std::string> cut_at_mark(const std::string& text, const std::string& final_text,
                                const std::string& where) {
  const std::string bare = jinja::strip(kTag, std::nullopt);
  const size_t at = text.rfind(bare);
  if (at == text.npos || text.find(jinja::strip(final_text, std::nullopt)) == text.npos)
    return bad_input(where + ": continue_final_message: the template does not show the last message");
  const std::string before = text.substr(0, at);
  if (text.substr(at, kTag.size()) == kTag) return before;
  return jinja::strip(before, std::nullopt, jinja::Side::right);
}

// The variables of the template; `continued` becomes the last message's text.
Result<jinja::Value> variables(const ChatTemplates& templates, const Chat& chat, const std::string& name,
                               std::string& continued) {
  Members all;
  for (const auto& [token, content] : templates.special_tokens)
    all.emplace_back(jinja::text(token), jinja::text(content));
  const auto converted = [&](const Value& v, const char* what) -> Result<jinja::Value> {
    auto made = jinja::from_json(v);
    if (!made) return Error{made.error().code, name + ": " + what + ": " + made.error().message};
    return made;
  };
  if (chat.variables)
    for (const auto& [key, v] : chat.variables->members) {
      INVAR_TRY(jinja::Value made, converted(v, "variables"));
      all.emplace_back(jinja::text(key), std::move(made));
    }
  std::vector<jinja::Value> messages;
  for (size_t i = 0; i < chat.messages->items.size(); ++i) {
    const std::string where = name + ": messages[" + std::to_string(i) + "]";
    INVAR_TRY(Members members, message(chat.messages->items[i], where));
    if (chat.continue_final_message && i + 1 == chat.messages->items.size()) {
      INVAR_TRY(continued, mark_end(members, where));
    }
    messages.push_back(jinja::dict(std::move(members)));
  }
  auto shown = jinja::within_levels(jinja::list(std::move(messages)));
  if (!shown) return Error{shown.error().code, name + ": messages: " + shown.error().message};
  all.emplace_back(jinja::text("messages"), std::move(*shown));
  for (const auto& [key, v] : {std::pair("tools", chat.tools), std::pair("documents", chat.documents)}) {
    jinja::Value made{jinja::None{}};
    if (v) {
      INVAR_TRY(made, converted(*v, key));
    }
    all.emplace_back(jinja::text(key), std::move(made));
  }
  all.emplace_back(jinja::text("add_generation_prompt"), jinja::Value{chat.add_generation_prompt});
  return jinja::dict(std::move(all));
}

struct Written {
  std::string text, continued;  // of the last message what it continues
  bool used_date = false;
};
Result<Written> write(const ChatTemplates& templates, const Chat& chat, const std::string& name) {
  INVAR_TRY(const auto* chosen, choose(templates, chat, name));
  INVAR_TRY(const jinja::Template parsed, jinja::Template::parse(chosen->second, chosen->first));
  if (chat.continue_final_message && chosen->second.find("content") == std::string::npos)
    return bad_input(name + ": continue_final_message: the template has no \"content\"");
  Written written;
  INVAR_TRY(const jinja::Value given, variables(templates, chat, name, written.continued));
  INVAR_TRY(jinja::Rendered rendered, parsed.render(given, chat.date ? *parse_date(*chat.date) : Date{}));
  written.text = std::move(rendered.text), written.used_date = rendered.used_date;
  return written;
}

// Digits, which neither case nor spelling changes; one number for each text.
std::string mark_of(size_t text) {
  const std::string number = std::to_string(text);
  return "70359184620" + std::string(8 - std::min<size_t>(number.size(), 8), '0') + number + "61";
}

// Every text of the messages, and which it is: "messages[2]" or "messages[2]: content[1]".
std::vector<std::pair<std::string, std::string*>> texts_of(Value& chat) {
  std::vector<std::pair<std::string, std::string*>> texts;
  const auto add = [&](Value& v, const std::string& where) {
    if (v.kind == Value::string && !jinja::strip(v.text, std::nullopt).empty())
      texts.emplace_back(where, &v.text);
  };
  for (auto& [key, messages] : chat.members)
    for (size_t i = 0; key == "messages" && i < messages.items.size(); ++i)
      for (auto& [part, content] : messages.items[i].members) {
        if (part != "content") continue;
        const std::string where = "messages[" + std::to_string(i) + "]";
        add(content, where);
        for (size_t k = 0; k < content.items.size(); ++k)
          for (auto& [name, v] : content.items[k].members)
            if (name == "text") add(v, where + ": content[" + std::to_string(k) + "]");
      }
  return texts;
}

}  // namespace

bool is_date(std::string_view text) {
  return parse_date(text).has_value();
}

std::string texts_left_out(const ChatTemplates& templates, const RenderedChat& rendered) {
  constexpr size_t kMost = 16;  // texts that are asked for alone
  // The prompt with marks after the texts that are `chosen`; "": the template refuses it.
  std::vector<std::string> names;
  const auto marked = [&](const auto& chosen) -> std::string {
    auto object = json::parse(rendered.input, "chat");
    if (!object) return "";
    const auto texts = texts_of(*object);
    names.clear();
    for (size_t i = 0; i < texts.size(); ++i) {
      names.push_back(texts[i].first);
      if (chosen(i)) *texts[i].second += mark_of(i);
    }
    const auto chat = read(*object, "chat");
    auto written = chat ? write(templates, *chat, "chat") : Result<Written>(chat.error());
    return written ? std::move(written->text) : "";
  };
  std::vector<size_t> hidden, out;
  const std::string with_marks = marked([](size_t) { return true; });
  for (size_t i = 0; i < names.size(); ++i)
    if (with_marks.find(mark_of(i)) == std::string::npos) hidden.push_back(i);
  if (hidden.empty()) return "";
  const std::string plain = marked([](size_t) { return false; });
  // A mark may be taken apart, so that a text is left out only where none of it has an effect.
  if (marked([&](size_t i) { return std::ranges::binary_search(hidden, i); }) == plain)
    out = hidden;
  else
    for (size_t k = 0; k < hidden.size() && k < kMost; ++k)
      if (marked([&](size_t i) { return i == hidden[k]; }) == plain) out.push_back(hidden[k]);
  if (out.empty()) return "";
  std::string listed;
  for (size_t k = 0; k < out.size() && k < 3; ++k) listed += (k ? ", " : "") + names[out[k]];
  if (out.size() > 3) listed += " and " + std::to_string(out.size() - 3) + " more";
  return "the chat template leaves text of the messages out of the prompt: " + listed;
}

Result<RenderedChat> render_chat(const ChatTemplates& templates, std::string_view text,
                                 const std::string& name) {
  INVAR_TRY(const Value object, json::parse(text, name));
  INVAR_TRY(const Chat chat, read(object, name));
  INVAR_TRY(Written written, write(templates, chat, name));
  if (written.used_date && !chat.date)
    return bad_input(name + ": the chat template asks for the date: give one with --date");
  if (chat.continue_final_message) {
    INVAR_TRY(written.text, cut_at_mark(written.text, written.continued, name));
  }
  return RenderedChat{std::move(written.text), spelled(chat, written.used_date)};
}

}  // namespace invar::prompt
