#include "onnx/json.h"

#include <set>
#include <vector>

#include "onnx/text.h"

namespace invar::onnx {
namespace {

struct Refused {  // thrown out of the parser's callback; never leaves this file
  std::string reason;
};

}  // namespace

Result<nlohmann::json> parse_json(std::string_view text, const std::string& file) {
  using json = nlohmann::json;
  constexpr size_t deepest = 32;
  std::vector<std::set<std::string>> keys;  // of every open object; arrays have an empty set
  auto watch = [&](int, json::parse_event_t event, json& value) {
    switch (event) {
      case json::parse_event_t::object_start:
      case json::parse_event_t::array_start:
        if (keys.size() == deepest) throw Refused{"nested too deeply"};
        keys.emplace_back();
        break;
      case json::parse_event_t::object_end:
      case json::parse_event_t::array_end: keys.pop_back(); break;
      case json::parse_event_t::key:
        if (!keys.back().insert(value.get_ref<const std::string&>()).second)
          throw Refused{"key " + quote(value.get_ref<const std::string&>()) + " is given twice"};
        break;
      case json::parse_event_t::value: break;
    }
    return true;
  };
  try {
    json value = json::parse(text.begin(), text.end(), watch);
    if (!value.is_object()) return bad_input(file + ": not a JSON object");
    return value;
  } catch (const Refused& refused) {
    return bad_input(file + ": " + refused.reason);
  } catch (const json::parse_error& error) {
    return bad_input(file + ": not well-formed JSON at byte " + std::to_string(error.byte));
  } catch (const json::exception&) {
    return bad_input(file + ": JSON holds a number out of range");
  }
}

}  // namespace invar::onnx
