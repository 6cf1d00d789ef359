// plan + tokens -> logits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "base/hash/digest_cache.h"
#include "base/status.h"
#include "plan/plan.h"

namespace invar::run {

// Tuning: none of it reaches the arithmetic.
struct Options {
  int threads = 0;             // 0 = one per available core
  std::string device = "cpu";  // or "cuda", "cuda:1"
  std::string isa;             // "" = the best this CPU has; else exactly this one, or an error
  int64_t capacity = 0;        // positions of memory of a sequence (prompt + answer)
  int64_t sequences = 1;       // with memory of their own
  int64_t chunk = 0;           // prefill at most this many tokens per step; 0 = 256, on a GPU 2048
  bool check_weights = true;   // hash every weight against the plan while loading
  // but for what this process has hashed; read by open() alone.
  const Hashed* hashed = nullptr;
  bool use_cache = true;  // false: remember tokens only, each step computes the sequence anew from its start
};

// The next token of a sequence.
struct Next {
  int64_t sequence;
  int32_t token;
};

// A loaded program with the memory of its sequences, numbered from 0. Not thread-safe: one step at a time. The logits of a
// sequence do not depend on the others, nor on which sequences a step has (plan.11).
class Session {
 public:
  // Maps, checks (SHA-256 against the plan; an error names the tensor, code failed) and packs the weights;
  // plans buffers.
  static Result<Session> open(plan::Plan plan, const std::string& folder, Options options);
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  int64_t vocab() const;
  int64_t sequences() const;
  int64_t position(int64_t sequence = 0) const;  // tokens in its memory
  int threads() const;
  std::string_view isa() const;     // "cuda" on a GPU
  std::string_view device() const;  // "cpu", or "cuda:0 NVIDIA H200"
  const Device::Info* gpu() const;  // null: it runs on the host
  size_t peak_bytes() const;
  // For every operation of the plan the kernel row that runs it, e.g. "matmul avx2": what the tests assert.
  // An operation with a reference row alone (nothing to vectorise) shows that one under every instruction
  // set.
  std::vector<std::string> kernels() const;
  // Of vendors' libraries that kernels are of, name and version, e.g. "oneDNN 2.6.3"; none in a reproducible program.
  std::vector<std::string> libraries() const;
  int64_t chunk() const;  // of a prompt, the most tokens in a step
  // Forgets all of a sequence: position(sequence) == 0.
  void reset(int64_t sequence = 0);
  // Appends tokens at position(sequence); returns the logits of the last one, or of each with `all`: rows x vocab()
  // floats, row-major, valid until the next call. Errors: token id out of range, beyond capacity, no such sequence.
  Result<std::span<const float>> step(std::span<const int32_t> tokens, bool all = false,
                                      int64_t sequence = 0);
  // Appends one token to each of these sequences, no two the same, wherever they stand, in one step; returns the logits
  // of each, in their order, as step() does.
  Result<std::span<const float>> step_many(std::span<const Next>);
  // Calls f(0) ... f(count - 1), shared out to the threads that wait for the next step: for what comes between two steps.
  // f must not throw nor use the session.
  void share(int count, const std::function<void(int)>& f);
  // The same, beside the next step if a GPU does that, at once otherwise; done when that step or settle() returns. f may read the
  // logits that the last step returned, unless these are of `all`.
  void share_beside(int count, std::function<void(int)> f);
  void settle();
  // Whether the weights' files still hold the bytes that open() checked; code failed and the file's name where not. To
  // be asked before anything claims that a result is of these weights.
  Status weights_unchanged();

 private:
  struct Impl;
  explicit Session(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

}  // namespace invar::run
