// A node of a plan in steps of the judge's choice, by the reference kernel, see reexecute.h.
#include "dispute/reexecute/reexecute.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "base/endian.h"
#include "base/opset.h"
#include "device/memory.h"
#include "kernels/registry.h"
#include "num/env.h"
#include "plan/encoder_part.h"
#include "run/function.h"
#include "weights/weight_file.h"

namespace invar::dispute {
namespace {

// An operand's rows; or all of it, where it has no rows but a shape of its own.
struct Known {
  std::string bytes;
  std::vector<int64_t> whole = {};
};
using KnownValues = std::map<int, Known>;

// The node with its operands in memory.
class ReferenceNode {
 public:
  static Result<ReferenceNode> make(const plan::Plan&, const plan::Node&);
  Status load(const Subject&);
  // Memory for the positions up to and with `last`.
  void remember(int64_t last) { capacity_ = last + 1; }
  // Binds the rows [first, first + count) of the operands, which `known` has from row `from` on.
  Status bind(const KnownValues& known, int64_t from, int64_t first, int64_t count);
  // Computes the first phase, in which an operation with memory appends.
  void append();
  // Computes until element `element` of result `out` is there; returns its bytes.
  std::string compute(size_t out, int64_t element, uint64_t of_all, uint64_t& multiply_adds);

 private:
  ReferenceNode(const plan::Plan& p, const plan::Node& n, const ops::CpuKernel& k)
      : plan_(p), node_(n), kernel_(k), in_(n.in.size()), out_(n.out.size()) {}
  Result<ops::View> copy_of(DType, std::vector<int64_t> shape, const char* bytes);
  ops::Call call() const;
  void run_units(const ops::Call& c, int phase, int64_t begin, int64_t end) {
    if (begin < end) kernel_.run(c, phase, begin, end, scratch_.data());
  }

