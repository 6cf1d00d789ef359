// plan + tensors -> tensors: runs a stateless program, such as an encoder or an image network.
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
  std::vector<std::byte> bytes;  // row-major, in the host's byte order
};
// A tensor in memory that the caller owns, row-major, on the host or on a GPU. There it is read in
// the order of the function's stream().
struct TensorView {
  DType dtype;
  std::span<const int64_t> shape;
  std::span<const std::byte> bytes;
  int device = -1;  // the index of the GPU; -1: the host
};

// A loaded program. Not thread-safe. Ignores the options about a session's memory.
class Function {
 public:
  // Opens as Session::open does.
  static Result<Function> open(plan::Plan plan, const std::string& folder, Options options);
  Function(Function&&) noexcept;
  Function& operator=(Function&&) noexcept;
  ~Function();

  using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
  using NamedViews = std::vector<std::pair<std::string, TensorView>>;
  // Takes one tensor for every input of the plan, by name, in any order; returns its outputs in the
  // plan's order, on the host. A symbol of the plan takes the size of the dimensions that it names
  // (plan.9). Errors name the input. On the host, inputs that are aligned to their elements are
  // read in place and must not change during the call. With a GPU, inputs are copied to it; an
  // input on another GPU is refused.
  Result<NamedTensors> run(const NamedViews& inputs);
  Result<NamedTensors> run(const NamedTensors& inputs);
  // Returns memory for one output: row-major, on the function's device, and not an input's memory.
  // Nobody else may touch it until run() returns.
  using OutputAllocator =
      std::function<Result<void*>(const std::string& name, DType, std::span<const int64_t> shape)>;
  // The same with results in the memory that `allocate` returns; called in the plan's order.
  Status run(const NamedViews& inputs, const OutputAllocator& allocate);

  Status weights_unchanged();    // as Session's
  std::string_view isa() const;  // "cuda" on a GPU
  int device() const;            // the index of the GPU; -1: the host
  Stream stream() const;         // the queue of all device work of run(); null on the host
  size_t peak_bytes() const;
  std::vector<std::string> kernels() const;
  std::vector<std::string> libraries() const;  // as Session's

 private:
  struct Impl;
  explicit Function(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

}  // namespace invar::run
