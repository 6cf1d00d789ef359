#include "run/partitions/decoder_ports.h"

#include "plan/encoder_part.h"

namespace invar::run {

DecoderPorts find_ports(const plan::Plan& plan, const std::vector<DecoderInput>& inputs) {
  DecoderPorts ports;
  for (const DecoderInput& i : inputs) {
    if (i.kind == DecoderInput::Kind::ids) ports.ids = i.value;
    if (i.kind == DecoderInput::Kind::positions) ports.positions = i.value;
    if (i.kind == DecoderInput::Kind::lengths) ports.lengths = i.value;
    if (i.kind == DecoderInput::Kind::hidden) ports.hidden = i.value;
  }
  for (const plan::Port& o : plan.outputs)
    if (o.name == "logits") ports.logits = o.value;
  return ports;
}

// Whether a row of a step has `row` elements of the value, for every number of rows.
static bool is_per_row(const plan::Plan& plan, int v, int64_t row) {
  int64_t constant = 1;
  int seq = 0;
  for (const plan::DimRef& d : plan.values[v].shape) {
    if (d.symbol < 0) {
      if (d.value < 0 || __builtin_mul_overflow(constant, d.value, &constant)) return false;
    } else if (plan.symbols[d.symbol] == DimExpr::symbol("seq")) {
      ++seq;
    } else if (plan.symbols[d.symbol] != DimExpr::symbol("batch")) {
      return false;
    }
  }
  return seq == 1 && constant == row;
}

Result<int64_t> check_ports(const plan::Plan& plan, const DecoderPorts& ports, bool whole) {
  for (const plan::Port& i : plan.inputs) {
    if (whole) break;
    if (i.name.starts_with(plan::kFromEncoder)) continue;
    if (i.name == plan::kSourceLengths) {
      if (plan.values[i.value].dtype != DType::i64 || plan.values[i.value].shape.size() != 1)
        return bad_input("the plan's input '" + i.name + "' is not i64 [batch]");
      continue;
    }
    if (i.value == ports.hidden) continue;
    if (plan.values[i.value].dtype != DType::i64 || !is_per_row(plan, i.value, 1))
      return bad_input("the plan's input '" + i.name + "' is not i64 [batch, seq]");
  }
  if (ports.logits < 0) return bad_input("the plan has no output 'logits'");
  const plan::Value& out = plan.values[ports.logits];
  int64_t vocab = 0;
  if (!out.shape.empty() && out.shape.back().symbol < 0) vocab = out.shape.back().value;
  if (out.dtype != DType::f32 || vocab < 1 || vocab > INT32_MAX ||
      (!whole && !is_per_row(plan, ports.logits, vocab)))
    return bad_input("the plan's output 'logits' is not f32 [batch, seq, vocabulary]");
  return vocab;
}

}  // namespace invar::run
