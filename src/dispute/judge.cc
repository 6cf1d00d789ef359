// The rounds of a dispute, see judge.h.
#include "dispute/judge.h"

#include <algorithm>
#include <optional>

#include "base/endian.h"
#include "base/text/display.h"
#include "dispute/files/element_text.h"
#include "dispute/proof/range_proof.h"
#include "dispute/reexecute/reexecute.h"

namespace invar::dispute {
namespace {

// Why a party's file makes it lose; empty: it does not.
using Fault = std::string;
constexpr const char* kParty[] = {"a", "b"};

class Judge {
 public:
  Judge(const Subject& s, const Party& a, const Party& b, const Question* asked, bool close)
      : s_(s), party_{&a, &b}, asked_(asked), close_(close) {
    for (const plan::Node& n : s.plan.nodes)
      if (!s.is_encoded(n.out[0]))
        verdict_.cost.run_multiply_adds += multiply_adds(s.plan, n, 0, s.of.positions - 1);
  }
  Result<Ruling> rule();

 private:
  Question ask(int64_t round, std::string asks, int64_t value = -1, int64_t row = -1) const;
  Ruling decide(Verdict::Winner winner, std::string reason) {
    verdict_.winner = winner, verdict_.reason = std::move(reason);
    return verdict_;
  }
  std::optional<Ruling> decide_on(const Fault (&fault)[2]);
  // Reads the answer of a party; absent: it has not answered and may still do so.
  template <class T, class Check>
  std::optional<Fault> read(const Question&, int party, T& answer, const Check& check);
  // Reads what both answered. A ruling: the question again, or a verdict about a bad answer.
  template <class T, class Check>
  std::optional<Ruling> read_both(const Question&, T (&answer)[2], const Check& check);
  Fault check_trace(const Trace&) const;
  Fault check_values(const Values&, const Question&, const Rows&);
  Result<Ruling> rule_on_value(size_t at);
  Result<Ruling> rule_on_element(const TracedValue&, const Values (&answer)[2]);
  Ruling rule_on_receipt();
  Fault check_objection(const Objection&) const;
  void detail(std::string what, std::string how) {
    verdict_.details.emplace_back(std::move(what), std::move(how));
  }
  Digest hashed(std::string_view bytes) {
    verdict_.cost.bytes_hashed += bytes.size();
    return sha256(bytes);
  }
  const plan::Value& value(int64_t v) const { return s_.plan.values[static_cast<size_t>(v)]; }

