// plan + tensors -> tensors: a program without memory between steps, such as an encoder or a network for pictures.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "run/session.h"

namespace invar::run {

struct Tensor {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;  // row-major, in the processor's order
};
// One that lies elsewhere: on the host, or on a GPU, row-major, where it is read in the order of the function's stream().
struct TensorView {
  DType dtype;
  std::span<const int64_t> shape;
  std::span<const std::byte> bytes;
  int device = -1;  // the number of the GPU; -1: the host
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
  // read where they lie; they must not change meanwhile. A function on a GPU copies those from the host there, and those that lie
  // there within it; what lies on another GPU is refused. Results are on the host. Errors name the input.
  using NamedViews = std::vector<std::pair<std::string, TensorView>>;
  Result<Named> run(const NamedViews& inputs);
  Result<Named> run(const Named& inputs);
  // The same with results where `place` says: memory for each output in the plan's order, row-major, on the function's device and
  // no input's. Nobody else touches it from then on until run() returns, when the results are there.
  using Place = std::function<Result<void*>(const std::string& name, DType, std::span<const int64_t> shape)>;
  Status run(const NamedViews& inputs, const Place& place);

  Status weights_unchanged();    // as a session's
  std::string_view isa() const;  // "cuda" on a GPU
  int device() const;            // the number of the GPU; -1: the host
  Stream stream() const;         // the GPU's queue of everything that run() does; null on the host
  size_t peak_bytes() const;
  std::vector<std::string> kernels() const;
  std::vector<std::string> libraries() const;  // as a session's

 private:
  struct Impl;
  explicit Function(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

}  // namespace invar::run
