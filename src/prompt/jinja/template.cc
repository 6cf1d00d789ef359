#include "prompt/jinja/template.h"

#include "base/text/utf8.h"
#include "prompt/jinja/evaluate/interpreter.h"
#include "prompt/jinja/syntax/syntax.h"

namespace invar::prompt::jinja {

struct Template::Impl {
  std::string name;
  Nodes nodes;
};

static Error in_template(const std::string& name, const Error& e) {
  return {e.code, "chat template " + invar::json::quote(name) + ", " + e.message, e.items};
}

Result<Template> Template::parse(std::string_view source, std::string name) {
  if (const size_t valid = valid_prefix(source); valid < source.size())
    return in_template(name, bad_input("not UTF-8 at byte " + std::to_string(valid)));
  auto nodes = jinja::parse(source);
  if (!nodes) return in_template(name, nodes.error());
  return Template(std::make_unique<Impl>(Impl{std::move(name), std::move(*nodes)}));
}

Template::Template(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Template::Template(Template&&) noexcept = default;
Template::~Template() = default;

Result<Rendered> Template::render(const Value& variables, const Date& date) const {
  Interpreter interpreter(variables, date);
  auto text = interpreter.render(impl_->nodes);
  if (!text) return in_template(impl_->name, text.error());
  return Rendered{std::move(*text), interpreter.used_date()};
}

}  // namespace invar::prompt::jinja
