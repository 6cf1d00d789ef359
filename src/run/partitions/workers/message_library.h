// The functions by which processes exchange messages: those of MPI, or of a relay.
#pragma once

#include <functional>
#include <string>

#include "run/partitions/workers/transport.h"

namespace invar::run {

constexpr int kHeader = 1, kPayload = 2, kHeartbeat = 3;  // tags

// What apps/mpi/invar_mpi.c has, or a relay in its place.
struct Transport::Library {
  std::function<int(int*, int*)> start;
  std::function<void*(int, int, const void*, int)> send;
  std::function<void*(int, int, void*, int)> receive;
  std::function<int(void*)> test;
  std::function<int(int, int)> arrived;
  std::function<void()> end;
  std::function<void(int)> abort;
  std::function<std::string()> lost = [] { return std::string(); };  // why nobody answers any more
  std::function<void()> give_up = [] {};  // ends the others' processes, before end() does
};

}  // namespace invar::run
