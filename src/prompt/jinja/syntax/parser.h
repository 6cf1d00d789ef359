// A recursive descent over the tokens of a template, with the precedences of Jinja 3.1.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "prompt/jinja/syntax/syntax.h"

namespace invar::prompt::jinja {

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}
  // Up to a tag of one of these names, or to the end of the template where there are none.
  Result<Nodes> statements(std::initializer_list<std::string_view> ends);

 private:
  static constexpr int kMostNodes = 1 << 20, kDeepest = 200;

  // One level of the recursion; a template may not exhaust the stack.
  class Nesting {
   public:
    explicit Nesting(Parser& p) : parser_(p) { ++parser_.depth_; }
    Nesting(const Nesting&) = delete;
    ~Nesting() { --parser_.depth_; }
    bool allowed() const { return parser_.depth_ <= kDeepest; }
    Error error() const {
      return not_covered("line " + std::to_string(parser_.now().line) + ": nested deeper than " +
                         std::to_string(kDeepest) + " levels");
    }

   private:
    Parser& parser_;
  };

  const Token& now() const { return tokens_[at_]; }
  const Token& next() const { return tokens_[at_ + (at_ + 1 < tokens_.size())]; }
  bool take(Token::Kind kind, std::string_view text) {
    const bool there = now().is(kind, text);
    at_ += there;
    return there;
  }
  Error error(const std::string& why) const;
  std::string shown() const;
  Status expect(Token::Kind, std::string_view text = {});
  Result<NodePtr> make(Node::Kind, int line, std::string name = {});

  Result<Nodes> body(std::initializer_list<std::string_view> ends);
  Result<Nodes> body_to(std::string_view end);
  Result<NodePtr> statement();
  Result<NodePtr> target(bool members);
  Result<NodePtr> set(int line);
  Result<NodePtr> loop(int line);
  Result<NodePtr> branch(int line);
  Status signature(Node&);
  Result<NodePtr> macro(int line);
  Result<NodePtr> call_block(int line);
  Result<NodePtr> with(int line);

  Result<NodePtr> tuple(bool conditional = true, bool in_parentheses = false);
  Result<NodePtr> expression();
  Result<NodePtr> disjunction();
  Result<NodePtr> conjunction();
  Result<NodePtr> negation();
  Result<NodePtr> comparison();
  Result<NodePtr> sum();
  Result<NodePtr> concatenation();
  Result<NodePtr> product();
  Result<NodePtr> power();
  Result<NodePtr> unary(bool with_filters = true);
  Result<NodePtr> primary();
  Result<NodePtr> bracketed(Node::Kind, std::string_view close);
  Result<NodePtr> postfix(NodePtr);
  Result<NodePtr> subscript(NodePtr);
  Result<NodePtr> subscribed();
  Result<NodePtr> call(NodePtr);
  Result<NodePtr> filters(NodePtr, bool begins);
  Result<NodePtr> test(NodePtr);
  Status arguments(Node&);
  // left OP right OP right ..., from the left
  template <class Next>
  Result<NodePtr> chain(Node::Kind, Token::Kind, std::initializer_list<std::string_view> operators, Next);

  const std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0, nodes_ = 0, loops_ = 0;
};

}  // namespace invar::prompt::jinja
