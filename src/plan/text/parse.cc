// The parser of plans (spec/plan.md): checks everything that users of a Plan rely on. The text may
// be hostile: no count in it is trusted, nothing is allocated that it does not spell out.
#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "base/file/file.h"
#include "base/opset.h"
#include "plan/keywords.h"
#include "plan/plan.h"
#include "plan/text/cursor.h"
#include "plan/text/field_checks.h"
#include "plan/text/origins.h"
#include "plan/text/scopes.h"
#include "plan/text/weight_text.h"
#include "shape/dim_expr.h"

namespace invar::plan {
namespace {

constexpr size_t kMaxSymbols = size_t{1} << 16;
constexpr size_t kMaxCount = std::numeric_limits<int>::max();

class Parser {
 public:
  Parser(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  Result<Plan> parse() {
    while (!done_) {
      const size_t end = text_.find('\n', at_);
      ++line_;
      if (end == text_.npos) return error(bad_input("the plan ends before its line 'end'"));
      const std::string_view line = text_.substr(at_, end - at_);
      at_ = end + 1;
      Cursor c(line);
      if (auto status = read(c); !status) return error(status.error());
      if (!c.ok()) return error(bad_input(c.error()));
    }
    if (at_ != text_.size()) return error(bad_input("unexpected text after the line 'end'"));
    // plan.1: one program, one text, one digest. A text that print() would not write is refused.
    const std::string canonical = print(plan_);
    if (canonical != text_) return bad_input(std::string(file_) + first_difference(text_, canonical));
    return std::move(plan_);
  }

 private:
  // Sections stand in this order.
  enum Section {
    header,
    numerics,
    operations,
    choices,
    symbols,
    weights,
    states,
    inputs,
    nodes,
    outputs,
    places,
    slots,
    origins,
    source
  };

  Error error(const Error& e) const {
    return {e.code, std::string(file_) + ": line " + std::to_string(line_) + ": " + e.message};
  }

  Status read(Cursor& c) {
    if (section_ == header) return read_header(c);
    auto is = [&](std::string_view word, Section s) {
      if (section_ > s || !c.accept(word)) return false;
      section_ = s;
      return true;
    };
    if (section_ == header + 1) return read_numerics(c);
    if (section_ == numerics + 1) return read_operations(c);
    if (is("choice ", choices)) return read_choice(c);
    if (is("symbol ", symbols)) {
      read_symbol(c);
    } else if (is("weight ", weights)) {
      read_weight(c);
    } else if (is("state ", states)) {
      read_state(c);
    } else if (is("input ", inputs)) {
      read_input(c);
    } else if (is("node ", nodes)) {
      return read_node(c);
    } else if (is("body b", nodes)) {
      read_body(c);
    } else if (is("give b", nodes)) {
      read_body_outputs(c);
    } else if (is("bind ", nodes)) {
      read_binding(c);
    } else if (is("output ", outputs)) {
      read_output(c);
    } else if (section_ < places && c.accept(kPlaces)) {
      start_places(c);
    } else if (section_ == places && c.accept("place ")) {
      read_place(c);
    } else if (section_ == places && c.accept("slots ")) {
      start_slots(c);
    } else if (section_ == slots && c.accept("slot ")) {
      read_slot(c);
    } else if (section_ >= slots && section_ <= origins && c.accept("origin ")) {
      section_ = origins;
      origins_.read(c, plan_);
    } else if (section_ >= slots && section_ < source && c.accept("program ")) {
      section_ = source;
      plan_.source = read_source(c);
    } else if (section_ == source && c.accept("tensor ")) {
      read_source_tensor(c, *plan_.source);
    } else if (section_ >= slots && c.accept(kEnd)) {
      c.expect_end();
      done_ = true;
    } else {
      c.fail("unknown or misplaced line " + brief(c.until(' ')));
    }
    return {};
  }

  Status read_header(Cursor& c) {
    section_ = numerics;
    if (c.accept(kHeader) && c.at_end()) return {};
    if (c.accept("invar-plan "))
      return not_covered("plan format " + brief(c.until(' ')) + " is not known to this build; it reads '" +
                         std::string(kHeader) + "'");
    return bad_input("not a plan: the first line is not '" + std::string(kHeader) + "'");
  }

  Status read_numerics(Cursor& c) {
    section_ = operations;
    c.expect("numerics ");
    plan_.numerics = c.string();
    c.expect_end();
    if (c.ok() && plan_.numerics != kNumerics)
      return not_covered("numerics " + brief(plan_.numerics) + " cannot be run by this build; it has " +
                         quote(kNumerics));
    return {};
  }

  Status read_operations(Cursor& c) {
    section_ = choices;
    c.expect("operations ");
    const std::string name = c.string();
    c.expect_end();
    const auto set = operation_set_from(name);
    if (c.ok() && !set)
      return not_covered("operation set " + brief(name) + " is not known to this build; it has " +
                         std::string(kOperationSetNames));
    plan_.operation_set = set.value_or(OperationSet::reproducible);
    return {};
  }

  Status read_choice(Cursor& c) {
    const std::string name = c.string();
    c.expect_end();
    if (!c.ok()) return {};
    INVAR_CHECK_OK(check_choice(plan_.choices, name));
    plan_.choices.push_back(name);
    return {};
  }

  void read_symbol(Cursor& c) {
    const std::string name = c.identifier();
    symbol(name, DimExpr::symbol(name), {name});
    c.expect_end();
    if (plan_.symbols.size() > kMaxSymbols) c.fail("more than " + std::to_string(kMaxSymbols) + " symbols");
    unique(c, name, "symbol");
  }

  void read_weight(Cursor& c) {
    next(c, 'w', plan_.weights.size());
    c.expect(" ");
    uint64_t bytes = 0;
    Weight w = read_weight_text(c, bytes);
    unique(c, w.name, "weight");
    plan_.weights.push_back(std::move(w));
    weight_bytes_.push_back(bytes);
  }

  void read_state(Cursor& c) {
    next(c, 's', plan_.states.size());
    c.expect(" ");
    plan_.states.push_back({c.string()});
    state_used_.push_back(false);
    c.expect_end();
    unique(c, plan_.states.back().name, "state");
  }

  void read_input(Cursor& c) {
    const int v = define(c, -1, /*introduces=*/true);
    c.expect(" ");
    plan_.inputs.push_back({c.string(), v});
    c.expect_end();
    unique(c, plan_.inputs.back().name, "input");
  }

  void read_output(Cursor& c) {
    const int v = operand(c, plan_.values.size());
    if (!scopes_.at_top()) c.fail("a body is not complete");
    c.expect(" ");
    plan_.outputs.push_back({c.string(), v});
    c.expect_end();
    unique(c, plan_.outputs.back().name, "output");
    if (c.ok()) last_use_[v] = static_cast<int>(plan_.nodes.size());  // alive to the end
  }

  Status read_node(Cursor& c) {
    Node n;
    const int position = static_cast<int>(plan_.nodes.size());
    const size_t before = plan_.values.size();  // a node cannot read its own results
    const bool is_control_flow = !scopes_.pending_bodies().empty();
    do {
      n.out.push_back(define(c, position, /*introduces=*/is_control_flow));
      if (is_control_flow || scopes_.current_body() >= 0) scopes_.forbid_slot();
    } while (c.accept(", "));
    c.expect(" = ");
    n.op = c.identifier();
    c.expect(".");
    const uint64_t version = c.natural();
    n.version = version <= kMaxCount ? static_cast<int>(version) : -1;
    c.expect("(");
    while (c.ok() && !c.accept(")")) {
      if (!n.in.empty()) c.expect(", ");
      if (c.at("w")) {
        n.in.push_back({Operand::weight, c.index('w', plan_.weights.size())});
      } else {
        n.in.push_back({Operand::value, operand(c, before)});
        if (c.ok()) last_use_[n.in.back().index] = position;
      }
    }
    if (scopes_.current_body() < 0 && c.accept(" state ")) {
      n.state = c.index('s', plan_.states.size());
      if (c.ok() && state_used_[n.state]) c.fail("state s" + std::to_string(n.state) + " has two users");
      if (c.ok()) state_used_[n.state] = true;
    }
    for (size_t i = 0; c.ok() && c.accept(i ? ", " : " b"); ++i) {
      if (i) c.expect("b");
      n.bodies.push_back(static_cast<int>(std::min<uint64_t>(c.natural(), kMaxCount)));
    }
    c.expect(" {");
    while (c.ok() && !c.accept("}")) {
      if (!n.attrs.empty()) c.expect(", ");
      const std::string key = c.identifier();
      c.expect("=");
      if (!n.attrs.emplace(key, c.attribute())) c.fail("attribute " + key + " twice");
    }
    c.expect_end();
    if (n.bodies != scopes_.pending_bodies()) c.fail("a node runs the bodies that stand before it");
    if (c.ok()) {
      INVAR_CHECK_OK(is_control_flow ? check_control_flow(plan_, n) : check_covered(n));
    }
    scopes_.attach_pending();
    const int body = scopes_.current_body();
    std::vector<Node>& nodes = body < 0 ? plan_.nodes : plan_.bodies[body].nodes;
    origins_.add_node(body, nodes.size());
    nodes.push_back(std::move(n));
    return {};
  }

  // A body precedes the node that runs it: its inputs, its nodes, then its outputs.
  void read_body(Cursor& c) {
    const int b = static_cast<int>(plan_.bodies.size());
    c.expect(std::to_string(b) + "(");
    if (scopes_.depth() >= Scopes::kMaxNested)
      c.fail("a body within " + std::to_string(Scopes::kMaxNested) + " others");
    plan_.bodies.emplace_back();
    scopes_.enter(b);
    while (c.ok() && !c.accept(")")) {
      if (!plan_.bodies[b].inputs.empty()) c.expect(", ");
      plan_.bodies[b].inputs.push_back(define(c, -1, /*introduces=*/true));
      scopes_.forbid_slot();
    }
    c.expect_end();
  }

  void read_body_outputs(Cursor& c) {
    const int b = scopes_.current_body();
    if (b < 0 || !scopes_.pending_bodies().empty()) c.fail("there is no body to end here");
    if (!c.ok()) return;
    Body& body = plan_.bodies[b];
    c.expect(std::to_string(b) + "(");
    while (c.ok() && !c.accept(")")) {
      if (!body.outputs.empty()) c.expect(", ");
      body.outputs.push_back(operand(c, plan_.values.size()));
      if (c.ok() && defined_[body.outputs.back()] < 0) c.fail("a body gives what its nodes make");
    }
    c.expect_end();
    if (body.nodes.empty()) c.fail("a body has at least one node");
    scopes_.leave();
  }

  int operand(Cursor& c, size_t before) {
    const int v = c.index('v', before);
    if (c.ok() && !scopes_.is_visible(v)) c.fail("v" + std::to_string(v) + " is not of this body");
    return v;
  }

  void read_binding(Cursor& c) {
    const std::string name = c.identifier();
    c.expect(" = ");
    const int v = operand(c, plan_.values.size());
    c.expect("[");
    const uint64_t element = c.natural();
    c.expect("]");
    c.expect_end();
    if (!c.ok()) return;
    const auto symbol = symbol_.find(name);
    const Value& value = plan_.values[v];
    if (symbol == symbol_.end()) {
      c.fail("there is no symbol " + brief(name));
    } else if (!sized_symbols_.insert(name).second) {
      c.fail("symbol " + brief(name) + " is bound, or is the dimension of a value, before this line");
    } else if (!can_bind(value, element)) {
      c.fail("a symbol is bound to an element of an i64 value of rank 0 or 1 of constant size");
    } else {
      scopes_.in_scope(name, /*introduces=*/true);
      plan_.bindings.push_back({symbol->second, v, static_cast<int64_t>(element)});
    }
  }

  void start_places(Cursor& c) {
    c.expect_end();
    section_ = places;
    for (size_t s = 0; s < state_used_.size(); ++s)
      if (!state_used_[s]) c.fail("state s" + std::to_string(s) + " is used by no node");
    if (plan_.nodes.empty() || plan_.outputs.empty())
      c.fail("a program has at least one node and one output");
  }

  void read_place(Cursor& c) {
    next(c, 'w', placed_);
    if (c.ok() && placed_ >= plan_.weights.size()) c.fail("place of a weight that does not exist");
    if (!c.ok()) return;
    Weight& w = plan_.weights[placed_];
    c.expect(" ");
    w.file = c.string();
    c.expect(" offset ");
    w.offset = c.natural();
    c.expect(" length ");
    w.length = c.natural();
    c.expect_end();
    if (!c.ok()) return;
    if (!safe_path(w.file)) {
      c.fail("file " + brief(w.file) + " must be relative, inside the plan's folder, without '..'");
    } else if (w.length != weight_bytes_[placed_]) {
      c.fail("length " + std::to_string(w.length) + " of " + brief(w.name) + " should be " +
             std::to_string(weight_bytes_[placed_]) + " by its dtype and shape");
    } else if (w.offset > kMaxBytes) {
      c.fail("impossible offset " + std::to_string(w.offset));
    }
    ++placed_;
  }

  void start_slots(Cursor& c) {
    section_ = slots;
    if (placed_ != plan_.weights.size()) c.fail("weight w" + std::to_string(placed_) + " has no place");
    const uint64_t count = c.natural();
    c.expect_end();
    if (count > plan_.values.size()) c.fail("more slots than values");
    if (c.ok()) plan_.slots = static_cast<int>(count);
    slot_use_.assign(plan_.slots, {-2, -1});
  }

  // Lines are in the order of definition, so only the slot's last holder can still be alive.
  void read_slot(Cursor& c) {
    const int v = c.index('v', plan_.values.size());
    c.expect(" ");
    const uint64_t slot = c.natural();
    c.expect_end();
    if (c.ok() && slot >= slot_use_.size()) c.fail("there is no slot " + std::to_string(slot));
    if (c.ok() && v <= last_slotted_) c.fail("slots are not in the order of the values");
    if (!c.ok()) return;
    if (!scopes_.may_have_slot(v))
      return c.fail("v" + std::to_string(v) + " has no slot: it is of control flow");
    last_slotted_ = v;
    auto& [last_use, holder] = slot_use_[slot];
    if (last_use >= defined_[v])
      c.fail("v" + std::to_string(v) + " shares slot " + std::to_string(slot) + " with v" +
             std::to_string(holder) + ", which is still alive");
    // Even a value that nobody reads occupies its slot while its node runs.
    last_use = std::max(last_use_[v], defined_[v]);
    holder = v;
    plan_.values[v].slot = static_cast<int>(slot);
  }

  // vN: dtype [shape], where N is the next number. `node`: the position of the node that defines
  // the value, -1 for an input. `introduces`: symbols in its shape may be new.
  int define(Cursor& c, int node, bool introduces) {
    next(c, 'v', plan_.values.size());
    c.expect(": ");
    Value v;
    v.dtype = read_dtype(c);
    c.expect(" [");
    ByteBound size{size_of(v.dtype)};
    while (c.ok() && !c.accept("]")) {
      if (!v.shape.empty()) c.expect(", ");
      v.shape.push_back(dim(c, introduces));
      if (!c.ok()) break;
      const DimRef& d = v.shape.back();
      if (v.shape.size() > kMaxRank || (d.symbol < 0 && !size.multiply(d.value))) c.fail("impossible shape");
    }
    plan_.values.push_back(std::move(v));
    scopes_.define_value();
    defined_.push_back(node);
    last_use_.push_back(node);
    return static_cast<int>(plan_.values.size()) - 1;
  }

  // A number, a symbol, or an expression of symbols, which becomes a symbol of the plan.
  DimRef dim(Cursor& c, bool introduces) {
    const std::string_view text = c.word();
    Cursor word(text);
    if (const int64_t n = word.integer(); word.ok() && word.at_end()) return {n, -1};
    const auto it = symbol_.find(text);
    std::vector<std::string> fresh;
    const auto size = it != symbol_.end() || is_name(text) ? std::nullopt : DimExpr::parse_canonical(text);
    if (size) size->all_symbols([&](const std::string& name) { return fresh.push_back(name), true; });
    const auto& names = it != symbol_.end() ? names_of_[static_cast<size_t>(it->second)] : fresh;
    bool known = !names.empty();
    for (const std::string& name : names) {
      sized_symbols_.insert(name), known &= symbol_.contains(name);
      if (!scopes_.in_scope(name, introduces && name == text))
        c.fail("symbol " + brief(name) + " means nothing here");
    }
    if (!known) c.fail("there is no symbol " + brief(text));
    if (!c.ok()) return {};
    return it != symbol_.end() ? DimRef{0, it->second} : symbol(std::string(text), *size, std::move(fresh));
  }
  DimRef symbol(std::string text, DimExpr size, std::vector<std::string> names) {
    const int index = static_cast<int>(plan_.symbols.size());
    symbol_.emplace(std::move(text), index);
    plan_.symbols.push_back(std::move(size));
    names_of_.push_back(std::move(names));
    return {0, index};
  }

  // Definitions are numbered without gaps.
  void next(Cursor& c, char letter, size_t due) const {
    c.expect(std::string(1, letter) + std::to_string(due));
    if (due >= kMaxCount) c.fail("too many");
  }

  void unique(Cursor& c, const std::string& name, const char* kind) {
    if (c.ok() && !names_.insert(kind + (' ' + name)).second)
      c.fail(std::string("two ") + kind + "s have the name " + brief(name));
  }

  std::string_view text_, file_;
  size_t at_ = 0, line_ = 0;
  bool done_ = false;
  Section section_ = header;
  Plan plan_;
  std::set<std::string> names_;  // "kind name", to refuse duplicates
  std::map<std::string, int, std::less<>> symbol_;
  std::vector<std::vector<std::string>> names_of_;  // per symbol: the names it is computed from
  Scopes scopes_;
  std::set<std::string> sized_symbols_;  // names that occur in a shape or are bound
  std::vector<uint64_t> weight_bytes_;   // from dtype and shape
  std::vector<bool> state_used_;
  std::vector<int> defined_, last_use_;  // per value: positions of nodes; inputs: -1
  size_t placed_ = 0;
  std::vector<std::pair<int, int>> slot_use_;  // per slot: position of the last use, holder
  int last_slotted_ = -1;
  OriginReader origins_;
};

}  // namespace

Result<Plan> parse(std::string_view text, std::string_view file_name_for_errors) {
  return Parser(text, file_name_for_errors).parse();
}

Result<Plan> load(const std::string& path) {
  INVAR_TRY(const auto file, MappedFile::open(path));
  return parse(file.text(), path);
}

}  // namespace invar::plan
