// Helper of tests of the passes: a device that plans can be prepared for.
#pragma once

#include "device/device.h"

namespace invar::run {

// Stands for a GPU where plans are only prepared.
class NoGpu : public Device {
 public:
  const Info& info() const override { return info_; }
  Stream stream() const override { return nullptr; }
  void make_current() const override {}
  Result<void*> allocate(uint64_t, const std::string&) override { return none(); }
  void free(void*) override {}
  uint64_t free_memory() const override { return 0; }
  Result<void*> allocate_pinned(uint64_t, const std::string&) override { return none(); }
  void free_pinned(void*) override {}
  Status upload(void*, const void*, size_t) override { return none(); }
  Status download(void*, const void*, size_t) override { return none(); }
  Status copy(void*, const void*, size_t) override { return none(); }
  Status fill(void*, int, size_t) override { return none(); }
  Status wait() override { return none(); }
  Status begin_capture() override { return none(); }
  Result<std::unique_ptr<Graph>> end_capture() override { return none(); }
  Status replay(const Graph&) override { return none(); }
  Result<double> time(const Graph&) override { return none(); }

 private:
  static Error none() { return Error{Code::failed, "no GPU"}; }
  Info info_;
};

}  // namespace invar::run
