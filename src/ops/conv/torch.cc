// Spells convolutions in torch. torch pads both ends alike; other ends are padded, or cut, on their
// own.
#include <algorithm>

#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

using Ints = std::vector<int64_t>;

// A convolution's attributes, a number for each spatial dimension.
struct ConvWindows {
  size_t axes;
  Ints strides, dilations, begins, ends, more;
  int64_t groups;

  explicit ConvWindows(const TorchCall& c)
      : axes(c.rank() - 2),
        strides(c.ints("strides", axes)),
        dilations(c.ints("dilations", axes)),
        more(c.ints("output_padding", axes)),
        groups(c.i("groups")) {
    const Ints pads = c.ints("pads", 2 * axes);
    const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(axes);
    begins.assign(pads.begin(), middle), ends.assign(middle, pads.end());
  }
  bool pads_alike() const {
    return begins == ends && std::all_of(begins.begin(), begins.end(), [](int64_t p) { return p >= 0; });
  }
};

// functional.pad of x: begins and ends as it takes them, the last dimension first.
std::string padded(const std::string& x, const Ints& begins, const Ints& ends) {
  Ints around;
  for (size_t d = begins.size(); d-- > 0;) around.push_back(begins[d]), around.push_back(ends[d]);
  return cat("functional.pad(", x, ", ", python::tuple_of(around), ")");
}

// ", NAME=V" or ", NAME=(V, W)", unless it is what torch takes anyway.
std::string keyword(const char* name, const Ints& v, int64_t plain) {
  const bool one = std::all_of(v.begin(), v.end(), [&](int64_t i) { return i == v[0]; });
  if (one && !v.empty() && v[0] == plain) return "";
  return cat(", ", name, "=", one && !v.empty() ? std::to_string(v[0]) : python::tuple_of(v));
}

bool has_no_elements(const Shape& shape) {
  return std::find(shape.begin(), shape.end(), Dim::of(0)) != shape.end();
}

Result<std::string> conv(const TorchCall& c) {
  if (has_no_elements(c.shape_of(1))) return c.refused("of weights without elements");
  const ConvWindows w(c);
  std::vector<std::string> operands = c.from(0);
  if (!w.pads_alike()) operands[0] = padded(operands[0], w.begins, w.ends);
  return cat("functional.conv", w.axes, "d(", python::join(operands), keyword("stride", w.strides, 1),
             keyword("padding", w.pads_alike() ? w.begins : Ints(w.axes), 0),
             keyword("dilation", w.dilations, 1), keyword("groups", {w.groups}, 1), ")");
}

Result<std::string> conv_transpose(const TorchCall& c) {
  if (has_no_elements(c.shape_of(1))) return c.refused("of weights without elements");
  const ConvWindows w(c);
  const std::string name = cat("functional.conv_transpose", w.axes, "d(");
  const std::string named = keyword("stride", w.strides, 1) + keyword("groups", {w.groups}, 1) +
                            keyword("dilation", w.dilations, 1);
  std::vector<std::string> operands = c.from(0);
  bool plain = w.pads_alike();
  for (size_t d = 0; d < w.axes; ++d) plain = plain && w.more[d] < std::max(w.strides[d], w.dilations[d]);
  if (plain)
    return cat(name, python::join(operands), keyword("padding", w.begins, 0),
               keyword("output_padding", w.more, 0), named, ")");
  // Cuts off what is too much; what is missing has the bias alone.
  Ints begins, ends;
  for (size_t d = 0; d < w.axes; ++d) begins.push_back(-w.begins[d]), ends.push_back(w.more[d] - w.ends[d]);
  std::string bias;
  if (operands.size() > 2) {
    bias = cat(" + ", operands[2], ".reshape(-1");
    for (size_t d = 0; d < w.axes; ++d) bias += ", 1";
    bias += ")", operands.resize(2);
  }
  return padded(cat(name, python::join(operands), named, ")"), begins, ends) + bias;
}

Result<std::string> backward_weight(const TorchCall& c) {
  const ConvWindows w(c);
  const bool alike = w.pads_alike();
  return cat("rooms.conv.weight_gradient(", c[0], ", ", alike ? c[1] : padded(c[1], w.begins, w.ends), ", ",
             c.shape(), ", ", python::list_of(w.strides), ", ",
             python::list_of(alike ? w.begins : Ints(w.axes)), ", ", python::list_of(w.dilations), ", ",
             w.groups, ")");
}

}  // namespace

void spell_conv(TorchSpellings& spellings) {
  spellings.add("conv", conv);
  spellings.add("conv_backward_weight", backward_weight);
  spellings.add("conv_transpose", conv_transpose);
}

}  // namespace invar::compiler
