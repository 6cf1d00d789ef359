// The syntax of a template: tokens and the tree that the parser makes of them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "prompt/jinja/value/value.h"

namespace invar::prompt::jinja {

struct Token {
  enum Kind {
    data,
    block_begin,
    block_end,
    variable_begin,
    variable_end,
    name,
    string,
    number,
    op,
    end
  } kind;
  std::string text;  // of a string its value
  int line;
  Value value = {};  // of a number
  bool is(Kind k, std::string_view t) const { return kind == k && text == t; }
};
// Reads as an Environment with trim_blocks and lstrip_blocks does, without one line feed at the
// end. Errors: "line N: why".
Result<std::vector<Token>> lex(std::string_view source);

struct Node;
using NodePtr = std::unique_ptr<Node>;
using Nodes = std::vector<NodePtr>;

struct Node {
  enum Kind {
    // expressions
    constant,     // value
    variable,     // name
    list,         // children
    tuple,        // children
    dict,         // children: key, value, key, value, ...
    attribute,    // children[0].name
    item,         // children[0][children[1]]
    slice,        // start, stop, step of children, each may be null
    call,         // children[0](arguments)
    filter,       // children[0]|name(arguments); null: the body of a block
    test,         // children[0] is name(arguments)
    unary,        // name children[0]: "not", "-" or "+"
    binary,       // children[0] name children[1], an operator of numbers
    logical,      // children[0] name children[1]: "and" or "or"
    concat,       // children, joined by ~
    comparison,   // children[0] operators[0] children[1] operators[1] ...
    conditional,  // children[1] if children[0] else children[2], which may be null
    member,       // name.operators[0], of a namespace, as a target
    // statements
    data,        // name: the text
    output,      // children
    set,         // children: target, value
    set_block,   // children: target, filter or null; body
    loop,        // children: target, iterable, condition or null; body, otherwise
    branch,      // children: conditions; bodies: one for each, and the last for `else`
    macro,       // name(parameters); body
    call_block,  // (parameters); children[0]: the call; body
    filter_block,
    with,        // children: target, value, target, value, ...; body
    generation,  // body
    stop_loop,   // name: "break" or "continue"
  };
  Kind kind;
  int line;
  std::string name = {};
  Value value = {};
  Nodes children = {}, body = {}, otherwise = {};
  std::vector<Nodes> bodies = {};
  std::vector<std::string> operators = {};
  // Calls, filters and tests have these after children[0]: positional, NAME=..., *..., **...
  Nodes arguments = {};
  std::vector<std::pair<std::string, NodePtr>> named = {};
  NodePtr star = {}, double_star = {};
  // Macros and call blocks have these; a default may be null.
  std::vector<std::pair<std::string, NodePtr>> parameters = {};
  bool recursive = false;
};

// Errors: "line N: why". not_covered: a statement of Jinja that no chat template may use here.
Result<Nodes> parse(std::string_view source);

}  // namespace invar::prompt::jinja
