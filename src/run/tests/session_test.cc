// Sessions of the tiny model: the same bytes however steps, threads and instruction sets differ.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>

#include "base/file/file.h"
#include "device/find_device.h"
#include "kernels/registry.h"
#include "num/env.h"
#include "run/testing.h"

namespace invar::run {
namespace {

class SessionTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    model = new TinyModel;
    Session s = open(*model, options(1, "reference"));
    truth = new Logits(logits(s, kTokens, true));
  }
  static void TearDownTestSuite() {
    delete model;
    delete truth;
  }
  static std::span<const float> last() { return std::span(*truth).last(kVocab); }

  static TinyModel* model;
  static Logits* truth;  // all positions, reference rows, one thread, one chunk
};
TinyModel* SessionTest::model;
Logits* SessionTest::truth;

TEST_F(SessionTest, LogitsAreNotTrivial) {
  ASSERT_EQ(truth->size(), size_t{kTokens * kVocab});
  EXPECT_FALSE(same_bytes(last(), std::span(*truth).first(kVocab)));
  EXPECT_TRUE(std::all_of(truth->begin(), truth->end(), [](float f) { return f == f; }));
}

// The same on every machine; changes only with the numerics version.
TEST_F(SessionTest, LogitsHaveTheCommittedDigest) {
  std::string bytes;
  for (float f : *truth)
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>(std::bit_cast<uint32_t>(f) >> 8 * i);
  EXPECT_EQ(to_hex(sha256(bytes)), "0f7d712db4e40f05e1fe3f3e98864dd3e7c3c88051ebf284316246071da7843a");
}

TEST_F(SessionTest, SameBytesForEveryInstructionSetThreadCountAndPiece) {
  for (std::string_view isa : ops::isas()) {
    for (int threads : {1, 2, 3, 8}) {
      Session s = open(*model, options(threads, std::string(isa)));
      EXPECT_EQ(s.threads(), threads);
      EXPECT_EQ(s.isa(), isa);
      for (int piece : {kTokens, 7, 1}) {
        s.reset();
        EXPECT_TRUE(same_bytes(logits(s, piece, true), *truth))
            << isa << ", threads " << threads << ", piece " << piece;
        EXPECT_EQ(s.position(), kTokens);
      }
    }
  }
}

// Neighbouring nodes of one kernel run concurrently only if none needs another's result or buffer.
// Here a chain of them alternates between buffers.
TEST_F(SessionTest, NodesThatNeedOneAnotherWait) {
  plan::Plan plan = model->plan;
  auto node = std::find_if(plan.nodes.begin(), plan.nodes.end(),
                           [](const plan::Node& n) { return n.op == "rmsnorm"; });
  ASSERT_NE(node, plan.nodes.end());
  const int first = node->out[0];
  int last = first;
  std::vector<plan::Node> chain(5, *node);
  for (plan::Node& n : chain) {
    plan.values.push_back(plan.values[first]);
    n.in[0].index = last;
    n.out[0] = last = static_cast<int>(plan.values.size()) - 1;
  }
  for (auto user = node + 1; user != plan.nodes.end(); ++user)
    for (plan::Operand& o : user->in)
      if (o.kind == plan::Operand::value && o.index == first) o.index = last;
  plan.nodes.insert(node + 1, chain.begin(), chain.end());
  plan::assign_slots(plan);
  Logits expected;
  for (int threads : {1, 2, 8}) {
    auto s = Session::open(plan, model->folder, options(threads));
    ASSERT_TRUE(s) << s.error().message;
    for (int round = 0; round < 3; ++round) {
      s->reset();
      const Logits found = logits(*s, kTokens, true);
      if (expected.empty()) expected = found;
      EXPECT_TRUE(same_bytes(found, expected)) << threads << " threads";
    }
  }
  EXPECT_FALSE(same_bytes(expected, *truth));
}

TEST_F(SessionTest, SomeRowsHaveTheirBytes) {
  for (int64_t chunk : {0, 1, 7, 64}) {
    for (const bool cache : {true, false}) {
      Options o = options(2);
      o.chunk = chunk, o.use_cache = cache;
      Session s = open(*model, o);
      some_rows_have_their_bytes(s, *truth);
    }
  }
  const TinyModel plain(false);
  Session whole = open(plain, options()), s = open(plain, options(2));
  some_rows_have_their_bytes(s, logits(whole, kTokens, true));
}

