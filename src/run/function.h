// plan + tensors -> tensors: a program without memory between steps, such as an encoder or a network for pictures.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "run/run.h"

namespace invar::run {

struct Tensor {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;  // row-major, in the processor's order
};
// One that lies elsewhere.
struct TensorView {
  DType dtype;
  std::span<const int64_t> shape;
  std::span<const std::byte> bytes;
};

// A loaded program. Not thread-safe. Of the options those of a session's memory mean nothing here.
class Function {
 public:
  // As Session::open.
  static Result<Function> open(plan::Plan plan, const std::string& folder, Options options);
  Function(Function&&) noexcept;
  Function& operator=(Function&&) noexcept;
  ~Function();

  using Named = std::vector<std::pair<std::string, Tensor>>;
  // One tensor for every input of the plan, by name, in any order; returns its outputs in the plan's order. A symbol of the
  // plan stands for the dimension that the inputs have there (plan.9). On the host inputs that are aligned to their elements are
  // read where they lie; they must not change meanwhile. Errors name the input.
  using NamedViews = std::vector<std::pair<std::string, TensorView>>;
  Result<Named> run(const NamedViews& inputs);
  Result<Named> run(const Named& inputs);

  std::string_view isa() const;  // "cuda" on a GPU
  size_t peak_bytes() const;
  std::vector<std::string> kernels() const;
  std::vector<std::string> libraries() const;  // as a session's

 private:
  struct Impl;
  explicit Function(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

}  // namespace invar::run
