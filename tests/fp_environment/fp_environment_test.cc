// A session computes the same bits while altering_library.cc is loaded around it: at load time, in
// another thread, between steps.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "num/env.h"
#include "run/session.h"
#include "run/tiny_model.h"

namespace invar::run {
namespace {

constexpr int kTokens = 40;

std::vector<int32_t> tokens() {
  std::vector<int32_t> t(kTokens);
  for (int i = 0; i < kTokens; ++i) t[i] = (i * i * 7 + i * 3 + 1) % TinyModel::kVocab;
  return t;
}

Session open(const TinyModel& m, int threads) {
  Options o;
  o.threads = threads;
  o.capacity = kTokens;
  auto s = Session::open(m.plan, m.folder, o);
  EXPECT_TRUE(s) << s.error().message;
  return *std::move(s);
}

// All logits, in two steps and then one by one.
std::vector<float> logits(Session& s) {
  s.reset();
  std::vector<float> all;
  const std::vector<int32_t> t = tokens();
  auto step = [&](std::span<const int32_t> part) {
    auto rows = s.step(part, true);
    ASSERT_TRUE(rows) << rows.error().message;
    all.insert(all.end(), rows->begin(), rows->end());
  };
  step({t.data(), 20});
  for (int i = 20; i < kTokens; ++i) step({t.data() + i, 1});
  return all;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class Hostile : public testing::Test {
 protected:
  ~Hostile() override {
    if (library) ::dlclose(library);
  }
  void load() {
    library = ::dlopen(HOSTILE_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(library) << ::dlerror();
    strike = reinterpret_cast<void (*)()>(::dlsym(library, "hostile_strike"));
    ASSERT_TRUE(strike);
  }
  TinyModel model;
  num::ArithmeticEnv env;  // what the library does to this thread ends with the test
  void* library = nullptr;
  void (*strike)() = nullptr;
};

TEST_F(Hostile, LoadedBetweenSteps) {
  Session s = open(model, 4);
  const std::vector<float> expected = logits(s);
  ASSERT_TRUE(num::arithmetic_env_ok());
  load();
  ASSERT_FALSE(num::arithmetic_env_ok()) << "the library does nothing";
  EXPECT_TRUE(same(logits(s), expected));
  EXPECT_FALSE(num::arithmetic_env_ok()) << "a session gives back what it found";
}

TEST_F(Hostile, LoadedBeforeTheSession) {
  Session before = open(model, 1);
  const std::vector<float> expected = logits(before);
  load();
  ASSERT_FALSE(num::arithmetic_env_ok());
  for (int threads : {1, 4}) {
    Session s = open(model, threads);  // its threads inherit this thread's control word
    EXPECT_TRUE(same(logits(s), expected)) << threads;
  }
}

TEST_F(Hostile, InOtherThreads) {
  Session s = open(model, 3);
  const std::vector<float> expected = logits(s);
  load();
  std::vector<float> found;
  std::thread user([&] {
    strike();
    EXPECT_FALSE(num::arithmetic_env_ok());
    found = logits(s);
  });
  user.join();
  EXPECT_TRUE(same(found, expected));
  std::atomic<bool> stop = false;
  std::thread striker([&] {
    while (!stop) {
      strike();
      if (void* again = ::dlopen(HOSTILE_LIBRARY, RTLD_NOW | RTLD_LOCAL)) ::dlclose(again);
    }
  });
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(same(logits(s), expected));
  stop = true;
  striker.join();
}

}  // namespace
}  // namespace invar::run