TEST_F(SessionTest, SameBytesForEveryChunkAndForTheLastRowAlone) {
  for (int64_t chunk : {1, 7, 64, 1000}) {
    Options o = options(2);
    o.chunk = chunk;
    Session s = open(*model, o);
    EXPECT_TRUE(same_bytes(logits(s, kTokens, false), last())) << chunk;
    s.reset();
    EXPECT_EQ(s.position(), 0);
    EXPECT_TRUE(same_bytes(logits(s, kTokens, true), *truth)) << chunk;
  }
  for (int piece : {1, 2, 8, 9, 50}) {
    Session s = open(*model, options(1));
    const Logits r = logits(s, piece, false);
    for (int i = 0, row = 0; i < kTokens; i += piece, ++row) {
      const int end = std::min(i + piece, kTokens);
      EXPECT_TRUE(same_bytes(std::span(r).subspan(row * kVocab, kVocab),
                             std::span(*truth).subspan((end - 1) * kVocab, kVocab)));
    }
  }
}

TEST_F(SessionTest, SameBytesWithoutCacheAndWithoutState) {
  Options o = options(2);
  o.use_cache = false;
  o.chunk = 20;
  Session recompute = open(*model, o);
  EXPECT_TRUE(same_bytes(logits(recompute, 11, true), *truth));
  recompute.reset();
  EXPECT_TRUE(same_bytes(logits(recompute, 11, true), *truth));
  const TinyModel stateless(false);
  Session s = open(stateless, options(2));
  EXPECT_TRUE(same_bytes(logits(s, 11, true), *truth));
  s.reset();
  EXPECT_TRUE(same_bytes(logits(s, kTokens, false), last()));
}

TEST_F(SessionTest, MoreMemoryIsTakenWithoutLoadingWeights) {
  for (const bool cache : {true, false}) {
    Options o = options(2);
    int64_t loaded = 0;
    o.capacity = 4, o.use_cache = cache, o.load_progress = [&](uint64_t, uint64_t) { ++loaded; };
    Session s = open(*model, o);
    const std::vector<int32_t> more = prompt();
    const int64_t once = loaded;
    EXPECT_GT(once, 0);
    EXPECT_FALSE(s.step(std::span(more).first(5)));
    EXPECT_TRUE(s.step(std::span(more).first(4)));
    ASSERT_TRUE(s.resize(kTokens));
    EXPECT_EQ(s.position(), 0);
    EXPECT_EQ(s.capacity(), kTokens);
    EXPECT_TRUE(same_bytes(logits(s, 7, true), *truth));
    EXPECT_FALSE(s.resize(int64_t{1} << 40));  // as it was, but for what it forgot
    EXPECT_EQ(s.capacity(), kTokens);
    EXPECT_TRUE(same_bytes(logits(s, kTokens, true), *truth));
    EXPECT_EQ(loaded, once);
  }
}

TEST_F(SessionTest, StaleMemoryDoesNotShow) {
  Session s = open(*model, options(2));
  std::vector<int32_t> other(kTokens, 5);
  ASSERT_TRUE(s.step(other));
  s.reset();
  EXPECT_TRUE(same_bytes(logits(s, 13, true), *truth));
}

TEST_F(SessionTest, CallersArithmeticEnvironmentIsSetAndRestored) {
#if defined(__x86_64__)
  Session s = open(*model, options(2));
  const unsigned saved = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(saved | 0x8040 | 0x6000);  // flush to zero, denormals are zero, round toward zero
  const unsigned set = __builtin_ia32_stmxcsr();
  const Logits r = logits(s, kTokens, true);
  const unsigned after = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(saved);
  EXPECT_EQ(after & ~0x3fu, set & ~0x3fu);
  EXPECT_TRUE(same_bytes(r, *truth));
#endif
}

TEST_F(SessionTest, KernelsNameTheForcedInstructionSet) {
  for (std::string_view isa : ops::isas()) {
    const auto names = open(*model, options(1, std::string(isa))).kernels();
    EXPECT_TRUE(std::count(names.begin(), names.end(), "matmul " + std::string(isa)));
    for (const std::string& name : names) {
      const std::string op = name.substr(0, name.find(' '));
      const std::string row = name.substr(op.size() + 1);
      const bool only_reference = ops::find_cpu_kernel(op)->isa == "reference";
      EXPECT_EQ(row, only_reference ? "reference" : isa) << op;
    }
  }
}

std::string failure(const TinyModel& m, Options o, Code code, const plan::Plan* p = nullptr) {
  auto s = Session::open(p ? *p : m.plan, m.folder, std::move(o));
  if (s) return "opened";
  EXPECT_EQ(s.error().code, code) << s.error().message;
  return s.error().message;
}

