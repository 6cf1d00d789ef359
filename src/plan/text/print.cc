// The printer of plans: the canonical text and the two digests (spec/plan.md).
#include <algorithm>
#include <charconv>

#include "plan/keywords.h"
#include "plan/plan.h"

namespace invar::plan {
namespace {

constexpr char kHex[] = "0123456789abcdef";

std::string number(int64_t v) {
  return std::to_string(v);
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string s = "[";
  for (size_t i = 0; i < shape.size(); ++i) s += (i ? ", " : "") + number(shape[i]);
  return s + "]";
}

std::string shape_text(const std::vector<DimRef>& shape, const std::vector<DimExpr>& symbols) {
  std::string s = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    const DimRef& d = shape[i];
    if (i) s += ", ";
    if (d.symbol < 0) {
      s += number(d.value);
    } else {
      s += d.symbol < static_cast<int>(symbols.size()) ? symbols[d.symbol].text() : "?";
    }
  }
  return s + "]";
}

std::string attr_text(const AttributeValue& a) {
  if (auto* i = std::get_if<int64_t>(&a)) return number(*i);
  if (auto* s = std::get_if<std::string>(&a)) return quote(*s);
  if (auto* v = std::get_if<std::vector<int64_t>>(&a)) return shape_text(*v);
  std::string s = "0x";
  for (int shift = 28; shift >= 0; shift -= 4) s += kHex[std::get<F32Bits>(a).bits >> shift & 15];
  return s;
}

// plan.8: the line of a weight behind its number, which is what weights_digest() hashes.
std::string weight_text(const Weight& w) {
  return quote(w.name) + " " + std::string(name_of(w.dtype)) + " " + shape_text(w.shape) + " sha256 " +
         to_hex(w.sha256) + "\n";
}

// plan.4: values are numbered in the order of their definitions in the text, so neither the text
// nor the digest depends on how the compiler numbered them.
class Printer {
 public:
  explicit Printer(const Plan& p) : p_(p), number_(p.values.size(), -1), body_number_(p.bodies.size(), -1) {
    for (const Port& i : p.inputs) define(i.value);
    define(p.nodes);
    for (const Binding& b : p.bindings) bindings_[b.value].push_back(&b);
  }

  std::string program() const {
    std::string s(kHeader);
    s += "\nnumerics " + quote(p_.numerics) + "\noperations " +
         quote(std::string(name_of(p_.operation_set))) + "\n";
    for (const std::string& name : p_.choices) s += "choice " + quote(name) + "\n";
    for (const DimExpr& symbol : p_.symbols)
      if (const std::string* name = symbol.as_symbol()) s += "symbol " + *name + "\n";
    for (size_t i = 0; i < p_.weights.size(); ++i)
      s += "weight w" + number(i) + " " + weight_text(p_.weights[i]);
    for (size_t i = 0; i < p_.states.size(); ++i)
      s += "state s" + number(i) + " " + quote(p_.states[i].name) + "\n";
    for (const Port& i : p_.inputs) s += "input " + definition(i.value) + " " + quote(i.name) + "\n";
    for (const Port& i : p_.inputs) s += bindings(i.value);
    add(p_.nodes, s);
    for (const Port& o : p_.outputs) s += "output " + ref(o.value) + " " + quote(o.name) + "\n";
    return s;
  }

  std::string places() const {
    std::string s(kPlaces);
    s += "\n";
    for (size_t i = 0; i < p_.weights.size(); ++i) {
      const Weight& w = p_.weights[i];
      s += "place w" + number(i) + " " + quote(w.file) + " offset " + std::to_string(w.offset) + " length " +
           std::to_string(w.length) + "\n";
    }
    s += "slots " + number(p_.slots) + "\n";
    std::vector<std::string> lines(p_.values.size());
    for (size_t v = 0; v < p_.values.size(); ++v)
      if (number_[v] >= 0 && p_.values[v].slot >= 0)
        lines[number_[v]] = "slot v" + number(number_[v]) + " " + number(p_.values[v].slot) + "\n";
    for (const std::string& line : lines) s += line;
    int at = 0;
    origins(p_.nodes, at, s);
    if (p_.source) {
      s += "program " + quote(p_.source->recipe) + " sha256 " + to_hex(p_.source->program) + "\n";
      for (const Weight& w : p_.source->tensors) s += "tensor " + weight_text(w);
    }
    return s + std::string(kEnd) + "\n";
  }

