// A library to compare with, in a process of its own (bench/peer.py): one JSON object per line in
// each direction.
#pragma once
#include <memory>
#include <string>

#include "bench/suite.h"

namespace invar::bench {

class Peer {
 public:
  // Starts PYTHON ROOT/bench/peer.py NAME DEVICE: on the CPU, or the GPU of that index. An error
  // where it cannot be started or the library cannot be imported.
  static Result<Peer> start(const std::string& name, const std::string& python, const std::string& root,
                            int gpu = -1);
  Peer(Peer&&) noexcept;
  Peer& operator=(Peer&&) noexcept;
  ~Peer();

  const std::string& version() const;
  // Makes the call ready; the quickest of its spellings there is chosen. Returns its name, or ""
  // where the peer has no such operation. On a GPU the calls go through so many copies of the
  // operands.
  Result<std::string> prepare(const Item&, int threads, int copies);
  // Seconds per call, `calls` in a row after one that is not counted; on a GPU a graph of them
  // after one that is not.
  Result<double> time(int64_t calls);

 private:
  struct Impl;
  explicit Peer(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

// The folder that holds bench/peer.py: this checkout's, found upwards from the running program; ""
// where there is none.
std::string source_root();

}  // namespace invar::bench
