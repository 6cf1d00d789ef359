#include <utility>

#include "prompt/jinja/syntax/parser.h"

namespace invar::prompt::jinja {

template <class Next>
Result<NodePtr> Parser::chain(Node::Kind kind, Token::Kind token,
                              std::initializer_list<std::string_view> operators, Next next) {
  INVAR_TRY(NodePtr left, (this->*next)());
  const auto is_one = [&] {
    for (const std::string_view op : operators)
      if (now().is(token, op)) return true;
    return false;
  };
  for (int terms = 1; is_one(); ++terms) {
    if (terms > kDeepest) return Nesting(*this).error();  // the tree leans to the left
    INVAR_TRY(NodePtr node, make(kind, now().line, now().text));
    ++at_;
    INVAR_TRY(NodePtr right, (this->*next)());
    node->children.push_back(std::move(left));
    node->children.push_back(std::move(right));
    left = std::move(node);
  }
  return left;
}

Result<NodePtr> Parser::tuple(bool conditional, bool in_parentheses) {
  Nodes elements;
  bool is_tuple = false;
  const int line = now().line;
  for (;;) {
    const Token& t = now();
    if (t.kind == Token::variable_end || t.kind == Token::block_end || t.is(Token::op, ")") ||
        t.is(Token::name, "recursive"))
      break;
    INVAR_TRY(NodePtr element, conditional ? expression() : disjunction());
    elements.push_back(std::move(element));
    if (!take(Token::op, ",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !elements.empty()) return std::move(elements[0]);
  if (!is_tuple && !in_parentheses) return error("expected an expression, got " + shown());
  INVAR_TRY(NodePtr node, make(Node::tuple, line));
  node->children = std::move(elements);
  return node;
}

Result<NodePtr> Parser::expression() {
  const Nesting nesting(*this);
  if (!nesting.allowed()) return nesting.error();
  INVAR_TRY(NodePtr value, disjunction());
  for (int terms = 1; take(Token::name, "if"); ++terms) {
    if (terms > kDeepest) return nesting.error();
    INVAR_TRY(NodePtr node, make(Node::conditional, value->line));
    INVAR_TRY(NodePtr condition, disjunction());
    NodePtr other;
    if (take(Token::name, "else")) {
      INVAR_TRY(other, expression());
    }
    node->children.push_back(std::move(condition));
    node->children.push_back(std::move(value));
    node->children.push_back(std::move(other));
    value = std::move(node);
  }
  return value;
}

Result<NodePtr> Parser::disjunction() {
  return chain(Node::logical, Token::name, {"or"}, &Parser::conjunction);
}
Result<NodePtr> Parser::conjunction() {
  return chain(Node::logical, Token::name, {"and"}, &Parser::negation);
}

Result<NodePtr> Parser::negation() {
  if (!now().is(Token::name, "not")) return comparison();
  const Nesting nesting(*this);
  if (!nesting.allowed()) return nesting.error();
  INVAR_TRY(NodePtr node, make(Node::unary, now().line, "not"));
  ++at_;
  INVAR_TRY(NodePtr operand, negation());
  node->children.push_back(std::move(operand));
  return node;
}

Result<NodePtr> Parser::comparison() {
  INVAR_TRY(NodePtr left, sum());
  NodePtr node;
  for (;;) {
    std::string op;
    for (const std::string_view one : {"==", "!=", "<", "<=", ">", ">="})
      if (now().is(Token::op, one)) op = one;
    if (now().is(Token::name, "in")) op = "in";
    if (now().is(Token::name, "not") && next().is(Token::name, "in")) op = "not in", ++at_;
    if (op.empty()) break;
    const int line = now().line;
    ++at_;
    if (!node) {
      INVAR_TRY(node, make(Node::comparison, line));
      node->children.push_back(std::move(left));
    }
    INVAR_TRY(NodePtr right, sum());
    node->operators.push_back(std::move(op));
    node->children.push_back(std::move(right));
  }
  return node ? std::move(node) : std::move(left);
}

Result<NodePtr> Parser::sum() {
  return chain(Node::binary, Token::op, {"+", "-"}, &Parser::concatenation);
}

Result<NodePtr> Parser::concatenation() {
  INVAR_TRY(NodePtr first, product());
  if (!now().is(Token::op, "~")) return first;
  INVAR_TRY(NodePtr node, make(Node::concat, first->line));
  node->children.push_back(std::move(first));
  while (take(Token::op, "~")) {
    INVAR_TRY(NodePtr more, product());
    node->children.push_back(std::move(more));
  }
  return node;
}

Result<NodePtr> Parser::product() {
  return chain(Node::binary, Token::op, {"*", "/", "//", "%"}, &Parser::power);
}

Result<NodePtr> Parser::power() {
  INVAR_TRY(NodePtr left, unary());
  for (int terms = 1; now().is(Token::op, "**"); ++terms) {
    if (terms > kDeepest) return Nesting(*this).error();
    INVAR_TRY(NodePtr node, make(Node::binary, now().line, "**"));
    ++at_;
    INVAR_TRY(NodePtr right, unary());
    node->children.push_back(std::move(left));
    node->children.push_back(std::move(right));
    left = std::move(node);
  }
  return left;
}

Result<NodePtr> Parser::unary(bool with_filters) {
  const Nesting nesting(*this);
  if (!nesting.allowed()) return nesting.error();
  NodePtr node;
  if (now().is(Token::op, "-") || now().is(Token::op, "+")) {
    INVAR_TRY(node, make(Node::unary, now().line, now().text));
    ++at_;
    INVAR_TRY(NodePtr operand, unary(false));
    node->children.push_back(std::move(operand));
  } else {
    INVAR_TRY(node, primary());
  }
  INVAR_TRY(node, postfix(std::move(node)));
  for (int terms = 0; with_filters; ++terms) {
    if (terms > kDeepest) return nesting.error();
    if (now().is(Token::op, "|")) {
      INVAR_TRY(node, filters(std::move(node), false));
    } else if (now().is(Token::name, "is")) {
      INVAR_TRY(node, test(std::move(node)));
    } else if (now().is(Token::op, "(")) {
      INVAR_TRY(node, call(std::move(node)));
    } else {
      break;
    }
  }
  return node;
}

Result<NodePtr> Parser::bracketed(Node::Kind kind, std::string_view close) {
  INVAR_TRY(NodePtr node, make(kind, now().line));
  ++at_;
  while (!now().is(Token::op, close)) {
    if (!node->children.empty()) {
      INVAR_CHECK_OK(expect(Token::op, ","));
    }
    if (now().is(Token::op, close)) break;
    INVAR_TRY(NodePtr element, expression());
    node->children.push_back(std::move(element));
    if (kind != Node::dict) continue;
    INVAR_CHECK_OK(expect(Token::op, ":"));
    INVAR_TRY(NodePtr value, expression());
    node->children.push_back(std::move(value));
  }
  ++at_;
  return node;
}

Result<NodePtr> Parser::primary() {
  const Token& t = now();
  INVAR_TRY(NodePtr node, make(Node::constant, t.line));
  switch (t.kind) {
    case Token::name:
      ++at_;
      if (t.text == "true" || t.text == "True" || t.text == "false" || t.text == "False")
        node->value = Value{t.text == "true" || t.text == "True"};
      else if (t.text == "none" || t.text == "None")
        node->value = Value{None{}};
      else
        node->kind = Node::variable, node->name = t.text;
      return node;
    case Token::string: {
      std::string joined;
      while (now().kind == Token::string) joined += tokens_[at_++].text;
      node->value = text(std::move(joined));
      return node;
    }
    case Token::number:
      ++at_;
      node->value = t.value;
      return node;
    case Token::op:
      if (take(Token::op, "(")) {
        INVAR_TRY(NodePtr inner, tuple(true, /*in_parentheses=*/true));
        INVAR_CHECK_OK(expect(Token::op, ")"));
        return inner;
      }
      if (t.text == "[") return bracketed(Node::list, "]");
      if (t.text == "{") return bracketed(Node::dict, "}");
      break;
    default: break;
  }
  return error("unexpected " + shown());
}

Result<NodePtr> Parser::postfix(NodePtr node) {
  for (int terms = 0;; ++terms) {
    if (terms > kDeepest) return Nesting(*this).error();
    if (now().is(Token::op, ".") || now().is(Token::op, "[")) {
      INVAR_TRY(node, subscript(std::move(node)));
    } else if (now().is(Token::op, "(")) {
      INVAR_TRY(node, call(std::move(node)));
    } else {
      return node;
    }
  }
}

Result<NodePtr> Parser::subscript(NodePtr of) {
  INVAR_TRY(NodePtr node, make(Node::item, now().line));
  node->children.push_back(std::move(of));
  if (take(Token::op, ".")) {
    const Token& t = now();
    const bool index = t.kind == Token::number && std::holds_alternative<int64_t>(t.value.v);
    if (t.kind != Token::name && !index) return error("expected name or number, got " + shown());
    ++at_;
    if (!index) {
      node->kind = Node::attribute, node->name = t.text;
      return node;
    }
    INVAR_TRY(NodePtr number, make(Node::constant, t.line));
    number->value = t.value;
    node->children.push_back(std::move(number));
    return node;
  }
  ++at_;
  Nodes indices;
  while (!now().is(Token::op, "]")) {
    if (!indices.empty()) {
      INVAR_CHECK_OK(expect(Token::op, ","));
    }
    INVAR_TRY(NodePtr index, subscribed());
    indices.push_back(std::move(index));
  }
  ++at_;
  if (indices.size() != 1)
    return bad_input("line " + std::to_string(node->line) + ": expected one subscript");
  node->children.push_back(std::move(indices[0]));
  return node;
}

Result<NodePtr> Parser::subscribed() {
  const int line = now().line;
  Nodes parts;
  const auto closes = [&] { return now().is(Token::op, "]") || now().is(Token::op, ","); };
  if (!now().is(Token::op, ":")) {
    INVAR_TRY(NodePtr first, expression());
    if (!now().is(Token::op, ":")) return first;
    parts.push_back(std::move(first));
  } else {
    parts.emplace_back();
  }
  while (parts.size() < 3 && take(Token::op, ":")) {
    if (closes() || now().is(Token::op, ":")) {
      parts.emplace_back();
    } else {
      INVAR_TRY(NodePtr part, expression());
      parts.push_back(std::move(part));
    }
  }
  INVAR_TRY(NodePtr node, make(Node::slice, line));
  parts.resize(3);
  node->children = std::move(parts);
  return node;
}

Status Parser::arguments(Node& node) {
  const int line = now().line;
  const auto wrong = [&] {
    return bad_input("line " + std::to_string(line) + ": invalid syntax for function call expression");
  };
  INVAR_CHECK_OK(expect(Token::op, "("));
  for (bool first = true; !now().is(Token::op, ")"); first = false) {
    if (!first) {
      INVAR_CHECK_OK(expect(Token::op, ","));
      if (now().is(Token::op, ")")) break;
    }
    if (take(Token::op, "*")) {
      if (node.star || node.double_star) return wrong();
      INVAR_TRY(node.star, expression());
    } else if (take(Token::op, "**")) {
      if (node.double_star) return wrong();
      INVAR_TRY(node.double_star, expression());
    } else if (now().kind == Token::name && next().is(Token::op, "=")) {
      if (node.double_star) return wrong();
      const std::string name = now().text;
      at_ += 2;
      INVAR_TRY(NodePtr value, expression());
      node.named.emplace_back(name, std::move(value));
    } else {
      if (node.star || node.double_star || !node.named.empty()) return wrong();
      INVAR_TRY(NodePtr value, expression());
      node.arguments.push_back(std::move(value));
    }
  }
  return expect(Token::op, ")");
}

Result<NodePtr> Parser::call(NodePtr callee) {
  INVAR_TRY(NodePtr node, make(Node::call, now().line));
  node->children.push_back(std::move(callee));
  INVAR_CHECK_OK(arguments(*node));
  return node;
}

// |name(...)|name ...; `begins`: without the first bar. Null where there is none.
Result<NodePtr> Parser::filters(NodePtr input, bool begins) {
  for (int terms = 0; begins || now().is(Token::op, "|"); ++terms, begins = false) {
    if (terms > kDeepest) return Nesting(*this).error();
    if (!begins) ++at_;
    INVAR_TRY(NodePtr node, make(Node::filter, now().line, now().text));
    INVAR_CHECK_OK(expect(Token::name));
    if (now().is(Token::op, "(")) {
      INVAR_CHECK_OK(arguments(*node));
    }
    node->children.push_back(std::move(input));
    input = std::move(node);
  }
  return input;
}

Result<NodePtr> Parser::test(NodePtr operand) {
  const int line = now().line;
  ++at_;
  const bool negated = take(Token::name, "not");
  INVAR_TRY(NodePtr node, make(Node::test, line, now().text));
  INVAR_CHECK_OK(expect(Token::name));
  node->children.push_back(std::move(operand));
  const Token& t = now();
  const bool opens = t.is(Token::op, "[") || t.is(Token::op, "{");
  const bool word = t.kind == Token::name && t.text != "else" && t.text != "or" && t.text != "and";
  if (t.is(Token::op, "(")) {
    INVAR_CHECK_OK(arguments(*node));
  } else if (word || opens || t.kind == Token::string || t.kind == Token::number) {
    if (t.is(Token::name, "is")) return error("You cannot chain multiple tests with is");
    INVAR_TRY(NodePtr argument, primary());
    INVAR_TRY(argument, postfix(std::move(argument)));
    node->arguments.push_back(std::move(argument));
  }
  if (!negated) return node;
  INVAR_TRY(NodePtr negation, make(Node::unary, line, "not"));
  negation->children.push_back(std::move(node));
  return negation;
}

}  // namespace invar::prompt::jinja
