// Writing exchange files, see exchange.h.
#include "base/text/json.h"
#include "dispute/exchange.h"

namespace invar::dispute {
namespace {

std::string quoted(const Digest& d) {
  return '"' + to_hex(d) + '"';
}

// A list, an item a line.
template <class Item>
std::string lines(const std::vector<Item>& items, const auto& write, const std::string& indent = "    ") {
  std::string text = "[";
  for (const Item& i : items) text += (&i == items.data() ? "\n" : ",\n") + indent + write(i);
  return text + (items.empty() ? "]" : "\n" + indent.substr(2) + "]");
}
std::string digests(const std::vector<Digest>& list, const std::string& indent = "    ") {
  return lines(list, quoted, indent);
}

// The start of every file, up to its own members.
std::string begin(const std::string& schema, const Computation& of) {
  return "{\n  \"schema\": \"" + schema +
         "\",\n  \"computation\": {\n    \"receipt\": " + quoted(of.receipt) +
         ",\n    \"weights\": " + quoted(of.weights) + ",\n    \"program\": " + quoted(of.program) +
         ",\n    \"plan\": " + quoted(of.plan) + ",\n    \"tokens\": " + quoted(of.tokens) +
         ",\n    \"numerics\": " + json::quote(of.numerics) +
         ",\n    \"positions\": " + std::to_string(of.positions) + "\n  }";
}
std::string integer_member(const std::string& member, int64_t n) {
  return ",\n  \"" + member + "\": " + std::to_string(n);
}

std::string line_of(const TracedValue& v) {
  std::string shape;
  for (const int64_t d : v.shape) shape += (shape.empty() ? "" : ", ") + std::to_string(d);
  return "{\"value\": " + std::to_string(v.value) + ", \"node\": " + std::to_string(v.node) +
         ", \"operation\": " + json::quote(v.operation) + ", \"origin\": " + json::quote(v.origin) +
         ", \"dtype\": " + json::quote(v.dtype) + ", \"shape\": [" + shape +
         "], \"root\": " + quoted(v.root) + "}";
}

}  // namespace

std::string hex(std::string_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char c : bytes) text += digits[static_cast<uint8_t>(c) >> 4], text += digits[c & 15];
  return text;
}

std::string print(const Trace& t) {
  return begin("invar-trace 1", t.of) + ",\n  \"values\": " + lines(t.values, line_of) + "\n}\n";
}

std::string print(const Rows& r) {
  return begin("invar-rows 1", r.of) + integer_member("value", r.value) +
         ",\n  \"rows\": " + digests(r.rows) + "\n}\n";
}

std::string print(const Values& v) {
  auto bytes = [](const std::string& row) { return '"' + hex(row) + '"'; };
  auto operand = [&](const OperandRows& o) {
    return "{\"value\": " + std::to_string(o.value) + ", \"first\": " + std::to_string(o.first) +
           ", \"rows\": " + lines(o.rows, bytes, "      ") + ", \"proof\": " + digests(o.proof, "      ") +
           "}";
  };
  return begin("invar-values 1", v.of) + integer_member("value", v.value) + integer_member("row", v.row) +
         ",\n  \"dtype\": " + json::quote(v.dtype) + ",\n  \"result\": " + bytes(v.result) +
         ",\n  \"operands\": " + lines(v.operands, operand) + "\n}\n";
}

std::string print(const Objection& o) {
  return begin("invar-objection 1", o.of) + integer_member("step", o.step) + ",\n  \"logits\": \"" +
         hex(o.logits) + "\",\n  \"proof\": " + digests(o.proof) + "\n}\n";
}

std::string print(const Question& q) {
  return begin("invar-question 1", q.of) + integer_member("round_number", q.round) +
         ",\n  \"asks\": " + json::quote(q.asks) + integer_member("value", q.value) +
         integer_member("row", q.row) +
         ",\n  \"answered\": {\n    \"a\": " + digests(q.answered_a, "      ") +
         ",\n    \"b\": " + digests(q.answered_b, "      ") + "\n  }\n}\n";
}

}  // namespace invar::dispute
