// A Jinja template as transformers compiles chat templates: jinja2 3.1's
// ImmutableSandboxedEnvironment with trim_blocks, lstrip_blocks, loop controls and {% generation %}
// (spec/chat.md).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "prompt/jinja/value/value.h"

namespace invar::prompt::jinja {

// The time that strftime_now shows.
struct Date {
  int year = 1970, month = 1, day = 1, hour = 0, minute = 0, second = 0;
};

struct Rendered {
  std::string text;
  bool used_date = false;  // strftime_now was called
};

class Template {
 public:
  // Errors: "chat template NAME, line N: why". bad_input also: it is not UTF-8; not_covered: a part
  // of Jinja that is refused by name.
  static Result<Template> parse(std::string_view source, std::string name);
  Template(Template&&) noexcept;
  ~Template();
  // `variables` is a dict. Errors likewise; not_covered also beyond the limits of time and memory.
  Result<Rendered> render(const Value& variables, const Date&) const;

 private:
  struct Impl;
  explicit Template(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

}  // namespace invar::prompt::jinja
