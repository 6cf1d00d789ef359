// The thread pool: every range runs once, whatever the number of threads.
#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <numeric>
#include <thread>
#include <vector>

namespace invar {
namespace {

struct Range {
  int64_t begin = -1, end = -1;
  bool operator==(const Range&) const = default;
};

std::vector<Range> ranges(Pool& pool, int64_t units, int at_most = 1 << 30) {
  std::vector<std::vector<Range>> got(pool.threads());
  pool.run(
      units,
      [&](int w, int64_t b, int64_t e) {
        got[w].push_back({b, e});
      },
      at_most);
  std::vector<Range> all;
  for (int w = 0; w < pool.threads(); ++w) {
    EXPECT_LE(w == 0 ? 0 : got[w].size(), 1u);  // none where the calling thread took it
    all.insert(all.end(), got[w].begin(), got[w].end());
  }
  std::sort(all.begin(), all.end(), [](Range a, Range b) { return a.begin < b.begin; });
  return all;
}

TEST(Pool, PartitionIsStaticContiguousAndNearEqual) {
  Pool pool(3);
  EXPECT_EQ(pool.threads(), 3);
  EXPECT_EQ(ranges(pool, 8), (std::vector<Range>{{0, 3}, {3, 6}, {6, 8}}));
  EXPECT_EQ(ranges(pool, 2), (std::vector<Range>{{0, 1}, {1, 2}}));
  EXPECT_EQ(ranges(pool, 0), (std::vector<Range>{}));
  EXPECT_EQ(ranges(pool, 8, 2), (std::vector<Range>{{0, 4}, {4, 8}}));
  EXPECT_EQ(ranges(pool, 8, 0), (std::vector<Range>{{0, 8}}));
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(ranges(pool, kMax).back().end, kMax);
}

TEST(Pool, EveryThreadKeepsItsWorkerNumberAndTakesPart) {
  Pool pool(2);
  std::thread::id zero = std::this_thread::get_id(), one;
  std::atomic<int> on_worker_one{0};
  // The calling thread computes both ranges where the other one is late, so give it time to come.
  for (int round = 0; round < 1000 && on_worker_one == 0; ++round) {
    pool.run(2, [&](int w, int64_t, int64_t) {
      std::this_thread::sleep_for(std::chrono::milliseconds(w == 0 ? 1 : 0));
      if (w == 0) {
        EXPECT_EQ(std::this_thread::get_id(), zero);
      } else {
        one = std::this_thread::get_id();
        ++on_worker_one;
      }
    });
  }
  EXPECT_GT(on_worker_one, 0);
  EXPECT_NE(one, zero);
}

TEST(Pool, WorkAfterRunSeesTheWritesOfAllWorkers) {
  // More threads than cores, many short phases with changing widths: each reads what others wrote
  // in the one before.
  for (int threads : {1, 2, 3, 8}) {
    Pool pool(threads);
    std::vector<int64_t> a(64, 0), b(64, 0);
    for (int round = 0; round < 2000; ++round) {
      pool.run(
          64,
          [&](int, int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) b[i] = a[63 - i] + 1;
          },
          1 + round % threads);
      std::swap(a, b);
    }
    EXPECT_EQ(std::accumulate(a.begin(), a.end(), int64_t{0}), 64 * 2000) << threads;
  }
}

TEST(Pool, WorkersWakeAfterSleeping) {
  Pool pool(3);
  std::atomic<int> calls{0};
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    pool.run(3, [&](int, int64_t, int64_t) { ++calls; });
  }
  EXPECT_EQ(calls, 9);
}

TEST(Pool, AroundWrapsTheWholeLifeOfEachStartedThread) {
  std::atomic<int> entered{0}, left{0}, outside{0};
  static thread_local bool inside = false;
  {
    Pool pool(4, [&](const std::function<void()>& work) {
      ++entered;
      inside = true;
      work();
      inside = false;
      ++left;
    });
    for (int round = 0; round < 100; ++round)
      pool.run(4, [&](int w, int64_t, int64_t) { outside += inside != (w > 0); });
    EXPECT_EQ(left, 0);
  }
  EXPECT_EQ(outside, 0);
  EXPECT_EQ(entered, 3);
  EXPECT_EQ(left, 3);
}

TEST(Pool, AvailableCoresIsPositive) {
  EXPECT_GE(available_cores(), 1);
}

}  // namespace
}  // namespace invar
