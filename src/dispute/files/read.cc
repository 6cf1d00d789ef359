// Reading exchange files, see exchange.h.
#include "dispute/exchange.h"
#include "dispute/files/place.h"

namespace invar::dispute {
namespace {

constexpr int64_t kMost = int64_t{1} << 31;  // positions, values, rows

Computation computation_of(const Place& p) {
  p.members({"receipt", "weights", "program", "plan", "tokens", "numerics", "positions"});
  return {p["receipt"].digest(), p["weights"].digest(), p["program"].digest(),           p["plan"].digest(),
          p["tokens"].digest(),  p["numerics"].text(),  p["positions"].integer(1, kMost)};
}

template <class Read>
auto list_of(const Place& p, const Read& read) {
  std::vector<decltype(read(p))> list;
  for (size_t i = 0, n = p.size(); i < n; ++i) list.push_back(read(p[i]));
  return list;
}
std::vector<Digest> digests_of(const Place& p) {
  return list_of(p, [](const Place& d) { return d.digest(); });
}

Trace trace_of(const Place& p) {
  p.members({"schema", "computation", "values"});
  return {computation_of(p["computation"]), list_of(p["values"], [](const Place& v) {
            v.members({"value", "node", "operation", "origin", "dtype", "shape", "root"});
            return TracedValue{v["value"].integer(0, kMost),
                               v["node"].integer(0, kMost),
                               v["operation"].text(),
                               v["origin"].text(),
                               v["dtype"].text(),
                               list_of(v["shape"], [](const Place& d) { return d.integer(0); }),
                               v["root"].digest()};
          })};
}

Rows rows_of(const Place& p) {
  p.members({"schema", "computation", "value", "rows"});
  return {computation_of(p["computation"]), p["value"].integer(0, kMost), digests_of(p["rows"])};
}

Values values_of(const Place& p) {
  p.members({"schema", "computation", "value", "row", "dtype", "result", "operands"});
  return {computation_of(p["computation"]),
          p["value"].integer(0, kMost),
          p["row"].integer(0, kMost),
          p["dtype"].text(),
          p["result"].bytes(),
          list_of(p["operands"], [](const Place& o) {
            o.members({"value", "first", "rows", "proof"});
            return OperandRows{o["value"].integer(0, kMost), o["first"].integer(0, kMost),
                               list_of(o["rows"], [](const Place& r) { return r.bytes(); }),
                               digests_of(o["proof"])};
          })};
}

Objection objection_of(const Place& p) {
  p.members({"schema", "computation", "step", "logits", "proof"});
  return {computation_of(p["computation"]), p["step"].integer(-1, kMost), p["logits"].bytes(),
          digests_of(p["proof"])};
}

Question question_of(const Place& p) {
  p.members({"schema", "computation", "round_number", "asks", "value", "row", "answered"});
  const Place answered = p["answered"];
  answered.members({"a", "b"});
  Question q{computation_of(p["computation"]), p["round_number"].integer(1, 3), p["asks"].text(),
             p["value"].integer(-1, kMost),    p["row"].integer(-1, kMost),     digests_of(answered["a"]),
             digests_of(answered["b"])};
  if (q.asks != "trace" && q.asks != "rows" && q.asks != "values" && q.asks != "objection")
    p["asks"].wrong("expected trace, rows, values or objection, found " + json::quote(json::brief(q.asks)));
  if ((q.asks == "rows" || q.asks == "values") && q.value < 0) p["value"].wrong("no value is named");
  if (q.asks == "values" && q.row < 0) p["row"].wrong("no row is named");
  return q;
}

}  // namespace

std::string_view kind_of(const Exchange& e) {
  constexpr std::string_view names[] = {"a trace", "a list of rows", "values of a row", "an objection",
                                        "a question"};
  return names[e.index()];
}

Result<Exchange> parse(std::string_view text, const std::string& name) {
  INVAR_TRY(const json::Value value, json::parse(text, name));
  Place::File file{name, {}};
  const Place top(file, &value, "");
  const std::string schema = top["schema"].text();
  Exchange read;
  if (schema == "invar-trace 1") {
    read = trace_of(top);
  } else if (schema == "invar-rows 1") {
    read = rows_of(top);
  } else if (schema == "invar-values 1") {
    read = values_of(top);
  } else if (schema == "invar-objection 1") {
    read = objection_of(top);
  } else if (schema == "invar-question 1") {
    read = question_of(top);
  } else {
    top["schema"].wrong(
        "expected invar-trace 1, invar-rows 1, invar-values 1, invar-objection 1 or "
        "invar-question 1, found " +
        json::quote(json::brief(schema)));
  }
  if (file.error) return *file.error;
  return read;
}

}  // namespace invar::dispute