TEST_F(SessionTest, BadUseIsRefused) {
  EXPECT_EQ(
      failure(*model, options(1, "sse9"), Code::bad_input).find("instruction set 'sse9' is not available"),
      0u);
  Options o = options();
  o.capacity = 0;
  EXPECT_EQ(failure(*model, o, Code::bad_input).find("capacity must be 1"), 0u);
  o.capacity = int64_t{1} << 31;
  o.chunk = o.capacity;
  EXPECT_NE(failure(*model, o, Code::bad_input).find("memory"), std::string::npos);
  EXPECT_NE(failure(*model, options(-1), Code::bad_input).find("threads"), std::string::npos);

  Session s = open(*model, options());
  auto message = [&](std::vector<int32_t> tokens) {
    auto r = s.step(tokens);
    return r ? "accepted" : r.error().message;
  };
  EXPECT_EQ(message({1, 61}), "token 61 at position 1 is outside the vocabulary of 61");
  EXPECT_EQ(message({-1}), "token -1 at position 0 is outside the vocabulary of 61");
  EXPECT_EQ(message({}), "a step needs at least one token");
  EXPECT_EQ(message(std::vector<int32_t>(kTokens + 1)),
            "the memory has 150 positions, 0 in use; 151 more do not fit");
  EXPECT_EQ(s.position(), 0);
  EXPECT_TRUE(same_bytes(logits(s, kTokens, true), *truth));  // refused calls change nothing
  EXPECT_EQ(message({1}), "the memory has 150 positions, 150 in use; 1 more do not fit");
}

TEST_F(SessionTest, PlansThatCannotBeFedAreRefused) {
  plan::Plan p = model->plan;
  p.symbols[1] = DimExpr::symbol("length");
  EXPECT_NE(failure(*model, options(), Code::not_covered, &p).find("symbol 'length'"), std::string::npos);
  p = model->plan;
  p.inputs[1].name = "pixels";
  EXPECT_NE(failure(*model, options(), Code::not_covered, &p).find("input 'pixels'"), std::string::npos);
  p = model->plan;
  p.values[p.inputs[0].value].dtype = DType::i32;
  EXPECT_NE(failure(*model, options(), Code::bad_input, &p).find("'input_ids' is not i64"),
            std::string::npos);
  p = model->plan;
  p.outputs[0].name = "scores";
  EXPECT_NE(failure(*model, options(), Code::bad_input, &p).find("no output 'logits'"), std::string::npos);
}

