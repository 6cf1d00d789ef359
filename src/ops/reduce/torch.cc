// Spells reductions in torch.
#include <algorithm>

#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

// A reduction's text is made of this.
struct Reduced {
  std::vector<int64_t> axes;
  bool keepdim, empty = false;
  std::string dims, summed;  // keywords; `summed` with the type in which integers are added

  explicit Reduced(const TorchCall& c) : axes(c.ints("axes")) {
    const auto rank = static_cast<int64_t>(c.rank());
    if (axes.empty())  // all
      for (int64_t d = 0; d < std::max<int64_t>(1, rank); ++d) axes.push_back(d);
    else
      for (int64_t& a : axes) a = (a + rank) % rank;
    std::sort(axes.begin(), axes.end());
    keepdim = rank > 0 && c.type.shape.size() == c.rank();
    for (const int64_t a : axes)
      empty = empty || (rank > 0 && c.shape_of(0)[static_cast<size_t>(a)] == Dim::of(0));
    dims = cat("dim=", python::tuple_of(axes), keepdim ? ", keepdim=True" : "");
    summed = dims + (c.is_real() ? "" : ", dtype=" + c.dtype());
  }
};

std::string least(DType type) {
  switch (type) {
    case DType::boolean: return "False";
    case DType::u8: return "0";
    case DType::i8: return "-128";
    case DType::i32: return "-2**31";
    case DType::i64: return "-2**63";
    default: return "float(\"-inf\")";
  }
}

std::string greatest(DType type) {
  switch (type) {
    case DType::boolean: return "True";
    case DType::u8: return "255";
    case DType::i8: return "127";
    case DType::i32: return "2**31 - 1";
    case DType::i64: return "2**63 - 1";
    default: return "float(\"inf\")";
  }
}

Result<std::string> extreme(const TorchCall& c) {
  const Reduced r(c);
  const bool max = c.op == "reduce_max", of_bools = c.type.dtype == DType::boolean;
  if (r.empty)
    return cat("torch.full(", c.shape(), ", ", max ? least(c.type.dtype) : greatest(c.type.dtype),
               ", dtype=", c.dtype(), ", device=", c[0], ".device)");
  const char* name = of_bools ? (max ? "any" : "all") : (max ? "amax" : "amin");
  return cat("torch.", name, "(", c[0], ", ", r.dims, ")");
}

Result<std::string> mean(const TorchCall& c) {
  const Reduced r(c);
  if (c.is_real()) return cat("torch.mean(", c[0], ", ", r.dims, ")");
  return cat("rooms.reduce.mean_of_integers(", c[0], ", ", python::tuple_of(r.axes), ", keepdim=", r.keepdim,
             ")");
}

Result<std::string> product(const TorchCall& c) {
  const Reduced r(c);
  if (r.axes.size() > 1)
    return cat("rooms.reduce.prod(", c[0], ", ", python::tuple_of(r.axes), ", keepdim=", r.keepdim, ")");
  return cat("torch.prod(", c[0], ", dim=", r.axes[0], r.keepdim ? ", keepdim=True" : "",
             c.is_real() ? "" : ", dtype=" + c.dtype(), ")");
}

Result<std::string> deviation(const TorchCall& c) {
  return cat("torch.", c.op.substr(std::string_view("reduce_").size()), "(", c[0], ", ", Reduced(c).dims,
             ", correction=", c.i("correction"), ")");
}

Result<std::string> index(const TorchCall& c) {
  const bool keepdim = c.type.shape.size() == c.rank();
  const int64_t axis = c.i("axis");
  if (c.i("select_last"))
    return cat("rooms.reduce.last_of(torch.", c.op, ", ", c[0], ", ", axis, ", keepdim=", keepdim, ")");
  return cat("torch.", c.op, "(", c[0], ", dim=", axis, keepdim ? ", keepdim=True" : "", ")");
}

Result<std::string> hardmax(const TorchCall& c) {
  const int64_t axis = c.i("axis");
  return cat("torch.zeros_like(", c[0], ").scatter(", axis, ", torch.argmax(", c[0], ", dim=", axis,
             ", keepdim=True), 1.0)");
}

// Sums of something, or something of sums: `before` and `behind` stand around the operand.
Result<std::string> around(const TorchCall& c, const char* before, const char* behind, bool typed = true) {
  const Reduced r(c);
  return cat(before, c[0], behind, ", ", typed ? r.summed : r.dims, ")");
}

}  // namespace

void spell_reduce(TorchSpellings& spellings) {
  spellings.add("argmax", index);
  spellings.add("argmin", index);
  spellings.add("hardmax", hardmax);
  spellings.add("reduce_l1", [](const TorchCall& c) { return around(c, "torch.sum(torch.abs(", ")"); });
  spellings.add("reduce_l2",
                [](const TorchCall& c) { return around(c, "torch.linalg.vector_norm(", "", false); });
  spellings.add("reduce_log_sum", [](const TorchCall& c) -> Result<std::string> {
    return cat("torch.log(torch.sum(", c[0], ", ", Reduced(c).dims, "))");
  });
  spellings.add("reduce_log_sum_exp",
                [](const TorchCall& c) { return around(c, "torch.logsumexp(", "", false); });
  spellings.add("reduce_max", extreme);
  spellings.add("reduce_mean", mean);
  spellings.add("reduce_min", extreme);
  spellings.add("reduce_prod", product);
  spellings.add("reduce_std", deviation);
  spellings.add("reduce_sum", [](const TorchCall& c) { return around(c, "torch.sum(", ""); });
  spellings.add("reduce_sum_square",
                [](const TorchCall& c) { return around(c, "torch.sum(torch.square(", ")"); });
  spellings.add("reduce_var", deviation);
}

}  // namespace invar::compiler