 private:
  void define(int v) {
    if (v >= 0 && v < static_cast<int>(number_.size()) && number_[v] < 0) number_[v] = next_++;
  }
  void define(const std::vector<Node>& nodes) {
    for (const Node& n : nodes) {
      for (int b : n.bodies) {
        body_number_[b] = next_body_++;
        for (int v : p_.bodies[b].inputs) define(v);
        define(p_.bodies[b].nodes);
      }
      for (int v : n.out) define(v);
    }
  }
  void add(const std::vector<Node>& nodes, std::string& s) const {
    for (const Node& n : nodes) {
      for (int b : n.bodies) {
        const Body& body = p_.bodies[b];
        s += "body b" + number(body_number_[b]) + "(" +
             list(body.inputs, [this](int v) { return definition(v); }) + ")\n";
        for (int v : body.inputs) s += bindings(v);
        add(body.nodes, s);
        s += "give b" + number(body_number_[b]) + "(" + list(body.outputs, [this](int v) { return ref(v); }) +
             ")\n";
      }
      s += node(n);
      for (int v : n.out) s += bindings(v);
    }
  }
  // `at`: the number of nodes before these, in the order of the text.
  void origins(const std::vector<Node>& nodes, int& at, std::string& s) const {
    for (const Node& n : nodes) {
      for (int b : n.bodies) origins(p_.bodies[b].nodes, at, s);
      if (n.origin != Origin{})
        s += "origin " + number(at) + " " + quote(n.origin.op) + " " + quote(n.origin.name) + "\n";
      ++at;
    }
  }
  template <class Text>
  static std::string list(const std::vector<int>& all, const Text& text) {
    std::string s;
    for (size_t i = 0; i < all.size(); ++i) s += (i ? ", " : "") + text(all[i]);
    return s;
  }
  std::string ref(int v) const {
    return v >= 0 && v < static_cast<int>(number_.size()) && number_[v] >= 0 ? "v" + number(number_[v])
                                                                             : "v?";
  }
  std::string definition(int v) const {
    std::string s = ref(v);
    if (s == "v?") return s;
    const Value& value = p_.values[v];
    return s + ": " + std::string(name_of(value.dtype)) + " " + shape_text(value.shape, p_.symbols);
  }
  std::string node(const Node& n) const {
    std::string s = "node " + list(n.out, [this](int v) { return definition(v); });
    s += " = " + n.op + "." + number(n.version) + "(";
    for (size_t i = 0; i < n.in.size(); ++i) {
      if (i) s += ", ";
      s += n.in[i].kind == Operand::value ? ref(n.in[i].index) : "w" + number(n.in[i].index);
    }
    s += ")";
    if (n.state >= 0) s += " state s" + number(n.state);
    for (size_t i = 0; i < n.bodies.size(); ++i) s += (i ? ", b" : " b") + number(body_number_[n.bodies[i]]);
    s += " {";
    bool first = true;
    for (const auto& [key, value] : n.attrs) {
      s += (first ? "" : ", ") + key + "=" + attr_text(value);
      first = false;
    }
    return s + "}\n";
  }

  std::string bindings(int v) const {
    std::string s;
    if (const auto at = bindings_.find(v); at != bindings_.end())
      for (const Binding* b : at->second)
        s += "bind " + p_.symbols[b->symbol].text() + " = " + ref(v) + "[" + number(b->element) + "]\n";
    return s;
  }

  const Plan& p_;
  std::vector<int> number_;                              // of each value in the text; -1: defined nowhere
  std::vector<int> body_number_;                         // likewise
  std::map<int, std::vector<const Binding*>> bindings_;  // by value
  int next_ = 0, next_body_ = 0;
};

}  // namespace

std::string quote(std::string_view s) {
  std::string q = "\"";
  for (unsigned char c : s) {
    if (c == '"' || c == '\\') {
      q += {'\\', static_cast<char>(c)};
    } else if (c < 0x20 || c == 0x7f) {
      q += {'\\', 'x', kHex[c >> 4], kHex[c & 15]};
    } else {
      q += static_cast<char>(c);
    }
  }
  return q + "\"";
}

std::string text_of(const Origin& origin) {
  if (origin == Origin{}) return {};
  constexpr size_t kLongest = 128;
  const auto shown = [](const std::string& name) {
    std::string s = name.substr(0, kLongest);
    for (char& c : s)
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    return s + (name.size() > kLongest ? "..." : "");
  };
  return shown(origin.op) + " (node \"" + shown(origin.name) + "\"), ";
}

std::string print(const Plan& p) {
  const Printer printer(p);
  return printer.program() + printer.places();
}

Digest digest(const Plan& p) {
  return invar::sha256(Printer(p).program());
}

Digest weights_digest(std::span<const Weight> weights) {
  std::vector<const Weight*> sorted;
  for (const Weight& w : weights) sorted.push_back(&w);
  std::sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->name < b->name; });
  std::vector<Digest> leaves;
  leaves.reserve(sorted.size());
  for (const Weight* w : sorted) leaves.push_back(invar::sha256(weight_text(*w)));
  return merkle_root(leaves);
}

}  // namespace invar::plan