// A plan is a file that somebody may have edited: what the rooms do not accept is refused, and what
// they accept runs within its buffers (the address sanitizer watches).
TEST_F(SessionTest, EditedPlansAreRefusedOrRunInBounds) {
  int refused = 0, ran = 0;
  auto attempt = [&](const plan::Plan& p) {
    auto s = Session::open(p, model->folder, options(2));
    if (!s) {
      EXPECT_NE(s.error().code, Code::internal) << s.error().message;
      ++refused;
      return;
    }
    const std::vector<int32_t> tokens = prompt();
    if (s->step(std::span(tokens).first(9))) ++ran;
  };
  for (size_t n = 0; n < model->plan.nodes.size(); ++n) {
    const plan::Node& node = model->plan.nodes[n];
    for (int v : node.out) {
      for (size_t d = 0; d < model->plan.values[v].shape.size(); ++d)
        for (int64_t by : {-1, 1, 1000}) {
          plan::Plan p = model->plan;
          plan::DimRef& dim = p.values[v].shape[d];
          dim = dim.symbol < 0 ? plan::DimRef{dim.value + by, -1} : plan::DimRef{by < 0 ? 0 : by, -1};
          attempt(p);
        }
      // Products that overflow, with and without a dimension of 0.
      for (int64_t huge : {int64_t{1} << 31, int64_t{1} << 40, int64_t{1} << 59, INT64_MAX, INT64_MIN})
        for (bool empty : {false, true}) {
          plan::Plan p = model->plan;
          std::vector<plan::DimRef>& shape = p.values[v].shape;
          for (size_t d = 0; d < shape.size(); ++d) shape[d] = {empty && d == 0 ? 0 : huge, -1};
          attempt(p);
        }
      plan::Plan p = model->plan;
      p.values[v].dtype = DType::i8;
      attempt(p);
      p = model->plan;
      p.values[v].shape.clear();
      attempt(p);
    }
    for (const auto& [name, attr] : node.attrs) {
      for (const AttributeValue& other : {AttributeValue{std::string("?")}, AttributeValue{int64_t{0}},
                                          AttributeValue{int64_t{-3}}, AttributeValue{int64_t{7}}}) {
        plan::Plan p = model->plan;
        p.nodes[n].attrs[name] = other;
        attempt(p);
      }
    }
    plan::Plan p = model->plan;
    std::reverse(p.nodes[n].in.begin(), p.nodes[n].in.end());
    attempt(p);
    p = model->plan;
    p.nodes[n].in.pop_back();
    attempt(p);
    p = model->plan;
    p.nodes[n].out.clear();
    attempt(p);
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(ran, 0);

  plan::Plan p = model->plan;
  for (plan::Node& node : p.nodes)
    if (node.op == "matmul") {
      p.values[node.out[0]].shape.back().value += 1;
      break;
    }
  EXPECT_NE(failure(*model, options(), Code::bad_input, &p).find("matmul, requires a result [..., M, N]"),
            std::string::npos);
}

TEST_F(SessionTest, AnIndexThatNamesNothingIsNamed) {
  an_index_that_names_nothing_is_named(*model, options());
}

TEST(Weights, EveryChangedByteIsFoundAndNamed) {
  const TinyModel m;
  for (const plan::Weight& w : m.plan.weights) {
    const std::string path = m.folder + "/" + w.file;
    const std::string good = *read_file(path);
    for (uint64_t at : {w.offset, w.offset + w.length - 1}) {
      std::string bad = good;
      bad[at] ^= 0x10;
      std::ofstream(path, std::ios::binary) << bad;
      const std::string message = failure(m, options(3), Code::failed);
      EXPECT_EQ(message.find("weight " + w.name + " in " + path + ": its bytes have SHA-256 "), 0u)
          << message;
    }
    std::ofstream(path, std::ios::binary) << good;
  }
  Options unchecked = options();
  unchecked.check_weights = false;
  EXPECT_TRUE(Session::open(m.plan, m.folder, unchecked));
}

TEST(Weights, HashedOnceByWhoeverKeepsTheDigests) {
  const TinyModel m;
  const auto first = [&m](auto f) { return f(*MappedFile::open(m.folder + "/" + m.plan.weights[0].file)); };
  const timespec moment = {0, 50'000'000};
  while (!first([](const MappedFile& f) { return f.at_rest(); })) nanosleep(&moment, nullptr);
  const auto known = [&](const DigestCache& cache, const Digest& digest) {
    const plan::Weight& w = m.plan.weights[0];
    return first([&](const MappedFile& f) { return cache.has(f, w.offset, w.length, digest); });
  };
  DigestCache cache;
  Options o = options();
  o.computed = &cache;
  plan::Plan wrong = m.plan;
  wrong.weights[0].sha256 = sha256("other bytes");
  EXPECT_FALSE(Session::open(wrong, m.folder, o));
  EXPECT_FALSE(known(cache, m.plan.weights[0].sha256));
  ASSERT_TRUE(Session::open(m.plan, m.folder, o));
  EXPECT_TRUE(known(cache, m.plan.weights[0].sha256));
  o.hashed = &cache, o.computed = nullptr;
  EXPECT_TRUE(Session::open(m.plan, m.folder, o));
  EXPECT_FALSE(Session::open(wrong, m.folder, o));
}

TEST(Weights, MissingAndShortFilesAreNamed) {
  const TinyModel m;
  const std::string path = m.folder + "/part-1.bin";
  const std::string good = *read_file(path);
  std::ofstream(path, std::ios::binary) << good.substr(0, good.size() - 1);
  EXPECT_EQ(failure(m, options(), Code::bad_input).find(path + ": the file has "), 0u);
  std::remove(path.c_str());
  EXPECT_NE(failure(m, options(), Code::bad_input).find(path), std::string::npos);
}

TEST(Session, SharesWhatComesBetweenSteps) {
  const TinyModel m;
  const auto tokens = prompt();
  for (int threads : {1, 2, 3}) {
    Session s = open(m, options(threads));
    for (int count : {0, 1, 2, 7}) {
      std::vector<int> calls(static_cast<size_t>(count));
      ASSERT_TRUE(s.step({tokens.data(), 1}));
      s.parallel_for(count, [&](int task) { ++calls[static_cast<size_t>(task)]; });
      EXPECT_EQ(calls, std::vector<int>(static_cast<size_t>(count), 1)) << threads;
    }
  }
}

TEST(Devices, AreStartedInTheBackground) {
  for (const char* none : {"cpu", "cuda:0,cuda:1", "gpu", ""})
    EXPECT_FALSE(start_device(none).valid()) << none;
  for (const char* name : {"cuda", "cuda:4096"}) {  // whether or not there is one
    std::future<void> starting = start_device(name);
    if (starting.valid()) starting.get();  // not where the build has no GPU
  }
}

}  // namespace
}  // namespace invar::run