  const Subject& s_;
  const Party* party_[2];
  std::vector<Digest> given_[2];  // of the answers that were read, round by round
  const Question* asked_;
  bool close_;
  Trace trace_[2];
  Verdict verdict_;
};

Question Judge::ask(int64_t round, std::string asks, int64_t value, int64_t row) const {
  Question q{s_.of, round, std::move(asks), value, row, {}, {}};
  for (size_t i = 0; i + 1 < static_cast<size_t>(round); ++i) {
    q.answered_a.push_back(given_[0][i]);
    q.answered_b.push_back(given_[1][i]);
  }
  return q;
}

std::optional<Ruling> Judge::decide_on(const Fault (&fault)[2]) {
  if (fault[0].empty() && fault[1].empty()) return std::nullopt;
  if (!fault[0].empty() && !fault[1].empty())
    return decide(Verdict::nobody, "both answers fail: " + fault[0] + "; " + fault[1]);
  const int loser = fault[0].empty() ? 1 : 0;
  return decide(loser ? Verdict::a : Verdict::b,
                std::string("party ") + kParty[loser] + " fails: " + fault[loser]);
}

template <class T, class Check>
std::optional<Fault> Judge::read(const Question& q, int party, T& answer, const Check& check) {
  const auto at = static_cast<size_t>(q.round - 1);
  const std::optional<Answer> given = (*party_[party])(q, most_bytes(s_, q));
  const bool good = given && given->fault.empty();
  if (good) given_[party].push_back(sha256(given->text));
  const std::vector<Digest> then = !asked_ ? std::vector<Digest>{}
                                   : party ? asked_->answered_b
                                           : asked_->answered_a;
  if (at < then.size() && (!good || given_[party][at] != then[at]))
    return "it changed its answer of round " + std::to_string(q.round) + " after the judge had read it";
  if (!given) {
    if (!close_) return std::nullopt;
    return "it gave no answer in round " + std::to_string(q.round);
  }
  if (!good) return given->fault;
  auto parsed = parse_as<T>(given->text, given->name);
  if (!parsed) return parsed.error().message;
  answer = *std::move(parsed);
  if (const OtherComputation other = compare(answer.of, s_.of); !other.member.empty())
    return given->name + ": computation." + other.member + ": " + other.a + ", and the judge has " + other.b;
  const Fault fault = check(answer, party);
  return fault.empty() ? fault : given->name + ": " + fault;
}

template <class T, class Check>
std::optional<Ruling> Judge::read_both(const Question& q, T (&answer)[2], const Check& check) {
  Fault fault[2];
  for (int p = 0; p < 2; ++p) {
    const std::optional<Fault> found = read(q, p, answer[p], check);
    if (!found) return Ruling(q);
    fault[p] = *found;
  }
  return decide_on(fault);
}

Fault Judge::check_trace(const Trace& t) const {
  const std::vector<TracedValue> mine = results_of(s_);
  if (t.values.size() != mine.size())
    return "values: " + std::to_string(t.values.size()) + " of them, and the plan has " +
           std::to_string(mine.size());
  for (size_t i = 0; i < mine.size(); ++i) {
    const TracedValue &theirs = t.values[i], &own = mine[i];
    if (theirs.value != own.value || theirs.node != own.node || theirs.operation != own.operation ||
        theirs.dtype != own.dtype || theirs.shape != own.shape)
      return "values[" + std::to_string(i) + "]: it is not value " + std::to_string(own.value) +
             " of the plan, " + own.operation;
  }
  return {};
}

Fault Judge::check_values(const Values& v, const Question& q, const Rows& committed) {
  if (v.value != q.value || v.row != q.row || v.dtype != name_of(value(v.value).dtype))
    return "value, row and dtype are not those that were asked for";
  if (static_cast<int64_t>(v.result.size()) != row_bytes(value(v.value)) ||
      hashed(v.result) != committed.rows[static_cast<size_t>(v.row)])
    return "result: its digest is not that of row " + std::to_string(v.row) + " of the round before";
  const Needed needed = needed_for(s_, static_cast<int>(v.value), v.row);
  if (v.operands.size() != needed.values.size())
    return "operands: " + std::to_string(v.operands.size()) + " of them, and " +
           std::to_string(needed.values.size()) + " are needed";
  for (size_t i = 0; i < v.operands.size(); ++i) {
    const OperandRows& o = v.operands[i];
    const std::string place = "operands[" + std::to_string(i) + "]";
    if (o.value != needed.values[i] || o.first != needed.first ||
        static_cast<int64_t>(o.rows.size()) != v.row - needed.first + 1)
      return place + ": not the rows " + std::to_string(needed.first) + " to " + std::to_string(v.row) +
             " of value " + std::to_string(needed.values[i]);
    std::vector<Digest> digests;
    for (const std::string& row : o.rows) {
      if (static_cast<int64_t>(row.size()) != row_bytes(value(o.value)))
        return place + ": a row of " + std::to_string(row.size()) + " bytes";
      digests.push_back(hashed(row));
    }
    const auto& values = trace_[0].values;  // here both agree
    const auto traced =
        std::find_if(values.begin(), values.end(), [&](const TracedValue& t) { return t.value == o.value; });
    const auto root =
        root_of_range(digests, static_cast<size_t>(o.first), static_cast<size_t>(s_.of.positions), o.proof);
    if (root != traced->root)
      return place + ": its rows and its proof do not give the root on which both parties agree";
  }
  return {};
}

Result<Ruling> Judge::rule_on_value(size_t at) {
  const TracedValue& traced = trace_[0].values[at];
  const Question ask_rows = ask(2, "rows", traced.value);
  Rows list[2];
  if (auto ruling = read_both(ask_rows, list, [&](const Rows& r, int party) -> Fault {
        if (r.value != traced.value) return "value: it is not the one that was asked for";
        verdict_.cost.bytes_hashed += r.rows.size() * 2 * sizeof(Digest);
        if (static_cast<int64_t>(r.rows.size()) != s_.of.positions ||
            merkle_root(r.rows) != trace_[party].values[at].root)
          return "rows: their root is not that of the trace";
        return {};
      }))
    return *ruling;
  const auto differs = std::mismatch(list[0].rows.begin(), list[0].rows.end(), list[1].rows.begin()).first;
  const Question ask_values = ask(3, "values", traced.value, differs - list[0].rows.begin());
  Values answer[2];
  if (auto ruling = read_both(ask_values, answer, [&](const Values& v, int party) {
        return check_values(v, ask_values, list[party]);
      }))
    return *ruling;
  return rule_on_element(traced, answer);
}

Result<Ruling> Judge::rule_on_element(const TracedValue& traced, const Values (&answer)[2]) {
  const DType dtype = value(traced.value).dtype;
  const int64_t element = first_difference(dtype, answer[0].result, answer[1].result);
  const Result<Reexecuted> computed = reexecute(s_, answer[0], element);
  if (!computed && computed.error().code == Code::bad_input)
    return decide(Verdict::nobody, "the operation does not take the operands on which both agree: " +
                                       computed.error().message);
  INVAR_TRY(const Reexecuted mine, computed);
  verdict_.cost.multiply_adds += mine.multiply_adds;
  detail("operation", traced.operation + ", node " + std::to_string(traced.node) + ", value " +
                          std::to_string(traced.value));
  detail("layer", results_of(s_)[static_cast<size_t>(&traced - trace_[0].values.data())].origin);
  detail("position", std::to_string(answer[0].row));
  detail("element", std::to_string(element));
  bool right[2];
  for (int p = 0; p < 2; ++p) {
    const std::string_view theirs = element_of(dtype, answer[p].result, element);
    right[p] = theirs == mine.element;
    detail(kParty[p], element_text(dtype, theirs));
  }
  detail("judge", element_text(dtype, mine.element) + ", by the reference kernel");
  if (!right[0] && !right[1]) return decide(Verdict::nobody, "neither element is what the operation gives");
  return decide(
      right[0] ? Verdict::a : Verdict::b,
      std::string("the element of party ") + kParty[right[0] ? 1 : 0] + " is not what the operation gives");
}

Fault Judge::check_objection(const Objection& o) const {
  const auto steps = static_cast<int64_t>(s_.receipt.tokens.size());
  if (o.step < 0) return {};
  if (o.step >= steps)
    return "step: " + std::to_string(o.step) + ", and the answer has " + std::to_string(steps) + " steps";
  const auto row = static_cast<size_t>(s_.of.positions - steps + o.step);
  const Digest digest = sha256(o.logits);
  int logits = -1;
  for (const plan::Port& p : s_.plan.outputs)
    if (p.name == "logits") logits = p.value;
  for (const TracedValue& t : trace_[0].values)
    if (t.value == logits && static_cast<int64_t>(o.logits.size()) == row_bytes(value(logits)) &&
        root_of_range({&digest, 1}, row, static_cast<size_t>(s_.of.positions), o.proof) == t.root)
      return {};
  return "logits: row and proof do not give the root on which both parties agree";
}

// Both traces are equal. Party b says where the receipt does not follow from them.
Ruling Judge::rule_on_receipt() {
  Objection objection;
  const Question q = ask(2, "objection");
  const std::optional<Fault> found =
      read(q, 1, objection, [this](const Objection& o, int) { return check_objection(o); });
  if (!found) return q;
  if (!found->empty()) return decide(Verdict::a, "both traces are equal, and party b fails: " + *found);
  if (objection.step < 0)
    return decide(Verdict::a,
                  "both traces are equal, and party b names no step at which the receipt does not follow");
  const auto step = static_cast<size_t>(objection.step);
  detail("step", std::to_string(step));
  std::vector<float> row(objection.logits.size() / sizeof(float));
  copy_little_endian(row.data(), objection.logits.data(), objection.logits.size(), sizeof(float));
  verdict_.cost.multiply_adds += row.size();
  const std::string index = "[" + std::to_string(step) + "]";
  if (hashed(objection.logits) != s_.receipt.logits[step])
    return decide(Verdict::b,
                  "the receipt does not follow from the trace on which both agree: output.logits" + index);
  const auto token = receipt::pick_token(s_.receipt, row, step);
  if (!token || *token != s_.receipt.tokens[step])
    return decide(Verdict::b,
                  "the receipt does not follow from the trace on which both agree: output.tokens" + index);
  return decide(Verdict::a,
                "both traces are equal, and the receipt follows from them at the step that party b names");
}

Result<Ruling> Judge::rule() {
  if (auto ruling =
          read_both(ask(1, "trace"), trace_, [this](const Trace& t, int) { return check_trace(t); }))
    return *ruling;
  for (size_t i = 0; i < trace_[0].values.size(); ++i)
    if (trace_[0].values[i].root != trace_[1].values[i].root) return rule_on_value(i);
  return rule_on_receipt();
}

}  // namespace

std::optional<Answer> Answers::operator()(const Question& q, uint64_t most) const {
  const auto at = static_cast<size_t>(q.round - 1);
  if (at >= texts.size()) return std::nullopt;
  if (texts[at].size() > most) return Answer{names[at], {}, names[at] + ": larger than an answer may be"};
  return Answer{names[at], texts[at], {}};
}

uint64_t most_bytes(const Subject& s, const Question& q) {
  constexpr uint64_t kFile = 1 << 16, kValue = 1 << 10, kDigest = 1 << 7, kProof = 1 << 14;
  constexpr uint64_t kEscape = 6, kByte = 4;  // of text and of hexadecimal bytes, with white space
  const auto row = [&](int value) {
    return kDigest + kByte * static_cast<uint64_t>(row_bytes(s.plan.values[static_cast<size_t>(value)]));
  };
  uint64_t most = kFile;
  if (q.asks == "trace") {
    for (const TracedValue& v : results_of(s))
      most += kValue + kEscape * (v.operation.size() + v.origin.size());
  } else if (q.asks == "rows") {
    most += kDigest * static_cast<uint64_t>(s.of.positions);
  } else if (q.asks == "values") {
    most += row(static_cast<int>(q.value));
    const Needed needed = needed_for(s, static_cast<int>(q.value), q.row);
    for (const int operand : needed.values)
      most += kProof + row(operand) * static_cast<uint64_t>(q.row - needed.first + 1);
  } else {
    for (const plan::Port& p : s.plan.outputs)
      if (p.name == "logits") most += row(p.value);
  }
  return most;
}

Result<Ruling> judge(const Subject& s, const Party& a, const Party& b, const Question* asked, bool close) {
  return Judge(s, a, b, asked, close).rule();
}

std::string report(const Verdict& v) {
  std::string text = v.winner == Verdict::nobody ? "NEITHER PARTY IS RIGHT"
                     : v.winner == Verdict::a    ? "PARTY A IS RIGHT"
                                                 : "PARTY B IS RIGHT";
  text += "\n";
  auto row = [&](std::string what, const std::string& how) {
    what.resize(std::max<size_t>(what.size(), 9), ' ');
    text += "  " + what + " " + printable(how) + "\n";
  };
  row("reason", v.reason);
  for (const auto& [what, how] : v.details) row(what, how);
  row("work", std::to_string(v.cost.multiply_adds) + " multiply-adds of the run's " +
                  std::to_string(v.cost.run_multiply_adds) + ", " + std::to_string(v.cost.bytes_hashed) +
                  " bytes hashed");
  return text;
}

}  // namespace invar::dispute
