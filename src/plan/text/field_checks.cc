// Checks of single fields and nodes, see field_checks.h.
#include "plan/text/field_checks.h"

#include "base/opset.h"
#include "plan/keywords.h"
#include "plan/text/cursor.h"

namespace invar::plan {

std::string first_difference(std::string_view text, std::string_view canonical) {
  size_t i = 0, line = 1, begin = 0;
  for (; i < canonical.size() && i < text.size() && canonical[i] == text[i]; ++i)
    if (text[i] == '\n') ++line, begin = i + 1;
  return ": line " + std::to_string(line) + ": not in canonical form; expected: " +
         std::string(canonical.substr(begin, canonical.find('\n', begin) - begin));
}

bool safe_path(std::string_view path) {
  if (path.empty() || path.find('\0') != path.npos || path.find('\\') != path.npos) return false;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "..") return false;  // "/x", "x//y", "x/" have an empty part
    begin = end + 1;
  }
  return true;
}

Status check_choice(const std::vector<std::string>& choices, const std::string& name) {
  const auto known = invar::choices();
  if (std::find(known.begin(), known.end(), name) == known.end())
    return not_covered("numerics choice " + brief(name) + " is not known to this build");
  if (!choices.empty() && choices.back() >= name)
    return bad_input("numerics choices are not in ascending order");
  return {};
}

bool can_bind(const Value& v, uint64_t element) {
  const bool known = v.shape.empty() || (v.shape.size() == 1 && v.shape[0].symbol < 0);
  return v.dtype == DType::i64 && known &&
         element < static_cast<uint64_t>(v.shape.empty() ? 1 : v.shape[0].value);
}

Status check_covered(const Node& n) {
  const OpInfo* info = op_info(n.op);
  if (!info) return not_covered("operation " + brief(n.op) + " is not one of this build");
  if (info->version != n.version)
    return not_covered("operation " + brief(n.op) + " version " + std::to_string(n.version) +
                       " is not in this build; it has version " + std::to_string(info->version));
  const auto it = n.attrs.find("numerics");
  const std::string* rule = it == n.attrs.end() ? nullptr : std::get_if<std::string>(&it->second);
  if (!rule) return bad_input("operation " + brief(n.op) + " does not name its numerics");
  if (*rule != info->numerics)
    return not_covered("operation " + brief(n.op) + " with numerics " + brief(*rule) +
                       " is not in this build; it has " + quote(info->numerics));
  return {};
}

namespace {

bool is_one(const Value& v, DType dtype) {
  const bool one = v.shape.empty() || (v.shape.size() == 1 && v.shape[0] == DimRef{1, -1});
  return v.dtype == dtype && one;
}

// Element type and rank; the runtime compares the dimensions.
Status check_same_type(const Plan& p, const std::string& what, int a, int b) {
  const Value &x = p.values[a], &y = p.values[b];
  if (x.dtype == y.dtype && x.shape.size() == y.shape.size()) return {};
  return bad_input(what + ": v" + std::to_string(a) + " and v" + std::to_string(b) +
                   " have not the same element type and rank");
}

Status check_loop(const Plan& p, const Node& n, int64_t carried) {
  const Body& body = p.bodies[n.bodies[0]];
  const size_t count = static_cast<size_t>(carried);
  if (n.in.size() < 2 || carried < 0 || count > n.in.size() - 2 || count > n.out.size() ||
      body.inputs.size() + 1 != n.in.size() || body.outputs.size() != n.out.size() + 1)
    return bad_input("a loop that carries " + std::to_string(carried) +
                     " values does not have these numbers of values");
  if (!is_one(p.values[n.in[0].index], DType::i64) || !is_one(p.values[n.in[1].index], DType::boolean) ||
      !is_one(p.values[body.inputs[0]], DType::i64) || !is_one(p.values[body.outputs[0]], DType::boolean))
    return bad_input(
        "a loop takes a number of steps, i64, and a condition, and its body a step and gives a condition");
  for (size_t i = 2; i < n.in.size(); ++i)
    INVAR_CHECK_OK(check_same_type(p, "a loop and its body", n.in[i].index, body.inputs[i - 1]));
  for (size_t i = 0; i < count; ++i) {
    INVAR_CHECK_OK(check_same_type(p, "what a loop carries", n.in[2 + i].index, body.outputs[1 + i]));
    INVAR_CHECK_OK(check_same_type(p, "what a loop carries", n.in[2 + i].index, n.out[i]));
  }
  for (size_t i = count; i < n.out.size(); ++i) {
    const Value &row = p.values[body.outputs[1 + i]], &all = p.values[n.out[i]];
    if (row.dtype != all.dtype || row.shape.size() + 1 != all.shape.size())
      return bad_input("what the steps of a loop give does not make v" + std::to_string(n.out[i]));
  }
  return {};
}

}  // namespace

Status check_control_flow(const Plan& p, const Node& n) {
  const auto number = n.attrs.find("carried");
  const int64_t* carried = number == n.attrs.end() ? nullptr : std::get_if<int64_t>(&number->second);
  const bool loop =
      n.op == "loop" && n.bodies.size() == 1 && carried && std::next(n.attrs.begin()) == n.attrs.end();
  if (!loop && !(n.op == "if" && n.bodies.size() == 2 && n.attrs.empty()))
    return bad_input("control flow is loop.1 with a body and the attribute carried, or if.1 with two bodies");
  if (n.version != 1)
    return not_covered("operation " + brief(n.op) + " version " + std::to_string(n.version) +
                       " is not in this build; it has version 1");
  if (n.state >= 0) return bad_input("control flow has no state");
  for (const Operand& o : n.in)
    if (o.kind != Operand::value) return bad_input("control flow takes values, no weights");
  if (loop) return check_loop(p, n, *carried);
  if (n.in.empty() || !is_one(p.values[n.in[0].index], DType::boolean))
    return bad_input("the first operand of an if is a condition");
  for (int b : n.bodies) {
    const Body& body = p.bodies[b];
    if (body.inputs.size() + 1 != n.in.size() || body.outputs.size() != n.out.size())
      return bad_input("an if and its bodies have different numbers of values");
    for (size_t i = 1; i < n.in.size(); ++i)
      INVAR_CHECK_OK(check_same_type(p, "an if and its body", n.in[i].index, body.inputs[i - 1]));
    for (size_t i = 0; i < n.out.size(); ++i)
      INVAR_CHECK_OK(check_same_type(p, "an if and its body", n.out[i], body.outputs[i]));
  }
  return {};
}

}  // namespace invar::plan
