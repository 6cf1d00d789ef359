// Spells pooling in torch: its functions where they have such windows, else helpers in torch.py.
// torch pads both ends alike, at most half a window, and of averages and norms has no dilated ones.
#include <algorithm>

#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

using Ints = std::vector<int64_t>;

struct PoolWindows {
  size_t axes;
  Ints kernel, strides, dilations, begins, ends;
  std::string out;  // the sizes of the result
  bool alike, dense, ceil;

  explicit PoolWindows(const TorchCall& c)
      : axes(c.rank() - 2),
        kernel(c.ints("kernel")),
        strides(c.ints("strides", axes)),
        dilations(c.ints("dilations", axes)),
        out(torch_text(Shape(c.type.shape.begin() + 2, c.type.shape.end()))) {
    const Ints pads = c.ints("pads", 2 * axes);
    const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(axes);
    begins.assign(pads.begin(), middle), ends.assign(middle, pads.end());
    alike = begins == ends;
    for (size_t d = 0; d < axes; ++d) alike = alike && 0 <= begins[d] && 2 * begins[d] <= kernel[d];
    dense = std::all_of(dilations.begin(), dilations.end(), [](int64_t d) { return d == 1; });
    ceil = c.i("ceil_mode") != 0 || rounded_up(c);
  }
  // Tells whether there are more windows than fit.
  bool rounded_up(const TorchCall& c) const {
    bool more = false;
    for (size_t d = 0; d < axes; ++d) {
      const Dim &n = c.shape_of(0)[2 + d], &o = c.type.shape[2 + d];
      more = more || (n.constant() && o.constant() &&
                      (o.value - 1) * strides[d] + (kernel[d] - 1) * dilations[d] + 1 >
                          n.value + begins[d] + ends[d]);
    }
    return more;
  }
  std::string helper(const char* name, const TorchCall& c, const std::string& more = "") const {
    return cat("rooms.pool.", name, "(", c[0], ", ", out, more, ", kernel=", python::list_of(kernel),
               ", strides=", python::list_of(strides), ", dilations=", python::list_of(dilations),
               ", pads=", python::list_of(begins), ")");
  }
  std::string plain(const char* name, const TorchCall& c, const std::string& before = "",
                    const std::string& more = "") const {
    const auto shortened = [](const Ints& v) {
      const bool one = std::all_of(v.begin(), v.end(), [&](int64_t i) { return i == v[0]; });
      return one && !v.empty() ? std::to_string(v[0]) : python::tuple_of(v);
    };
    const bool padded = std::any_of(begins.begin(), begins.end(), [](int64_t p) { return p != 0; });
    return cat("functional.", name, axes, "d(", c[0], before, ", ", shortened(kernel),
               ", stride=", shortened(strides), padded ? ", padding=" + shortened(begins) : "",
               ceil ? ", ceil_mode=True" : "", more, ")");
  }
};

Result<std::string> largest(const TorchCall& c) {
  const PoolWindows w(c);
  if (!w.alike) return w.helper("max_pool", c);
  return w.plain("max_pool", c, "", w.dense ? "" : ", dilation=" + python::tuple_of(w.dilations));
}

Result<std::string> indices(const TorchCall& c) {
  const PoolWindows w(c);
  return w.helper("max_pool_indices", c,
                  cat(", column_major=", c.i("column_major"),
                      w.alike ? (w.ceil ? ", plain=\"ceil\"" : ", plain=True") : ""));
}

Result<std::string> average(const TorchCall& c) {
  const PoolWindows w(c);
  const bool padded = c.i("count_include_pad") != 0;
  if (w.alike && w.dense) return w.plain("avg_pool", c, "", cat(", count_include_pad=", padded));
  return w.helper("average_pool", c,
                  cat(", count_include_pad=", padded ? "1" : "0", ", ends=", python::list_of(w.ends)));
}

Result<std::string> norm(const TorchCall& c) {
  const PoolWindows w(c);
  const int64_t p = c.i("p");
  const auto some = [](const Ints& v) {
    return std::any_of(v.begin(), v.end(), [](int64_t i) { return i != 0; });
  };
  if (p == 2 && w.dense && !some(w.begins) && !some(w.ends) && !w.ceil) return w.plain("lp_pool", c, ", 2");
  return w.helper("lp_pool", c, cat(", p=", p));
}

}  // namespace

void spell_pool(TorchSpellings& spellings) {
  spellings.add("average_pool", average);
  spellings.add("lp_pool", norm);
  spellings.add("max_pool", largest);
  spellings.add("max_pool_indices", indices);
}

}  // namespace invar::compiler
