// The first difference between two exchange files, see compare.h.
#include <algorithm>

#include "base/text/display.h"
#include "base/text/json.h"
#include "dispute/compare.h"
#include "dispute/files/element_text.h"
#include "dispute/reexecute/reexecute.h"
#include "dispute/trace.h"

namespace invar::dispute {
namespace {

constexpr const char* kOneSide =
    "weights, program and input are equal, and so is every result before this one: the kernel of one side "
    "does "
    "not conform, or its memory is faulty; `invar doctor` on each side looks for both";

// Files of two computations: what they differ in explains the rest. The receipt itself may be
// another one of the same tokens.
bool other_computation(const Computation& a, Computation b, Difference& d) {
  b.receipt = a.receipt;
  const OtherComputation other = compare(a, b);
  if (other.member.empty()) return false;
  d.where.emplace_back("field", "computation." + other.member + ": " + other.a + " and " + other.b);
  d.cause = other.member == "weights"    ? "other weights: their digests differ"
            : other.member == "numerics" ? "another numerics version: it computes other bits"
            : other.member == "program"  ? "another program: what is computed differs"
            : other.member == "plan"
                ? "another plan of the same program: two versions of the compiler, whose results cannot be "
                  "compared one by one; trace with one version"
                : "other tokens were fed: compare the receipts";
  return true;
}

Difference compare_rows(const Rows& a, const Rows& b) {
  Difference d;
  if (other_computation(a.of, b.of, d)) return d;
  const auto at =
      std::mismatch(a.rows.begin(), a.rows.end(), b.rows.begin(), b.rows.end()).first - a.rows.begin();
  d.equal = a.rows == b.rows;
  if (d.equal) return d;
  const std::string row = std::to_string(at);
  d.where = {{"value", std::to_string(a.value)}, {"position", row}};
  d.cause = kOneSide;
  d.next = "invar trace RECEIPT --values " + std::to_string(a.value) + ":" + row +
           " -o values.json, each side; then invar diff of both files";
  return d;
}

Result<Difference> compare_values(const Values& a, const Values& b, const std::string& name_b) {
  Difference d;
  if (other_computation(a.of, b.of, d)) return d;
  const auto dtype = dtype_from(a.dtype);
  if (!dtype || a.dtype != b.dtype || a.result.size() != b.result.size() || a.result.size() % size_of(*dtype))
    return bad_input(name_b + ": result: dtype or size is not that of the other file");
  d.where = {{"value", std::to_string(a.value)}, {"position", std::to_string(a.row)}};
  auto show = [&](const std::string& left, const std::string& right) {
    const int64_t e = first_difference(*dtype, left, right);
    if (e < 0) return false;
    d.where.emplace_back("element", std::to_string(e));
    d.where.emplace_back("a", element_text(*dtype, element_of(*dtype, left, e)));
    d.where.emplace_back("b", element_text(*dtype, element_of(*dtype, right, e)));
    return true;
  };
  const bool results_differ = show(a.result, b.result);
  bool operands_differ = a.operands.size() != b.operands.size();
  for (size_t i = 0; !operands_differ && i < a.operands.size(); ++i)
    operands_differ = a.operands[i].rows != b.operands[i].rows;
  d.equal = !results_differ && !operands_differ;
  if (d.equal) return d;
  d.cause = operands_differ ? "the operands differ, so an earlier result does: compare both traces first"
                            : std::string("the operands are equal and the result is not. ") + kOneSide;
  if (!operands_differ)
    d.next =
        "invar diff of these files with --receipt RECEIPT computes the element here and says who is right";
  return d;
}

Result<receipt::Receipt> read_receipt(const NamedText& file, Difference& d) {
  receipt::Receipt r;
  INVAR_TRY(const auto findings, receipt::validate(file.text, file.name, &r));
  for (const std::string& text : receipt::texts_of(findings))
    d.where.emplace_back("field", file.name + ": " + text);
  return r;
}

// The schema of a JSON text; "" where it has none.
Result<std::string> schema_of(const NamedText& file) {
  INVAR_TRY(const json::Value v, json::parse(file.text, file.name));
  for (const json::Member& m : v.members)
    if (m.first == "schema") return m.second.text;
  return std::string();
}

bool is_receipt(const std::string& schema) {
  return schema.starts_with("invar-receipt") || schema.starts_with("invar-tensor-receipt");
}

}  // namespace

Result<Difference> compare_traces(const Trace& a, const Trace& b) {
  Difference d;
  if (other_computation(a.of, b.of, d)) return d;
  for (size_t i = 0; i < std::min(a.values.size(), b.values.size()); ++i) {
    const TracedValue &x = a.values[i], &y = b.values[i];
    if (x.value != y.value || x.operation != y.operation)
      return bad_input("values[" + std::to_string(i) +
                       "]: the traces are of one plan but name different results: " + x.operation + " and " +
                       y.operation);
    if (x.root == y.root) continue;
    d.where = {{"operation",
                x.operation + ", node " + std::to_string(x.node) + ", value " + std::to_string(x.value)},
               {"layer", x.origin.empty() ? "(unknown)" : x.origin},
               {"before", i == 0 ? "it is the first result"
                                 : "the " + std::to_string(i) + " results before it are equal"}};
    d.cause = kOneSide;
    d.next = "invar trace RECEIPT --rows " + std::to_string(x.value) +
             " -o rows.json, each side; then invar diff of both files";
    return d;
  }
  if (a.values.size() != b.values.size()) return bad_input("the traces have different numbers of results");
  d.equal = true;
  if (a.of.receipt != b.of.receipt)
    d.cause =
        "every result is equal, so the receipts differ in what no computation decides, or one of them does "
        "not follow from its own trace: a corrupted receipt";
  return d;
}

Result<Difference> compare_files(const NamedText& a, const NamedText& b) {
  INVAR_TRY(const std::string schema_a, schema_of(a));
  INVAR_TRY(const std::string schema_b, schema_of(b));
  const bool receipt_a = is_receipt(schema_a), receipt_b = is_receipt(schema_b);
  if (receipt_a && receipt_b) {
    Difference d;
    INVAR_TRY(const receipt::Receipt left, read_receipt(a, d));
    INVAR_TRY(const receipt::Receipt right, read_receipt(b, d));
    if (d.where.empty()) return compare_receipts(left, right);
    d.cause = "a corrupted receipt: it contradicts itself, whatever was computed";
    return d;
  }
  if (receipt_a != receipt_b)
    return bad_input((receipt_a ? b : a).name + ": a receipt is needed here, as " + (receipt_a ? a : b).name +
                     " is one; or compare two traces");
  INVAR_TRY(const Exchange left, parse(a.text, a.name));
  INVAR_TRY(const Exchange right, parse(b.text, b.name));
  if (left.index() != right.index())
    return bad_input(b.name + ": this is " + std::string(kind_of(right)) + ", and " + a.name + " is " +
                     std::string(kind_of(left)));
  if (const auto* t = std::get_if<Trace>(&left)) return compare_traces(*t, std::get<Trace>(right));
  if (const auto* r = std::get_if<Rows>(&left)) {
    const Rows& other = std::get<Rows>(right);
    if (r->value != other.value || r->rows.size() != other.rows.size())
      return bad_input(b.name + ": value: these are not the rows of value " + std::to_string(r->value));
    return compare_rows(*r, other);
  }
  if (const auto* v = std::get_if<Values>(&left)) {
    const Values& other = std::get<Values>(right);
    if (v->value != other.value || v->row != other.row)
      return bad_input(b.name + ": row: these are not of row " + std::to_string(v->row) + " of value " +
                       std::to_string(v->value));
    return compare_values(*v, other, b.name);
  }
  return bad_input(a.name + ": schema: " + std::string(kind_of(left)) +
                   " cannot be compared; give two receipts, traces, rows or values");
}

Status decide(const Subject& s, const NamedText& a, const NamedText& b, Difference& d) {
  INVAR_TRY(const Values left, parse_as<Values>(a.text, a.name));
  INVAR_TRY(const Values right, parse_as<Values>(b.text, b.name));
  for (const auto& [file, values] : {std::pair(&a, &left), {&b, &right}})
    if (const OtherComputation other = compare(values->of, s.of); !other.member.empty())
      return bad_input(file->name + ": computation." + other.member + ": " + other.a + ", and here it is " +
                       other.b);
  const auto dtype = dtype_from(left.dtype);  // compare_files() knows it
  const int64_t element = first_difference(*dtype, left.result, right.result);
  if (element < 0) return {};
  auto mine = reexecute(s, left, element);
  if (!mine) return Error{mine.error().code, a.name + ": " + mine.error().message};
  d.where.emplace_back("here",
                       element_text(*dtype, mine->element) + ", by the reference kernel from these operands");
  const bool a_right = element_of(*dtype, left.result, element) == mine->element,
             b_right = element_of(*dtype, right.result, element) == mine->element;
  d.cause = !a_right && !b_right
                ? "both sides: neither element is what the operation gives"
                : (a_right ? b : a).name +
                      ": its element is not what the operation gives, so its kernel does not "
                      "conform, its memory is faulty, or the file was changed";
  d.next.clear();
  return {};
}

Result<Difference> compare_with_machine(const Subject& s, const std::vector<receipt::Finding>& other_model) {
  Difference d;
  for (const std::string& text : receipt::texts_of(other_model)) d.where.emplace_back("field", text);
  if (!d.where.empty()) {
    d.cause = "another model or program than the receipt's: its digests differ from those of this folder";
    return d;
  }
  INVAR_TRY(const Objection found, objection(s));
  if (found.step < 0) {
    d.equal = true;
    return d;
  }
  const auto step = static_cast<size_t>(found.step);
  const Digest mine = sha256(found.logits);
  const bool logits_equal = mine == s.receipt.logits[step];
  Parting parting{found.step, s.receipt.tokens[step], s.receipt.tokens[step], floats_of(found.logits)};
  if (const auto picked = receipt::pick_token(s.receipt, parting.logits, step)) parting.b = *picked;
  d.parting = std::move(parting);
  d.where = {{"step", std::to_string(step) + ", token " + std::to_string(s.receipt.tokens[step])},
             {"logits", logits_equal ? "equal, so the token is not what the sampler picks"
                                     : "the receipt has " + to_hex(s.receipt.logits[step]) + ", here it is " +
                                           to_hex(mine)}};
  if (logits_equal) {
    d.cause = "a corrupted or forged receipt: its token does not follow from its own logits";
    return d;
  }
  Subject reference = s;
  reference.options.isa = "reference";
  INVAR_TRY(const Trace fast, trace(s));
  INVAR_TRY(const Trace slow, trace(reference));
  INVAR_TRY(const Difference own, compare_traces(fast, slow));
  if (!own.equal) {
    d.where.insert(d.where.end(), own.where.begin(), own.where.end());
    d.cause =
        "this machine: its kernel differs from the reference kernel in this operation, so the kernel does "
        "not "
        "conform or the memory is faulty; `invar doctor` looks for both";
    return d;
  }
  d.cause =
      "the other side: every result of this machine's kernels equals that of the reference kernels, so the "
      "receipt was changed, or was computed by a kernel that does not conform or in faulty memory";
  d.next = "invar trace RECEIPT -o trace.json, each side; then invar diff of both traces";
  return d;
}

std::string report(const Difference& d) {
  std::string text = d.equal ? "EQUAL\n" : "DIFFERENT\n";
  auto row = [&](std::string what, const std::string& how) {
    if (how.empty()) return;
    what.resize(std::max<size_t>(what.size(), 9), ' ');
    text += "  " + what + " " + printable(how) + "\n";
  };
  for (const auto& [what, how] : d.where) row(what, how);
  row("cause", d.cause);
  row("next", d.next);
  return text;
}

}  // namespace invar::dispute
