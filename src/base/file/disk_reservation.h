// Reserves disk space for files that a long computation writes at its end.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/status.h"

namespace invar {

// Holds space in a folder with an unnamed file, which the system deletes with the process, however
// it ends.
class DiskReservation {
 public:
  DiskReservation() = default;  // of nothing
  DiskReservation(DiskReservation&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  DiskReservation& operator=(DiskReservation&& o) noexcept { return std::swap(fd_, o.fd_), *this; }
  DiskReservation(const DiskReservation&) = delete;
  ~DiskReservation();
  // Takes space in the folder of `path`. Errors name the path: the folder is missing or takes no
  // files, the disk is full.
  static Result<DiskReservation> make(const std::string& path, uint64_t bytes);
  // Keeps only `bytes` bytes.
  void shrink(uint64_t bytes);

 private:
  int fd_ = -1;
};

}  // namespace invar
