// Space on disk for files that a long computation will write at its end.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/status.h"

namespace invar {

// Holds space in a folder by a file without a name, which the system takes back with the process, however that ends.
class Reservation {
 public:
  Reservation() = default;  // of nothing
  Reservation(Reservation&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  Reservation& operator=(Reservation&& o) noexcept { return std::swap(fd_, o.fd_), *this; }
  Reservation(const Reservation&) = delete;
  ~Reservation();
  // In the folder where `path` shall be. Errors name the path: a folder that is missing or takes no files, a full disk.
  static Result<Reservation> make(const std::string& path, uint64_t bytes);
  // Gives back what is beyond `bytes`.
  void shrink(uint64_t bytes);

 private:
  int fd_ = -1;
};

}  // namespace invar
