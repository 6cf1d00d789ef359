// The forward pass of a trace and the answers that come from it, see trace.h.
#include "dispute/trace.h"

#include <algorithm>

#include "base/endian.h"
#include "plan/encoder_part.h"

namespace invar::dispute {
namespace {

// [batch, seq, constants...], where batch may be 1, or [batch * seq, constants...].
bool has_rows(const plan::Plan& plan, const plan::Value& v) {
  const DimExpr one = 1, batch = DimExpr::symbol("batch"), seq = DimExpr::symbol("seq");
  const auto is = [&](size_t axis, const DimExpr& size) {
    if (axis >= v.shape.size()) return false;
    const plan::DimRef& d = v.shape[axis];
    return (d.symbol < 0 ? DimExpr(d.value) : plan.symbols[static_cast<size_t>(d.symbol)]) == size;
  };
  const int leading = (is(0, batch) || is(0, one)) && is(1, seq)  ? 2
                      : is(0, seq) || is(0, *product(batch, seq)) ? 1
                                                                  : 0;
  return leading > 0 && std::all_of(v.shape.begin() + leading, v.shape.end(),
                                    [](const plan::DimRef& d) { return d.symbol < 0; });
}

bool is_input(const plan::Plan& plan, int value) {
  return std::ranges::any_of(plan.inputs, [&](const plan::Port& p) { return p.value == value; });
}

// Subject::encoded
Result<std::vector<bool>> encoded_values(const plan::Plan& plan) {
  if (!plan::has_encoder(plan)) return std::vector<bool>();
  INVAR_TRY(const plan::EncoderSplit split, plan::split_encoder(plan));
  std::vector<bool> encoded(plan.values.size(), true);
  for (const plan::Port& p : plan.inputs) encoded[static_cast<size_t>(p.value)] = false;
  for (const int n : split.decoder.node_numbers)
    for (const int v : plan.nodes[static_cast<size_t>(n)].out) encoded[static_cast<size_t>(v)] = false;
  return encoded;
}

Digest digest_of(const std::vector<int32_t>& tokens) {
  std::string bytes(tokens.size() * sizeof(int32_t), '\0');
  copy_little_endian(bytes.data(), tokens.data(), bytes.size(), sizeof(int32_t));
  return sha256(bytes);
}

int logits_of(const plan::Plan& plan) {
  for (const plan::Port& p : plan.outputs)
    if (p.name == "logits") return p.value;
  return -1;
}

Status check_result(const Subject& s, int64_t value) {
  if (value < static_cast<int64_t>(s.plan.values.size()) && maker_of(s, static_cast<int>(value))) return {};
  return bad_input("value " + std::to_string(value) + " is no result of the plan, whose results are " +
                   std::to_string(s.plan.nodes.front().out.front()) + " to " +
                   std::to_string(s.plan.values.size() - 1) +
                   (s.encoded.empty() ? "" : ", without those of its encoder"));
}

}  // namespace

Result<Subject> subject_of(receipt::Receipt r, const receipt::Receipt& mine, plan::Plan plan,
                           std::string folder, run::Options options) {
  if (r.tokens.empty()) return bad_input("the receipt has no answer, so there is nothing to trace");
  if (r.audio != Digest{})
    return not_covered(
        "the answer is to a recording, and traces are of tokens: `invar verify` computes it again");
  INVAR_TRY(std::vector<bool> encoded, encoded_values(plan));
  for (size_t v = 0; v < plan.values.size(); ++v) {
    const bool read = encoded.empty() || !(encoded[v] || is_input(plan, static_cast<int>(v)));
    if (!plan.bodies.empty() || (read && !has_rows(plan, plan.values[v])))
      return not_covered("value " + std::to_string(v) +
                         " of the plan has no row for each position, so it cannot be traced");
  }
  Subject s{std::move(r), std::move(plan), std::move(folder), std::move(options), {}, {}, std::move(encoded)};
  s.tokens = s.receipt.continued();
  s.tokens.insert(s.tokens.end(), s.receipt.tokens.begin(), s.receipt.tokens.end() - 1);
  s.options.capacity = static_cast<int64_t>(s.tokens.size());
  s.of = {receipt::receipt_hash(s.receipt),
          mine.weights,
          mine.program,
          plan::digest(s.plan),
          digest_of(s.tokens),
          mine.numerics,
          s.options.capacity};
  return s;
}

int64_t row_elements(const plan::Value& v) {
  int64_t n = 1;
  for (const plan::DimRef& d : v.shape) n *= d.symbol < 0 ? d.value : 1;
  return n;
}
std::vector<int64_t> shape_of_rows(const plan::Value& v, int64_t rows) {
  std::vector<int64_t> shape;
  auto open = std::ranges::count_if(v.shape, [](const plan::DimRef& d) { return d.symbol >= 0; });
  for (const plan::DimRef& d : v.shape) shape.push_back(d.symbol < 0 ? d.value : --open ? 1 : rows);
  return shape;
}
int64_t row_bytes(const plan::Value& v) {
  return row_elements(v) * static_cast<int64_t>(size_of(v.dtype));
}

const plan::Node* maker_of(const Subject& s, int value) {
  if (value < 0 || s.is_encoded(value)) return nullptr;
  for (const plan::Node& n : s.plan.nodes)
    if (std::find(n.out.begin(), n.out.end(), value) != n.out.end()) return &n;
  return nullptr;
}

std::vector<TracedValue> results_of(const Subject& s) {
  std::vector<TracedValue> all;
  for (size_t n = 0; n < s.plan.nodes.size(); ++n) {
    const plan::Node& node = s.plan.nodes[n];
    const std::string origin =
        node.origin.op + (node.origin.op.empty() || node.origin.name.empty() ? "" : " ") + node.origin.name;
    for (const int v : node.out) {
      if (s.is_encoded(v)) continue;
      const plan::Value& value = s.plan.values[static_cast<size_t>(v)];
      all.push_back({v,
                     static_cast<int64_t>(n),
                     node.op + "." + std::to_string(node.version),
                     origin,
                     std::string(name_of(value.dtype)),
                     shape_of_rows(value, s.of.positions),
                     {}});
    }
  }
  return all;
}

Needed needed_for(const Subject& s, int value, int64_t row) {
  Needed needed{{}, row};
  const plan::Node* const node = maker_of(s, value);
  for (const plan::Operand& o : node->in)
    if (o.kind == plan::Operand::value && maker_of(s, o.index)) needed.values.push_back(o.index);
  std::sort(needed.values.begin(), needed.values.end());
  needed.values.erase(std::unique(needed.values.begin(), needed.values.end()), needed.values.end());
  if (node->state >= 0) needed.first = 0;
  return needed;
}

void Recorder::add(const run::NodeResults& r) {
  const plan::Node& node = plan_.nodes[r.node];
  for (size_t o = 0; o < r.out.size(); ++o) {
    const int v = node.out[o];
    const int64_t elements = row_elements(plan_.values[static_cast<size_t>(v)]);
    const auto bytes = static_cast<size_t>(elements) * size_of(r.out[o].dtype);
    const auto kept = kept_.find(v);
    const auto listed = digests_.find(v);
    if (roots_.empty() && kept == kept_.end() && listed == digests_.end()) continue;
    std::string row(bytes, '\0');
    const int64_t count = elements ? r.out[o].elements() / elements : 0;
    for (int64_t i = 0; i < count; ++i) {
      copy_little_endian(row.data(), r.out[o].as<const char>() + static_cast<size_t>(i) * bytes, bytes,
                         size_of(r.out[o].dtype));
      const Digest digest = sha256(row);
      if (!roots_.empty()) roots_[static_cast<size_t>(v)].add(digest);
      if (listed != digests_.end()) listed->second.push_back(digest);
      if (kept != kept_.end() && r.past + i >= kept->second.first.first &&
          r.past + i <= kept->second.first.last)
        kept->second.second.push_back(row);
    }
  }
}

Status record(const Subject& s, Recorder& recorder, const Observer& before) {
  run::Options options = s.options;
  options.progress = {};  // of the whole pass instead of one step
  options.observe = [&](const run::NodeResults& r) {
    if (before) before(r);
    recorder.add(r);
  };
  INVAR_TRY(run::Session session, run::Session::open(s.plan, s.folder, options));
  if (session.has_encoder()) {
    INVAR_CHECK_OK(session.encode(s.source()));
  }
  // The run goes in pieces, so that a step's activations and its logits stay bounded.
  const auto piece = static_cast<size_t>(session.chunk());
  const auto total = static_cast<int64_t>(s.tokens.size());
  for (std::span<const int32_t> rest = s.tokens; !rest.empty();
       rest = rest.subspan(std::min(piece, rest.size()))) {
    INVAR_TRY(const auto logits, session.step(rest.first(std::min(piece, rest.size())), true));
    static_cast<void>(logits);
    const auto left = static_cast<int64_t>(rest.size() - std::min(piece, rest.size()));
    if (s.options.progress) s.options.progress(total - left, total);
  }
  return session.weights_unchanged();
}

Result<Trace> trace(const Subject& s, const Observer& before) {
  Recorder recorder(s.plan);
  recorder.take_roots();
  INVAR_CHECK_OK(record(s, recorder, before));
  Trace t{s.of, results_of(s)};
  for (TracedValue& v : t.values) v.root = recorder.root(static_cast<int>(v.value));
  return t;
}

Result<Rows> rows(const Subject& s, int64_t value, const Observer& before) {
  INVAR_CHECK_OK(check_result(s, value));
  Recorder recorder(s.plan);
  recorder.list(static_cast<int>(value));
  INVAR_CHECK_OK(record(s, recorder, before));
  return Rows{s.of, value, recorder.digests(static_cast<int>(value))};
}

Result<Values> values(const Subject& s, int64_t value, int64_t row, const Observer& before) {
  INVAR_CHECK_OK(check_result(s, value));
  if (row < 0 || row >= s.of.positions)
    return bad_input("row " + std::to_string(row) + " is not one of the positions 0 to " +
                     std::to_string(s.of.positions - 1));
  const int v = static_cast<int>(value);
  const Needed needed = needed_for(s, v, row);
  Recorder recorder(s.plan);
  recorder.keep({v, row, row});
  for (const int operand : needed.values) recorder.keep({operand, needed.first, row}), recorder.list(operand);
  INVAR_CHECK_OK(record(s, recorder, before));
  Values all{s.of,
             value,
             row,
             std::string(name_of(s.plan.values[static_cast<size_t>(value)].dtype)),
             recorder.rows(v)[0],
             {}};
  for (const int operand : needed.values)
    all.operands.push_back({operand, needed.first, recorder.rows(operand),
                            range_proof(recorder.digests(operand), static_cast<size_t>(needed.first),
                                        static_cast<size_t>(row))});
  return all;
}

Result<Objection> objection(const Subject& s, const Observer& before) {
  Recorder recorder(s.plan);
  const int logits = logits_of(s.plan);
  const int64_t first = s.of.positions - static_cast<int64_t>(s.receipt.tokens.size());
  Objection found{s.of, -1, {}, {}};
  Status picked;
  auto compare_step = [&](const run::NodeResults& r) {
    if (before) before(r);
    const auto& out = s.plan.nodes[r.node].out;
    if (out.size() != 1 || out[0] != logits) return;
    const auto vocab = static_cast<size_t>(row_elements(s.plan.values[static_cast<size_t>(logits)]));
    for (int64_t i = std::max<int64_t>(first - r.past, 0); i < r.out[0].dim[1] && found.step < 0 && picked;
         ++i) {
      const std::span row(r.out[0].as<const float>() + static_cast<size_t>(i) * vocab, vocab);
      const auto step = static_cast<size_t>(r.past + i - first);
      const auto token = receipt::pick_token(s.receipt, row, step);
      if (!token) {
        picked = token.error();
      } else if (*token != s.receipt.tokens[step] || receipt::commit(row) != s.receipt.logits[step]) {
        found.step = static_cast<int64_t>(step);
        found.logits.resize(row.size_bytes());
        copy_little_endian(found.logits.data(), row.data(), row.size_bytes(), sizeof(float));
      }
    }
  };
  recorder.list(logits);
  INVAR_CHECK_OK(record(s, recorder, compare_step));
  INVAR_CHECK_OK(picked);
  const auto row = static_cast<size_t>(first + found.step);
  if (found.step >= 0) found.proof = range_proof(recorder.digests(logits), row, row);
  return found;
}

Result<std::string> answer(const Subject& s, const Question& q, const Observer& before) {
  if (const OtherComputation other = compare(q.of, s.of); !other.member.empty())
    return bad_input("the question is about another computation than this receipt and model: " +
                     other.member + " is " + other.a + " there and " + other.b + " here");
  if (q.asks == "trace") {
    INVAR_TRY(const Trace t, trace(s, before));
    return print(t);
  }
  if (q.asks == "rows") {
    INVAR_TRY(const Rows r, rows(s, q.value, before));
    return print(r);
  }
  if (q.asks == "values") {
    INVAR_TRY(const Values v, values(s, q.value, q.row, before));
    return print(v);
  }
  INVAR_TRY(const Objection o, objection(s, before));
  return print(o);
}

OtherComputation compare(const Computation& a, const Computation& b) {
  const std::pair<const char*, Digest Computation::*> digests[] = {{"receipt", &Computation::receipt},
                                                                   {"weights", &Computation::weights},
                                                                   {"program", &Computation::program},
                                                                   {"plan", &Computation::plan},
                                                                   {"tokens", &Computation::tokens}};
  if (a.weights != b.weights) return {"weights", to_hex(a.weights), to_hex(b.weights)};
  if (a.numerics != b.numerics) return {"numerics", a.numerics, b.numerics};
  for (const auto& [name, member] : digests)
    if (a.*member != b.*member) return {name, to_hex(a.*member), to_hex(b.*member)};
  if (a.positions != b.positions)
    return {"positions", std::to_string(a.positions), std::to_string(b.positions)};
  return {};
}

}  // namespace invar::dispute
