// Control flow (plan.16): the host reads the condition, and runs a body as often as that says.
#include "run/execute/control_flow.h"

#include <algorithm>

namespace invar::run {
namespace {

// At least so much, with what is in it; more than asked for, for it grows again.
Status grow(const Setting& setting, Block& memory, size_t filled, size_t bytes) {
  if (memory.size() >= bytes) return {};
  INVAR_TRY(Block larger, Block::make(std::max(bytes, 2 * memory.size()), "what steps give", setting.device));
  ops::View old;
  old.dtype = DType::u8, old.rank = 1, old.dim[0] = static_cast<int64_t>(filled), old.data = memory.data();
  const bool there = setting.device != nullptr;
  INVAR_CHECK_OK(copy(setting, larger.data(), there, {old, there}));
  if (there && filled) {
    INVAR_CHECK_OK(setting.device->wait());  // before the old memory goes
  }
  memory = std::move(larger);
  return {};
}

std::string text_of(const ops::View& v) {
  std::string s = "[";
  for (int d = 0; d < v.rank; ++d) s += (d ? ", " : "") + std::to_string(v.dim[d]);
  return s + "]";
}

}  // namespace

Status Carried::take(const Setting& setting, const Found& from) {
  INVAR_CHECK_OK(grow(setting, memory_, 0, bytes_of(from.view)));
  found_ = {from.view, setting.device != nullptr};
  found_.view.data = memory_.data();
  return copy(setting, memory_.data(), found_.on_device, from);
}

Status Rows::add(const Setting& setting, const Found& row) {
  const ops::View& v = row.view;
  if (count_ == 0) row_ = v;
  if (!std::equal(v.dim, v.dim + v.rank, row_.dim))
    return bad_input("step " + std::to_string(count_) + " gives a value of shape " + text_of(v) +
                     ", those before it " + text_of(row_));
  const size_t bytes = bytes_of(v);
  INVAR_CHECK_OK(grow(setting, memory_, bytes_, bytes_ + bytes));
  INVAR_CHECK_OK(copy(setting, memory_.data() + bytes_, setting.device != nullptr, row));
  bytes_ += bytes, ++count_;
  return {};
}

Found Rows::all(const ops::View& row) const {
  const ops::View& one = count_ ? row_ : row;
  ops::View v = one;
  v.rank = one.rank + 1, v.dim[0] = count_, v.data = memory_.data();
  std::copy(one.dim, one.dim + one.rank, v.dim + 1);
  return {v, false};
}

Status Flow::weights_unchanged() {
  for (auto& body : bodies) INVAR_CHECK_OK(body->weights_unchanged());
  return {};
}
size_t Flow::bytes() const {
  size_t bytes = 0;
  for (const auto& body : bodies) bytes += body->bytes();
  for (const Carried& value : carried) bytes += value.bytes();
  for (const Rows& all : rows) bytes += all.bytes();
  return bytes;
}

Status Scope::open_flow(int at, std::vector<plan::Parts>& cut) {
  const plan::Node& n = node(at);
  auto flow = std::make_unique<Flow>(Flow{n, numbers_[static_cast<size_t>(at)]});
  for (int body : n.bodies) {
    INVAR_TRY(std::unique_ptr<Scope> scope, open(plan_, cut, body, setting_));
    flow->bodies.push_back(std::move(scope));
  }
  if (n.op == "loop")
    flow->goes_on = flow->bodies[0]->unchanging(plan_.bodies[static_cast<size_t>(n.bodies[0])].outputs[0]);
  flows_[at] = std::move(flow);
  return {};
}

// The memory of results is that of the flow, or of the body that ran: nobody writes it until the node runs again.
Status Scope::run_flow(int at, std::vector<int64_t>& sizes) {
  Flow& flow = *flows_.at(at);
  const plan::Node& n = flow.node;
  const auto named = [&](const Status& s) {
    return s ? s
             : Status(Error{s.error().code, plan::text_of(n.origin) + "operation " +
                                                std::to_string(flow.number) + " of the plan, " + n.op + ": " +
                                                s.error().message});
  };
  if (n.op == "loop") {
    if (Status s = loop(flow, sizes); !s) return named(s);
  } else {
    INVAR_TRY(const uint8_t condition, read<uint8_t>(n.in[0].index));
    const size_t chosen = condition ? 0 : 1;
    const plan::Body& body = plan_.bodies[static_cast<size_t>(n.bodies[chosen])];
    for (size_t i = 1; i < n.in.size(); ++i)
      flow.bodies[chosen]->give(body.inputs[i - 1], value(n.in[i].index));
    if (Status s = flow.bodies[chosen]->call(sizes); !s) return named(s);
    for (size_t i = 0; i < n.out.size(); ++i) give(n.out[i], flow.bodies[chosen]->value(body.outputs[i]));
  }
  return named(take_sizes(n.out, "its results", sizes));
}

Status Scope::loop(Flow& flow, std::vector<int64_t>& sizes) {
  const plan::Node& n = flow.node;
  const plan::Body& body = plan_.bodies[static_cast<size_t>(n.bodies[0])];
  Scope& steps = *flow.bodies[0];
  const auto count = static_cast<size_t>(n.attrs.i("carried", 0));
  flow.carried.resize(count), flow.rows.resize(n.out.size() - count);
  for (Rows& rows : flow.rows) rows.clear();
  INVAR_TRY(const int64_t trips, read<int64_t>(n.in[0].index));
  INVAR_TRY(uint8_t again, read<uint8_t>(n.in[1].index));
  ops::View number;
  number.dtype = DType::i64, number.dim[0] = 1, number.data = &flow.step;
  number.rank = static_cast<int>(plan_.values[body.inputs[0]].shape.size());
  for (size_t i = 0; i < count; ++i) INVAR_CHECK_OK(flow.carried[i].take(setting_, value(n.in[2 + i].index)));
  steps.give(body.inputs[0], {number, false});
  for (size_t i = 2 + count; i < n.in.size(); ++i) steps.give(body.inputs[i - 1], value(n.in[i].index));
  bool alike = false;  // it has the shapes of the step before it
  for (flow.step = 0; flow.step < trips && again; ++flow.step) {
    for (size_t i = 0; i < count; ++i) steps.give(body.inputs[1 + i], flow.carried[i].found());
    INVAR_CHECK_OK(alike ? steps.call_again() : steps.call(sizes));
    if (flow.step == 0 || !flow.goes_on) {  // a GPU would be waited for
      INVAR_TRY(again, steps.read<uint8_t>(body.outputs[0]));
    }
    for (size_t i = 0; i < flow.rows.size(); ++i)
      INVAR_CHECK_OK(flow.rows[i].add(setting_, steps.value(body.outputs[1 + count + i])));
    alike = steps.repeats();
    for (size_t i = 0; i < count; ++i) {
      const Found next = steps.value(body.outputs[1 + i]);
      alike &= flow.carried[i].has_shape(next.view);
      INVAR_CHECK_OK(flow.carried[i].take(setting_, next));
    }
  }
  for (size_t i = 0; i < count; ++i) give(n.out[i], flow.carried[i].found());
  for (size_t i = 0; i < flow.rows.size(); ++i) {
    const plan::Value& out = plan_.values[n.out[count + i]];
    ops::View row;  // of a loop without steps: what is not known is 0
    row.dtype = out.dtype, row.rank = static_cast<int>(out.shape.size()) - 1;
    for (size_t d = 1; d < out.shape.size(); ++d)
      row.dim[d - 1] = out.shape[d].symbol < 0
                           ? out.shape[d].value
                           : std::max<int64_t>(setting_.symbols.size(out.shape[d].symbol, sizes), 0);
    Found all = flow.rows[i].all(row);
    all.on_device = setting_.device != nullptr;
    give(n.out[count + i], all);
  }
  return {};
}

}  // namespace invar::run