  const plan::Plan& plan_;
  const plan::Node& node_;
  const ops::CpuKernel& kernel_;
  std::vector<ops::View> in_, out_;
  std::vector<Allocation> memory_;
  Allocation state_, scratch_, shared_;
  ops::Sequence sequence_{0, 0};
  int64_t capacity_ = 0;
};

Result<ReferenceNode> ReferenceNode::make(const plan::Plan& plan, const plan::Node& node) {
  const ops::CpuKernel* const kernel = ops::find_cpu_kernel(node.op, "reference");
  if (!kernel) return not_covered(node.op + ": this build has no reference kernel of it");
  return ReferenceNode(plan, node, *kernel);
}

// Bytes are little-endian.
Result<ops::View> ReferenceNode::copy_of(DType dtype, std::vector<int64_t> shape, const char* bytes) {
  ops::View view{nullptr, dtype, static_cast<int>(shape.size())};
  std::copy(shape.begin(), shape.end(), view.dim);
  const size_t size = static_cast<size_t>(view.elements()) * size_of(dtype);
  INVAR_TRY(Allocation own, Allocation::make(size, "a disputed operation"));
  if (bytes) copy_little_endian(own.data(), bytes, size, size_of(dtype));
  view.data = own.data();
  memory_.push_back(std::move(own));
  return view;
}

Status ReferenceNode::load(const Subject& own) {
  for (size_t i = 0; i < in_.size(); ++i) {
    if (node_.in[i].kind != plan::Operand::weight) continue;
    const plan::Weight& w = plan_.weights[static_cast<size_t>(node_.in[i].index)];
    INVAR_TRY(const auto file, weights::WeightFile::open(own.folder + "/" + w.file));
    std::string bytes;
    bool right = w.offset <= file.size() && w.length <= file.size() - w.offset;
    if (right) {
      bytes.resize(w.length);
      INVAR_CHECK_OK(file.copy(w.offset, w.length, reinterpret_cast<std::byte*>(bytes.data())));
      right = (own.options.hashed && file.is_known(*own.options.hashed, w.offset, w.length, w.sha256)) ||
              sha256(bytes) == w.sha256;
    }
    if (!right) return Error{Code::failed, "weight " + w.name + " in " + w.file + " is not that of the plan"};
    INVAR_TRY(in_[i], copy_of(w.dtype, w.shape, bytes.data()));
  }
  return {};
}

Status ReferenceNode::bind(const KnownValues& known, int64_t from, int64_t first, int64_t count) {
  for (size_t i = 0; i < in_.size(); ++i) {
    const plan::Operand& o = node_.in[i];
    if (o.kind != plan::Operand::value) continue;
    const plan::Value& v = plan_.values[static_cast<size_t>(o.index)];
    const auto& [bytes, whole] = known.at(o.index);
    if (!whole.empty()) {
      INVAR_TRY(in_[i], copy_of(v.dtype, whole, bytes.data()));
      continue;
    }
    const auto at = static_cast<size_t>((first - from) * row_bytes(v));
    if (at + static_cast<size_t>(count * row_bytes(v)) > bytes.size())
      return Error{Code::internal, "rows of value " + std::to_string(o.index) + " are missing"};
    INVAR_TRY(in_[i], copy_of(v.dtype, shape_of_rows(v, count), bytes.data() + at));
  }
  for (size_t i = 0; i < out_.size(); ++i) {
    const plan::Value& v = plan_.values[static_cast<size_t>(node_.out[i])];
    INVAR_TRY(out_[i], copy_of(v.dtype, shape_of_rows(v, count), nullptr));
  }
  sequence_.past = capacity_ ? first : 0;
  const ops::Call c = call();
  const ops::OpContract& contract = *ops::contract_of(node_.op);
  if (const char* takes = contract.check(c)) return bad_input(node_.op + ": it takes " + takes);
  if (ops::OutOfBounds o; contract.find_out_of_bounds && contract.find_out_of_bounds(c, o))
    return bad_input(node_.op + ": index " + std::to_string(o.value) + " of operand " +
                     std::to_string(o.operand) + " is out of bounds");
  if (kernel_.scratch_bytes) {
    INVAR_TRY(scratch_, Allocation::make(kernel_.scratch_bytes(c), "scratch"));
  }
  if (kernel_.shared_bytes) {
    INVAR_TRY(shared_, Allocation::make(kernel_.shared_bytes(c), "memory between phases"));
  }
  if (kernel_.state_bytes && !state_.size()) {  // without a state of the plan: within the step
    INVAR_TRY(state_, Allocation::make(kernel_.state_bytes(c, capacity_), "memory between steps"));
  }
  return {};
}

ops::Call ReferenceNode::call() const {
  ops::Call c{in_, out_, &node_.attrs};
  c.shared = shared_.data();
  if (!state_.size()) return c;
  c.state = state_.data(), c.slot_bytes = state_.size();
  c.past = sequence_.past, c.capacity = capacity_, c.sequences = &sequence_;
  return c;
}

void ReferenceNode::append() {
  const ops::Call c = call();
  const int last = std::max(kernel_.phases - 1, 1);  // the results come in the last phase
  for (int phase = 0; phase < last; ++phase) run_units(c, phase, 0, kernel_.units(c, phase));
}

std::string ReferenceNode::compute(size_t out, int64_t element, uint64_t of_all, uint64_t& multiply_adds) {
  const ops::Call c = call();
  const ops::View& result = out_[out];
  const size_t width = size_of(result.dtype);
  char* const at = result.as<char>() + static_cast<size_t>(element) * width;
  const std::string unwritten(width, '\xa5');
  std::memcpy(at, unwritten.data(), width);
  const int last = kernel_.phases - 1;
  for (int phase = 0; phase < last; ++phase) run_units(c, phase, 0, kernel_.units(c, phase));
  // Units are independent, and those of most kernels follow the elements. Where the guess was
  // wrong, the element is unwritten, and all units run.
  const int64_t units = kernel_.units(c, last),
                guess = element * units / std::max<int64_t>(result.elements(), 1);
  run_units(c, last, guess, guess + 1);
  int64_t done = 1;
  if (std::memcmp(at, unwritten.data(), width) == 0) run_units(c, last, 0, done = units);
  multiply_adds = of_all * static_cast<uint64_t>(done) / static_cast<uint64_t>(std::max<int64_t>(units, 1));
  std::string bytes(width, '\0');
  copy_little_endian(bytes.data(), at, width, width);
  return bytes;
}

// What the encoder makes of the receipt's source, computed here (trace.11).
Status add_encoded(const Subject& s, const plan::Node& node, KnownValues& known) {
  const auto reads_encoded = [&](const plan::Operand& o) {
    return o.kind == plan::Operand::value && s.is_encoded(o.index);
  };
  if (std::ranges::none_of(node.in, reads_encoded)) return {};
  INVAR_TRY(plan::EncoderSplit split, plan::split_encoder(s.plan));
  const std::vector<int> made = split.encoder.outputs;
  INVAR_TRY(run::Function encoder, run::Function::open(std::move(split.encoder.plan), s.folder, s.options));
  const std::vector<int64_t> ids(s.receipt.prompt_tokens.begin(), s.receipt.prompt_tokens.end()),
      shape{1, static_cast<int64_t>(ids.size())};
  INVAR_TRY(const auto results, encoder.run(run::Function::NamedViews{
                                    {plan::kSourceIds, {DType::i64, shape, std::as_bytes(std::span(ids))}}}));
  for (size_t i = 0; i < made.size(); ++i) {
    const run::Tensor& t = results[i].second;
    Known& one = known[made[i]] = {std::string(t.bytes.size(), '\0'), t.shape};
    copy_little_endian(one.bytes.data(), t.bytes.data(), t.bytes.size(), size_of(t.dtype));
  }
  return {};
}

// The rows of every operand, by value: those of the file, and of the inputs those that the tokens
// give.
Result<KnownValues> operands(const Subject& s, const Values& of) {
  KnownValues known;
  const Needed needed = needed_for(s, static_cast<int>(of.value), of.row);
  for (size_t i = 0; i < needed.values.size(); ++i) {
    const int64_t bytes = row_bytes(s.plan.values[static_cast<size_t>(needed.values[i])]);
    const OperandRows o = i < of.operands.size() ? of.operands[i] : OperandRows();
    bool fits = o.value == needed.values[i] && o.first == needed.first &&
                static_cast<int64_t>(o.rows.size()) == of.row - needed.first + 1;
    for (const std::string& row : o.rows) fits &= static_cast<int64_t>(row.size()) == bytes;
    if (!fits)
      return bad_input("operands[" + std::to_string(i) + "]: not the rows " + std::to_string(needed.first) +
                       " to " + std::to_string(of.row) + " of value " + std::to_string(needed.values[i]));
    for (const std::string& row : o.rows) known[needed.values[i]].bytes += row;
  }
  INVAR_CHECK_OK(add_encoded(s, *maker_of(s, static_cast<int>(of.value)), known));
  for (const plan::Port& p : s.plan.inputs) {
    if (p.name == plan::kSourceLengths) {
      const auto length = static_cast<int64_t>(s.receipt.prompt_tokens.size());
      Known& one = known[p.value] = {std::string(sizeof length, '\0'), {1}};
      copy_little_endian(one.bytes.data(), &length, sizeof length, sizeof length);
    }
    if (plan::is_source(p) || p.name == plan::kSourceLengths) continue;
    for (int64_t row = needed.first; row <= of.row; ++row) {
      const int64_t element = p.name == "input_ids" ? s.tokens[static_cast<size_t>(row)] : row;
      char bytes[sizeof element];
      copy_little_endian(bytes, &element, sizeof element, sizeof element);
      known[p.value].bytes.append(bytes, sizeof bytes);
    }
  }
  return known;
}

}  // namespace

Result<Reexecuted> reexecute(const Subject& s, const Values& of, int64_t element) {
  const num::ArithmeticEnv env;
  const int value = static_cast<int>(of.value);
  const plan::Node* const node =
      value < static_cast<int>(s.plan.values.size()) ? maker_of(s, value) : nullptr;
  if (!node || of.row >= s.of.positions) return bad_input("value or row is not one of the plan");
  if (element < 0 || element >= row_elements(s.plan.values[static_cast<size_t>(value)]))
    return bad_input("the result is not a row of value " + std::to_string(value));
  INVAR_TRY(const auto known, operands(s, of));
  const auto out =
      static_cast<size_t>(std::find(node->out.begin(), node->out.end(), value) - node->out.begin());
  const int64_t from = needed_for(s, value, of.row).first;
  INVAR_TRY(ReferenceNode reference, ReferenceNode::make(s.plan, *node));
  if (const Status loaded = reference.load(s); !loaded) return Error{Code::failed, loaded.error().message};
  if (node->state >= 0) reference.remember(of.row);
  if (from < of.row) {
    INVAR_CHECK_OK(reference.bind(known, from, from, of.row - from));
    reference.append();
  }
  INVAR_CHECK_OK(reference.bind(known, from, of.row, 1));
  Reexecuted done;
  done.element =
      reference.compute(out, element, multiply_adds(s.plan, *node, of.row, of.row), done.multiply_adds);
  return done;
}

uint64_t multiply_adds(const plan::Plan& plan, const plan::Node& node, int64_t first, int64_t last) {
  auto row_of = [&](int v) {
    return static_cast<uint64_t>(row_elements(plan.values[static_cast<size_t>(v)]));
  };
  uint64_t in = 0, out = 0;
  for (const plan::Operand& o : node.in)
    if (o.kind == plan::Operand::value) in = std::max(in, row_of(o.index));
  for (const int v : node.out) out += row_of(v);
  const auto rows = static_cast<uint64_t>(last - first + 1);
  if (node.state >= 0) return (in + out) * (rows * static_cast<uint64_t>(first + last + 2) / 2);
  const OpInfo* const info = op_info(node.op);
  const bool contracts = info && info->numerics.starts_with("fp32");
  return rows * (contracts ? in * out : std::max(in, out));
}

}  // namespace invar::dispute
