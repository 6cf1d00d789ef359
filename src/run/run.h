// plan + tokens -> logits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "plan/plan.h"

namespace invar::run {

// Tuning: none of it reaches the arithmetic.
struct Options {
  int threads = 0;             // 0 = one per available core
  std::string device = "cpu";  // or "cuda", "cuda:1"
  std::string isa;             // "" = the best this CPU has; else exactly this one, or an error
  int64_t capacity = 0;        // positions of memory (prompt + answer)
  int64_t chunk = 0;           // prefill at most this many tokens per step; 0 = 256, on a GPU 2048
  bool check_weights = true;   // hash every weight against the plan while loading
  bool use_cache = true;  // false: remember tokens only, each step computes the sequence anew from its start
};

// A loaded program with its memory. Not thread-safe: one sequence at a time.
class Session {
 public:
  // Maps, checks (SHA-256 against the plan; an error names the tensor, code failed) and packs the weights;
  // plans buffers.
  static Result<Session> open(plan::Plan plan, const std::string& folder, Options options);
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  int64_t vocab() const;
  int64_t position() const;  // tokens in memory
  int threads() const;
  std::string_view isa() const;     // "cuda" on a GPU
  std::string_view device() const;  // "cpu", or "cuda:0 NVIDIA H200"
  size_t peak_bytes() const;
  // For every operation of the plan the kernel row that runs it, e.g. "matmul avx2": what the tests assert.
  // An operation with a reference row alone (nothing to vectorise) shows that one under every instruction
  // set.
  std::vector<std::string> kernels() const;
  // Forgets everything: position() == 0.
  void reset();
  // Appends tokens at position(); returns the logits of the last one, or of each with `all`: rows x vocab()
  // floats, row-major, valid until the next call. Errors: token id out of range, beyond capacity.
  Result<std::span<const float>> step(std::span<const int32_t> tokens, bool all = false);
  // Calls f(0) ... f(count - 1), shared out to the threads that wait for the next step: for what comes between two steps.
  // f must not throw nor use the session.
  void share(int count, const std::function<void(int)>& f);

 private:
  struct Impl;
  explicit Session(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

}  // namespace invar::run
