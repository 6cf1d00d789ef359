// A wait that is mostly shorter than it takes a thread to sleep and to wake up: some 50
// microseconds on a machine of its own, more on a virtual one.
#pragma once

#include <chrono>
#include <thread>

namespace invar::run {

// Returns when ended() is true, or after some milliseconds. Others that want the core have it.
template <class Ended>
void stay_awake(Ended ended) {
  constexpr std::chrono::milliseconds kMost{5};
  constexpr int kLooks = 16;  // between two looks at the clock
  const auto until = std::chrono::steady_clock::now() + kMost;
  do {
    for (int i = 0; i < kLooks; ++i, std::this_thread::yield())
      if (ended()) return;
  } while (std::chrono::steady_clock::now() < until);
}

}  // namespace invar::run
