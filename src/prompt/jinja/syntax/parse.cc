// Statements. Expressions: parse_expressions.cc.
#include "base/text/display.h"
#include "prompt/jinja/syntax/parser.h"

namespace invar::prompt::jinja {

Error Parser::error(const std::string& why) const {
  return bad_input("line " + std::to_string(now().line) + ": " + why);
}

std::string Parser::shown() const {
  switch (now().kind) {
    case Token::end: return "end of template";
    case Token::block_end: return "end of statement block";
    case Token::variable_end: return "end of print statement";
    case Token::data: return "template data";
    default: return "'" + excerpt(now().text) + "'";
  }
}

Status Parser::expect(Token::Kind kind, std::string_view text) {
  if (now().kind == kind && (text.empty() || now().text == text)) return ++at_, Status();
  const std::string wanted = !text.empty()              ? "'" + std::string(text) + "'"
                             : kind == Token::name      ? "a name"
                             : kind == Token::block_end ? "%}"
                                                        : "}}";
  return error("expected " + wanted + ", got " + shown());
}

Result<NodePtr> Parser::make(Node::Kind kind, int line, std::string name) {
  if (++nodes_ > kMostNodes)
    return not_covered("line " + std::to_string(line) + ": the template is too large");
  NodePtr node = std::make_unique<Node>();
  node->kind = kind, node->line = line, node->name = std::move(name);
  return node;
}

// Reads the end of a tag after its expressions, and the statements up to a tag of one of these
// names, which is the current token then.
Result<Nodes> Parser::body(std::initializer_list<std::string_view> ends) {
  take(Token::op, ":");
  INVAR_CHECK_OK(expect(Token::block_end));
  return statements(ends);
}

Result<Nodes> Parser::body_to(std::string_view end) {
  INVAR_TRY(Nodes nodes, body({end}));
  ++at_;
  return nodes;
}

Result<Nodes> Parser::statements(std::initializer_list<std::string_view> ends) {
  Nodes nodes;
  const Nesting nesting(*this);
  if (!nesting.allowed()) return nesting.error();
  for (;;) {
    const Token& t = now();
    if (t.kind == Token::data) {
      INVAR_TRY(NodePtr node, make(Node::data, t.line, t.text));
      nodes.push_back(std::move(node));
      ++at_;
    } else if (t.kind == Token::variable_begin) {
      ++at_;
      INVAR_TRY(NodePtr node, make(Node::output, t.line));
      INVAR_TRY(NodePtr value, tuple());
      node->children.push_back(std::move(value));
      nodes.push_back(std::move(node));
      INVAR_CHECK_OK(expect(Token::variable_end));
    } else if (t.kind == Token::block_begin) {
      ++at_;
      for (const std::string_view end : ends)
        if (now().is(Token::name, end)) return nodes;
      INVAR_TRY(NodePtr node, statement());
      nodes.push_back(std::move(node));
      INVAR_CHECK_OK(expect(Token::block_end));
    } else {
      if (ends.size() == 0) return nodes;
      return error("unexpected end of template, {% " + std::string(*(ends.end() - 1)) + " %} is missing");
    }
  }
}

Result<NodePtr> Parser::statement() {
  const Token& t = now();
  if (t.kind != Token::name) return error("tag name expected, got " + shown());
  ++at_;
  if (t.text == "set") return set(t.line);
  if (t.text == "for") return loop(t.line);
  if (t.text == "if") return branch(t.line);
  if (t.text == "macro") return macro(t.line);
  if (t.text == "call") return call_block(t.line);
  if (t.text == "with") return with(t.line);
  if (t.text == "break" || t.text == "continue") {
    if (loops_ == 0)
      return bad_input("line " + std::to_string(t.line) + ": '" + t.text + "' outside of a loop");
    return make(Node::stop_loop, t.line, t.text);
  }
  if (t.text == "filter") {
    INVAR_TRY(NodePtr node, make(Node::filter_block, t.line));
    INVAR_TRY(NodePtr filter, filters(nullptr, true));
    node->children.push_back(std::move(filter));
    INVAR_TRY(node->body, body_to("endfilter"));
    return node;
  }
  if (t.text == "generation") {
    INVAR_TRY(NodePtr node, make(Node::generation, t.line));
    INVAR_TRY(node->body, body_to("endgeneration"));
    return node;
  }
  if (t.text == "print") {
    INVAR_TRY(NodePtr node, make(Node::output, t.line));
    while (now().kind != Token::block_end) {
      if (!node->children.empty()) {
        INVAR_CHECK_OK(expect(Token::op, ","));
      }
      INVAR_TRY(NodePtr value, expression());
      node->children.push_back(std::move(value));
    }
    return node;
  }
  for (const std::string_view other : {"include", "import", "from", "extends", "block", "autoescape"})
    if (t.text == other)
      return not_covered("line " + std::to_string(t.line) + ": the statement '" + t.text +
                         "' is not covered");
  return bad_input("line " + std::to_string(t.line) + ": unknown tag '" + t.text + "'");
}

// A name, a member of a namespace, or names in a tuple.
Result<NodePtr> Parser::target(bool members) {
  Nodes names;
  bool tuple = false;
  const int line = now().line;
  for (;;) {
    const bool closes =
        !names.empty() && (now().kind != Token::name || now().text == "in") && !now().is(Token::op, "(");
    if (closes) break;
    if (take(Token::op, "(")) {
      const Nesting nesting(*this);
      if (!nesting.allowed()) return nesting.error();
      INVAR_TRY(NodePtr inner, target(members));
      names.push_back(std::move(inner));
      INVAR_CHECK_OK(expect(Token::op, ")"));
    } else {
      const std::string name = now().text;
      INVAR_CHECK_OK(expect(Token::name));
      for (const std::string_view fixed : {"true", "false", "none", "True", "False", "None"})
        if (name == fixed)
          return bad_input("line " + std::to_string(line) + ": can't assign to '" + name + "'");
      INVAR_TRY(NodePtr node, make(Node::variable, line, name));
      if (members && take(Token::op, ".")) {
        node->kind = Node::member;
        node->operators.push_back(now().text);
        INVAR_CHECK_OK(expect(Token::name));
      }
      names.push_back(std::move(node));
    }
    if (!take(Token::op, ",")) break;
    tuple = true;
  }
  if (!tuple) return std::move(names[0]);
  INVAR_TRY(NodePtr node, make(Node::tuple, line));
  node->children = std::move(names);
  return node;
}

Result<NodePtr> Parser::set(int line) {
  INVAR_TRY(NodePtr to, target(true));
  const bool inline_value = take(Token::op, "=");
  INVAR_TRY(NodePtr node, make(inline_value ? Node::set : Node::set_block, line));
  node->children.push_back(std::move(to));
  if (inline_value) {
    INVAR_TRY(NodePtr value, tuple());
    node->children.push_back(std::move(value));
    return node;
  }
  INVAR_TRY(NodePtr filter, filters(nullptr, false));
  node->children.push_back(std::move(filter));
  INVAR_TRY(node->body, body_to("endset"));
  return node;
}

Result<NodePtr> Parser::loop(int line) {
  INVAR_TRY(NodePtr node, make(Node::loop, line));
  INVAR_TRY(NodePtr to, target(false));
  INVAR_CHECK_OK(expect(Token::name, "in"));
  INVAR_TRY(NodePtr iterable, tuple(/*conditional=*/false));
  NodePtr condition;
  if (take(Token::name, "if")) {
    INVAR_TRY(condition, expression());
  }
  node->recursive = take(Token::name, "recursive");
  node->children.push_back(std::move(to));
  node->children.push_back(std::move(iterable));
  node->children.push_back(std::move(condition));
  ++loops_;
  INVAR_TRY(node->body, body({"else", "endfor"}));
  --loops_;
  if (take(Token::name, "else")) {
    INVAR_TRY(node->otherwise, body_to("endfor"));
  } else {
    ++at_;
  }
  return node;
}

Result<NodePtr> Parser::branch(int line) {
  INVAR_TRY(NodePtr node, make(Node::branch, line));
  for (;;) {
    INVAR_TRY(NodePtr condition, tuple(/*conditional=*/false));
    node->children.push_back(std::move(condition));
    INVAR_TRY(Nodes nodes, body({"elif", "else", "endif"}));
    node->bodies.push_back(std::move(nodes));
    if (take(Token::name, "elif")) continue;
    if (take(Token::name, "else")) {
      INVAR_TRY(Nodes other, body_to("endif"));
      node->bodies.push_back(std::move(other));
      return node;
    }
    ++at_;
    node->bodies.emplace_back();
    return node;
  }
}

Status Parser::signature(Node& node) {
  INVAR_CHECK_OK(expect(Token::op, "("));
  bool defaults = false;
  while (!now().is(Token::op, ")")) {
    if (!node.parameters.empty()) {
      INVAR_CHECK_OK(expect(Token::op, ","));
    }
    const std::string name = now().text;
    INVAR_CHECK_OK(expect(Token::name));
    NodePtr value;
    if (take(Token::op, "=")) {
      INVAR_TRY(value, expression());
      defaults = true;
    } else if (defaults) {
      return error("non-default argument follows default argument");
    }
    node.parameters.emplace_back(name, std::move(value));
  }
  return expect(Token::op, ")");
}

Result<NodePtr> Parser::macro(int line) {
  INVAR_TRY(NodePtr node, make(Node::macro, line, now().text));
  INVAR_CHECK_OK(expect(Token::name));
  INVAR_CHECK_OK(signature(*node));
  const int outer = std::exchange(loops_, 0);
  INVAR_TRY(node->body, body_to("endmacro"));
  loops_ = outer;
  return node;
}

Result<NodePtr> Parser::call_block(int line) {
  INVAR_TRY(NodePtr node, make(Node::call_block, line, "caller"));
  if (now().is(Token::op, "(")) {
    INVAR_CHECK_OK(signature(*node));
  }
  INVAR_TRY(NodePtr call, expression());
  if (call->kind != Node::call) return bad_input("line " + std::to_string(line) + ": expected call");
  node->children.push_back(std::move(call));
  const int outer = std::exchange(loops_, 0);
  INVAR_TRY(node->body, body_to("endcall"));
  loops_ = outer;
  return node;
}

Result<NodePtr> Parser::with(int line) {
  INVAR_TRY(NodePtr node, make(Node::with, line));
  while (now().kind != Token::block_end) {
    if (!node->children.empty()) {
      INVAR_CHECK_OK(expect(Token::op, ","));
    }
    INVAR_TRY(NodePtr to, make(Node::variable, now().line, now().text));
    INVAR_CHECK_OK(expect(Token::name));
    INVAR_CHECK_OK(expect(Token::op, "="));
    INVAR_TRY(NodePtr value, expression());
    node->children.push_back(std::move(to));
    node->children.push_back(std::move(value));
  }
  INVAR_TRY(node->body, body_to("endwith"));
  return node;
}

Result<Nodes> parse(std::string_view source) {
  INVAR_TRY(std::vector<Token> tokens, lex(source));
  return Parser(std::move(tokens)).statements({});
}

}  // namespace invar::prompt::jinja
