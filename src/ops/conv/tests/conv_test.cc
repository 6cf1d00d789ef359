// conv.2, conv_transpose.2: convolution equals the matmul room's product of weights with columns of
// the padded operand. conv.3: a bias is added to the stored result. contraction.1: an image does
// not depend on the other images of the batch.
#include <gtest/gtest.h>

#include <cstring>

#include "kernels/testing.h"
#include "num/testing/adversarial.h"

namespace invar::ops {
namespace {

using num::testing::adversarial;
using Floats = std::vector<float>;

struct Setting {
  int64_t images, channels, height, width, rows, kernel, stride, dilation, pad, groups;
  int64_t reach() const { return (kernel - 1) * dilation + 1; }
  int64_t out(int64_t in, bool transposed) const {
    return transposed ? (in - 1) * stride + reach() - 2 * pad : (in + 2 * pad - reach()) / stride + 1;
  }
  Attributes attrs() const {
    using List = std::vector<int64_t>;
    return Attributes{{"strides", List{stride, stride}},
                      {"dilations", List{dilation, dilation}},
                      {"pads", List{pad, pad, pad, pad}},
                      {"groups", groups}};
  }
};
constexpr Setting kSettings[] = {{2, 29, 9, 7, 13, 3, 1, 1, 1, 1}, {1, 3, 17, 18, 7, 7, 2, 1, 3, 1},
                                 {2, 300, 4, 5, 6, 1, 1, 1, 0, 1}, {1, 257, 6, 6, 5, 3, 2, 2, 2, 1},
                                 {2, 12, 8, 9, 10, 3, 3, 1, 2, 2}, {1, 6, 20, 19, 6, 5, 1, 2, 4, 6},
                                 {3, 6, 11, 12, 6, 3, 2, 1, 1, 6}};

bool equal_floats(const Floats& x, const Floats& y) {
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
}

Floats convolve(const Setting& s, bool transposed, std::string_view isa, Floats x, Floats w, Floats bias,
                int64_t images) {
  const int64_t oh = s.out(s.height, transposed), ow = s.out(s.width, transposed);
  Floats y(images * s.rows * oh * ow);
  std::vector<View> in = {testing::view(x, DType::f32, {images, s.channels, s.height, s.width}),
                          testing::view(w, DType::f32,
                                        {transposed ? s.channels : s.rows,
                                         (transposed ? s.rows : s.channels) / s.groups, s.kernel, s.kernel})};
  if (!bias.empty()) in.push_back(testing::view(bias, DType::f32, {s.rows}));
  View out = testing::view(y, DType::f32, {images, s.rows, oh, ow});
  testing::run(*find_cpu_kernel(transposed ? "conv_transpose" : "conv", isa), in, {&out, 1}, s.attrs());
  return y;
}

// One output at a time: the terms of its contraction as a row and a column for matmul.
Floats by_matmul(const Setting& s, bool transposed, const Floats& x, const Floats& w) {
  const int64_t oh = s.out(s.height, transposed), ow = s.out(s.width, transposed);
  const int64_t c = s.channels / s.groups, m = s.rows / s.groups;
  Floats y(s.images * s.rows * oh * ow);
  for (int64_t i = 0; i < static_cast<int64_t>(y.size()); ++i) {
    const int64_t q = i % ow, p = i / ow % oh, row = i / ow / oh % s.rows, image = i / ow / oh / s.rows,
                  g = row / m;
    Floats a, b;
    for (int64_t r = 0; r < s.kernel; ++r)
      for (int64_t t = 0; t < s.kernel; ++t) {
        int64_t h = transposed ? p + s.pad - r * s.dilation : p * s.stride + r * s.dilation - s.pad;
        int64_t v = transposed ? q + s.pad - t * s.dilation : q * s.stride + t * s.dilation - s.pad;
        if (transposed && (h % s.stride || v % s.stride)) continue;
        if (transposed) h /= s.stride, v /= s.stride;
        for (int64_t k = 0; k < c; ++k) {
          const bool inside = h >= 0 && h < s.height && v >= 0 && v < s.width;
          a.push_back(inside ? x[((image * s.channels + g * c + k) * s.height + h) * s.width + v] : 0);
          b.push_back(w[(transposed ? ((g * c + k) * m + row % m) : row * c + k) * s.kernel * s.kernel +
                        r * s.kernel + t]);
        }
      }
    const auto k = static_cast<int64_t>(a.size());
    View in[] = {testing::view(a, DType::f32, {1, k}), testing::view(b, DType::f32, {k, 1})};
    View out{.data = &y[i], .dtype = DType::f32, .rank = 2, .dim = {1, 1}};
    testing::run(*find_cpu_kernel("matmul", "reference"), in, {&out, 1});
  }
  return y;
}

TEST(Conv, IsAMatrixProductOfColumns) {
  for (const Setting& s : kSettings)
    for (bool transposed : {false, true}) {
      const int64_t n = s.images * s.channels * s.height * s.width;
      const int64_t weights = s.channels * s.rows / s.groups * s.kernel * s.kernel;
      for (auto kind : num::testing::kKinds) {
        Floats x = adversarial(kind, n, 1), w = adversarial(kind, weights, 2);
        const Floats expected = by_matmul(s, transposed, x, w);
        for (std::string_view isa : isas())
          EXPECT_TRUE(equal_floats(convolve(s, transposed, isa, x, w, {}, s.images), expected))
              << isa << " channels " << s.channels << " transposed " << transposed << " kind "
              << static_cast<int>(kind);
      }
    }
}

TEST(Conv, BiasIsAnAddition) {
  for (const Setting& s : kSettings) {
    Floats x = adversarial(num::testing::Kind::tiny, s.images * s.channels * s.height * s.width, 3);
    Floats w = adversarial(num::testing::Kind::tiny, s.rows * s.channels / s.groups * s.kernel * s.kernel, 4);
    Floats bias = adversarial(num::testing::Kind::tiny, s.rows, 5);
    for (std::string_view isa : isas()) {
      Floats sum = convolve(s, false, isa, x, w, {}, s.images), y(sum.size());
      const int64_t places = static_cast<int64_t>(sum.size()) / s.images / s.rows;
      View in[] = {testing::view(sum, DType::f32, {s.images, s.rows, places}),
                   testing::view(bias, DType::f32, {s.rows, 1})};
      View out = testing::view(y, DType::f32, {s.images, s.rows, places});
      testing::run(*find_cpu_kernel("add", isa), in, {&out, 1});
      EXPECT_TRUE(equal_floats(convolve(s, false, isa, x, w, bias, s.images), y))
          << isa << " channels " << s.channels;
    }
  }
}

TEST(Conv, ImagesAreIndependent) {
  for (const Setting& s : kSettings)
    for (bool transposed : {false, true}) {
      const int64_t n = s.channels * s.height * s.width;
      Floats x = adversarial(num::testing::Kind::special, s.images * n, 6);
      Floats w =
          adversarial(num::testing::Kind::wide, s.rows * s.channels / s.groups * s.kernel * s.kernel, 7);
      for (std::string_view isa : isas()) {
        Floats one_by_one;
        for (int64_t i = 0; i < s.images; ++i)
          for (float y :
               convolve(s, transposed, isa, Floats(x.begin() + i * n, x.begin() + (i + 1) * n), w, {}, 1))
            one_by_one.push_back(y);
        EXPECT_TRUE(equal_floats(convolve(s, transposed, isa, x, w, {}, s.images), one_by_one))
            << isa << ' ' << s.channels;
      }
    }
}

}  // namespace
}  // namespace invar::ops
