// One operation on tensors of torch, prepared once and found again by the types of its operands.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>

#include "base/opset.h"
#include "torch_tensors.h"
#include "workers.h"

namespace invar::python {

// An operation with its attributes and, where it does not follow from the operands, the type of its
// result.
class Operation {
 public:
  // A call in the graph of gradients: what autograd.About is for these operands, and which of them,
  // and of the result at the end, the backward pass reads.
  struct Node {
    uint64_t needs;  // operands that require a gradient
    nb::object about;
    std::vector<bool> kept;
  };
  // The part that calls with operands of the same types share.
  struct Prepared {
    std::shared_ptr<const run::EagerOperation> operation;
    ops::View result;  // without memory
    nb::object shape, strides;
    mutable std::deque<Node> nodes;  // references to which stay
  };
  // A call whose result exists and is not computed yet.
  struct Ready {
    std::shared_ptr<const Prepared> prepared;
    std::vector<ops::View> in;
    std::vector<nb::object> kept;  // owns the memory of `in`
    ops::View out;
    nb::object result;
    int gpu = -1;  // -1: on the host
  };

  Operation(std::string op, const nb::dict& attributes, std::string isa, std::optional<std::string> dtype,
            std::optional<std::vector<int64_t>> shape);

  // The result of these tensors of torch, computed without gradients.
  nb::object run(const nb::tuple& operands) const;
  // The call of these operands; nullopt: torch does not show the memory of one, and `must` is
  // false.
  std::optional<Ready> ready(const Torch&, const nb::tuple& operands, bool must) const;
  // Computes them, on one device; on a GPU they are queued on the current stream.
  static void compute(const Torch&, std::span<const Ready>);

  // The call and its rule of gradients, as invar.autograd has them (primitives.Call, rules.Rule).
  // Not valid: not asked for yet; a rule that is None: the result has no gradient.
  nb::object call, rule;
  nb::object handle;  // a capsule of this

 private:
  std::string named(size_t operand) const { return op_ + ": operand " + std::to_string(operand); }
  std::shared_ptr<const Prepared> prepared(std::span<const ops::View> in, int gpu) const;
  std::shared_ptr<const Prepared> prepare(std::span<const ops::View> in, int gpu) const;

  std::string op_, isa_;
  Attributes attrs_;
  std::optional<int64_t> axis_;  // an axis counted from the end
  std::optional<std::string> dtype_;
  std::optional<std::vector<int64_t>> shape_;
  mutable std::unordered_map<std::string, std::shared_ptr<const Prepared>> known_;
};

void add_operations(nb::module_&);
void add_calls(nb::module_&);  // by name, with keyword arguments and gradients (calls.cc)

}  // namespace invar::python
