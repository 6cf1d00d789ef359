// What a runtime asks of rows that it fuses: they tell an epilogue of their results, or compute regions of them, in place.
#pragma once
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace invar::conformance {

// An epilogue that remembers what it was told, and what lay there.
class Listener {
 public:
  explicit Listener(const ops::View& out);
  Listener(const Listener&) = delete;
  const ops::Epilogue* epilogue() const { return &epilogue_; }
  // "" where it was told of every element once, and none has changed since.
  std::string wrong() const;

 private:
  void told(const ops::Region&);
  ops::View out_;
  size_t width_;
  std::vector<std::atomic<uint32_t>> times_;  // no bytes: to add to one needs a library on riscv64
  std::vector<std::byte> seen_;
  std::atomic<bool> outside_ = false;
  ops::Epilogue epilogue_;
};

// Of a row with `region`: its result computed region by region, apart from its operands and in the memory of each that may be
// there, compared with what run() left in out[0]. "" where they are equal.
std::string regions_differ(const ops::Kernel&, const ops::Call&);

}  // namespace invar::conformance
