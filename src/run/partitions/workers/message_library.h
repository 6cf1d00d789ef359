// The functions by which processes exchange messages: those of MPI, or of a relay.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "run/partitions/workers/transport.h"

namespace invar::run {

constexpr int kTurnsAtOnce = 200;
constexpr std::chrono::microseconds pause_after(int turns) {
  return std::chrono::microseconds(turns < 2000 ? 50 : 500);
}

constexpr int kHeader = 1, kPayload = 2, kHeartbeat = 3;  // tags

// What apps/mpi/invar_mpi.c has, or a relay in its place.
struct Transport::Library {
  std::function<int(int*, int*)> start;
  std::function<void*(int, int, const void*, int)> send;
  std::function<void*(int, int, void*, int)> receive;
  std::function<int(void*)> test;
  std::function<int(int, int)> arrived;
  // Between two looks. It is looked again at once at first; later another process needs the
  // processor more.
  std::function<void(int)> pause = [](int turns) {
    if (turns < kTurnsAtOnce)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(pause_after(turns));
  };
  std::function<void()> end;
  std::function<void(int)> abort;
  std::function<std::string()> lost = [] { return std::string(); };  // why nobody answers any more
  std::function<void()> give_up = [] {};  // ends the others' processes, before end() does
};

}  // namespace invar::run
