// Requests that come and go while a scheduler runs: the others' receipts stay those of one request
// at a time, whatever it finds of their prompts, and whoever gives way.
// Long because all of it is asked of one small model and its answers alone.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "generate/engine/engine.h"
#include "generate/scheduling/page_pool.h"
#include "generate/scheduling/prefix_cache.h"
#include "run/tiny_model.h"

#ifdef INVAR_COMPILER
namespace invar::generate {
namespace {

class SchedulerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ModelOptions where;
    where.model_name = INVAR_SOURCE_DIR "/models/shakespeare-4m";
    auto opened = Model::open(where, observer_);
    ASSERT_TRUE(opened) << opened.error().message;
    model_ = *opened;
    const std::pair<const char*, int64_t> asked[] = {{"ROMEO:", 24},  {"JULIET:", 3},        {"KING", 24},
                                                     {"O Romeo,", 9}, {"First Citizen:", 5}, {"A", 4}};
    for (const auto& [text, most] : asked) {
      RequestOptions options;
      options.sampling.max_new_tokens = most;
      auto settings = RequestSettings::make(*model_, options);
      ASSERT_TRUE(settings) << settings.error().message;
      auto made = Request::make(*model_, {text, std::nullopt}, *settings);
      ASSERT_TRUE(made) << made.error().message;
      requests_.push_back(std::move(*made));
    }
    auto engine = Engine::open(model_, {}, {.batch_size = 2}, requests_, observer_);
    ASSERT_TRUE(engine) << engine.error().message;
    engine_.emplace(std::move(*engine));
    ASSERT_EQ(engine_->session().sequences(), 2);
  }

  std::string alone(size_t i) {
    AnswerStream stream = engine_->stream(requests_[i], observer_);
    for (auto piece = stream.next(); piece && *piece;) piece = stream.next();
    const auto answer = stream.finish();
    return answer ? answer->receipt_hash : answer.error().message;
  }
  // The number and the receipt of the next answer; none: {SIZE_MAX, ""}.
  static std::pair<size_t, std::string> next(Scheduler& scheduler) {
    const auto complete = scheduler.next();
    if (!complete) return {SIZE_MAX, complete.error().message};
    if (!*complete) return {SIZE_MAX, ""};
    return {(*complete)->request, (*complete)->answer.receipt_hash};
  }

  Observer observer_;
  std::shared_ptr<Model> model_;
  std::vector<Request> requests_;
  std::optional<Engine> engine_;
};

TEST_F(SchedulerTest, RequestsComeAndGoWhileOthersRun) {
  const std::pair<size_t, std::string> none{SIZE_MAX, ""};
  std::vector<std::string> want;
  for (size_t i = 0; i < requests_.size(); ++i) want.push_back(alone(i));
  Scheduler scheduler(*engine_, observer_);
  EXPECT_EQ(next(scheduler), none);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(scheduler.add(requests_[i]), i);
  EXPECT_EQ(next(scheduler), std::pair(size_t{1}, want[1]));  // 0 runs, 2 waits
  scheduler.cancel(0), scheduler.cancel(2);
  scheduler.cancel(1), scheduler.cancel(0);  // nothing: answered, and gone already
  EXPECT_EQ(scheduler.add(requests_[3]), 3u);
  EXPECT_EQ(scheduler.add(requests_[4]), 4u);
  EXPECT_EQ(next(scheduler), std::pair(size_t{4}, want[4]));  // 3 runs
  EXPECT_EQ(scheduler.add(requests_[2]), 5u);                 // joins it, from the start
  EXPECT_EQ(next(scheduler), std::pair(size_t{3}, want[3]));
  EXPECT_EQ(next(scheduler), std::pair(size_t{5}, want[2]));
  EXPECT_EQ(next(scheduler), none);
  scheduler.add(requests_[5]);  // after a pause
  EXPECT_EQ(next(scheduler), std::pair(size_t{6}, want[5]));
  EXPECT_EQ(next(scheduler), none);
  scheduler.cancel(6);
}

// A cancelled request leaves no trace in the sequence that it had, and may be asked again.
TEST_F(SchedulerTest, ACancelledRequestCanBeAskedAgain) {
  const std::string want = alone(0);
  Scheduler scheduler(*engine_, observer_);
  for (const size_t i : {0, 1}) scheduler.add(requests_[i]);
  EXPECT_EQ(next(scheduler).first, 1u);
  scheduler.cancel(0);
  EXPECT_EQ(scheduler.add(requests_[0]), 2u);
  EXPECT_EQ(next(scheduler), std::pair(size_t{2}, want));
}

// --- pages that sequences share ------------------------------------------------------------------

// Prompts that have pages in common, and how often their tokens repeat.
class PrefixTest : public ::testing::Test {
 protected:
  static constexpr int64_t kPage = run::Session::kPagePositions;

  static void SetUpTestSuite() {
    Observer observer;
    ModelOptions where;
    where.model_name = INVAR_SOURCE_DIR "/models/shakespeare-4m";
    auto opened = Model::open(where, observer);
    ASSERT_TRUE(opened) << opened.error().message;
    model_ = new std::shared_ptr<Model>(*opened);
    ASSERT_TRUE((*model_)->compile(observer));
    const std::vector<int32_t> book = tokens_of(200);
    lone_ = new std::map<std::vector<int32_t>, std::string>;
    for (const size_t common : {size_t{0}, size_t{100}, size_t{130}, size_t{256}, size_t{300}})
      for (const size_t own : {size_t{1}, size_t{60}})
        for (const bool samples : {false, true}) {
          std::vector<int32_t> tokens(book.begin(), book.begin() + static_cast<int64_t>(common));
          for (size_t i = 0; i < own; ++i) tokens.push_back(book[(common * 7 + i * 5) % book.size()]);
          prompts_.push_back({std::move(tokens), samples});
        }
  }
  static void TearDownTestSuite() { delete model_, delete lone_; }

  static std::vector<int32_t> tokens_of(int lines) {
    std::string text;
    for (int i = 0; i < lines; ++i) text += "Line " + std::to_string(i * i) + " of the play.\n";
    return *(*model_)->folder.tokenizer.encode(text);
  }
  struct Given {
    std::vector<int32_t> tokens;
    bool samples;
  };
  static Request request(const Given& given, int64_t most = 12, std::optional<int32_t> logprobs = {}) {
    RequestOptions options;
    options.sampling.max_new_tokens = most;
    options.sampling.do_sample = given.samples;
    if (given.samples) options.sampling.temperature = 0.9f, options.sampling.seed = 5;
    options.sampling.logprobs = logprobs, options.prompt_logprobs = logprobs.has_value();
    auto settings = RequestSettings::make(**model_, options);
    EXPECT_TRUE(settings) << settings.error().message;
    auto made =
        Request::make(**model_, {(*model_)->folder.tokenizer.decode(given.tokens, false), std::nullopt},
                      given.tokens, *settings);
    EXPECT_TRUE(made) << made.error().message;
    return *std::move(made);
  }
  static Engine engine(int64_t sequences, uint64_t memory = 0, int partitions = 0) {
    Observer observer;
    ExecutionOptions execution;
    execution.kv_cache_memory_bytes = memory, execution.partitions = partitions;
    auto made = Engine::open(*model_, execution, {.batch_size = sequences, .positions = 512}, {}, observer);
    EXPECT_TRUE(made) << made.error().message;
    return *std::move(made);
  }
  // The receipt of this answer, computed alone by an engine that remembers nothing.
  static std::string alone(const Given& given, int64_t most = 12) {
    std::vector<int32_t> key = given.tokens;
    key.push_back(given.samples), key.push_back(static_cast<int32_t>(most));
    std::string& found = (*lone_)[key];
    if (!found.empty()) return found;
    static Engine one = engine(1);
    Observer observer;
    Request asked = request(given, most);
    EXPECT_TRUE(one.admit(asked, observer));
    AnswerStream stream = one.stream(asked, observer);
    for (auto piece = stream.next(); piece && *piece;) piece = stream.next();
    const auto answer = stream.finish();
    EXPECT_TRUE(answer);
    return found = answer->receipt_hash;
  }
  // Steps until no request is left; the answers by their numbers.
  static std::map<size_t, Answer> all(Scheduler& scheduler) {
    std::map<size_t, Answer> answers;
    while (scheduler.running() + scheduler.waiting() > 0) {
      auto step = scheduler.step();
      EXPECT_TRUE(step) << step.error().message;
      if (!step) break;
      EXPECT_TRUE(step->failed.empty());
      for (auto& [number, answer] : step->complete) answers[number] = std::move(answer);
    }
    return answers;
  }

  static std::shared_ptr<Model>* model_;
  static std::map<std::vector<int32_t>, std::string>* lone_;
  static std::vector<Given> prompts_;
  Observer observer_;
};
std::shared_ptr<Model>* PrefixTest::model_;
std::map<std::vector<int32_t>, std::string>* PrefixTest::lone_;
std::vector<PrefixTest::Given> PrefixTest::prompts_;

// Case 3: cold, warm, half warm, two in one step, after eviction.
TEST_F(PrefixTest, APromptHasItsReceiptColdAndWarm) {
  const std::vector<int32_t> book = tokens_of(200);
  const Given whole{{book.begin(), book.begin() + 300}, false};
  const Given half{{book.begin(), book.begin() + 150}, true};
  for (const int partitions : {1, 2}) {
    Engine engine = PrefixTest::engine(3, 0, partitions);
    const auto asked = [&](const std::vector<Given>& all_given) {
      Scheduler scheduler(engine, observer_, 256);
      std::vector<Request> requests;
      for (const Given& g : all_given) requests.push_back(request(g));
      for (Request& r : requests) scheduler.add(r);
      const auto answers = all(scheduler);
      std::vector<int64_t> cached;
      for (size_t i = 0; i < all_given.size(); ++i) {
        EXPECT_EQ(answers.at(i).receipt_hash, alone(all_given[i])) << i;
        cached.push_back(answers.at(i).cached_tokens);
      }
      return cached;
    };
    EXPECT_EQ(asked({whole}), (std::vector<int64_t>{0}));
    EXPECT_EQ(asked({whole}), (std::vector<int64_t>{2 * kPage}));
    EXPECT_EQ(asked({half}), (std::vector<int64_t>{kPage}));
    // The first one's tokens are found by those that begin in the same step, as it computes them.
    const Given other{{book.begin() + 20, book.begin() + 320}, false};
    EXPECT_EQ(asked({other, other, other}), (std::vector<int64_t>{0, 2 * kPage, 2 * kPage}));
    {  // whoever checks an answer takes nothing of it
      Scheduler scheduler(engine, observer_, 256);
      Request checks = request(whole);
      scheduler.add(checks, {.anew = true});
      const auto answers = all(scheduler);
      EXPECT_EQ(answers.at(0).receipt_hash, alone(whole));
      EXPECT_EQ(answers.at(0).cached_tokens, 0);
      EXPECT_EQ(scheduler.figures().prefix_queries, 0u);
    }
    // Many others: the pool has 12 pages.
    for (int i = 0; i < 8; ++i) asked({{{book.begin() + 30 + i, book.begin() + 330 + i}, false}});
    EXPECT_EQ(asked({whole}), (std::vector<int64_t>{0}));
    EXPECT_EQ(asked({whole, half}), (std::vector<int64_t>{2 * kPage, kPage}));
  }
}

// A prompt of whole pages: its last token is computed, since its logits are wanted.
TEST_F(PrefixTest, TheLastTokenIsAlwaysComputed) {
  const std::vector<int32_t> book = tokens_of(200);
  Engine engine = PrefixTest::engine(2);
  for (const int64_t size : {2 * kPage, 2 * kPage + 1})
    for (const int64_t cached : {size == 2 * kPage ? 0 : kPage, size == 2 * kPage ? kPage : 2 * kPage}) {
      const Given given{{book.begin(), book.begin() + size}, false};
      Scheduler scheduler(engine, observer_, 256);
      Request asked = request(given);
      scheduler.add(asked);
      const auto answers = all(scheduler);
      EXPECT_EQ(answers.at(0).receipt_hash, alone(given));
      EXPECT_EQ(answers.at(0).cached_tokens, size == 2 * kPage + 1 && cached == kPage ? 2 * kPage : cached);
    }
}

// Log-probabilities of a prompt need all of its logits, so nothing of it is taken from others.
TEST_F(PrefixTest, LogprobsOfAPromptAreThoseOfACompany) {
  const std::vector<int32_t> book = tokens_of(200);
  const Given given{{book.begin(), book.begin() + 300}, false};
  Engine engine = PrefixTest::engine(2);
  Scheduler scheduler(engine, observer_, 256);
  Request plain = request(given), rows = request(given, 12, 1), again = request(given, 12, 1);
  for (Request* const r : {&plain, &rows, &again}) scheduler.add(*r);
  const auto answers = all(scheduler);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(answers.at(i).receipt_hash, alone(given)) << i;
  ASSERT_EQ(answers.at(1).prompt_logprobs.size(), given.tokens.size() - 1);
  for (size_t i = 0; i + 1 < given.tokens.size(); ++i) {
    const sample::StepLogprobs &a = answers.at(1).prompt_logprobs[i], &b = answers.at(2).prompt_logprobs[i];
    EXPECT_EQ(a.chosen.token, given.tokens[i + 1]);
    EXPECT_EQ(sample::json_logprob(a.chosen.logprob), sample::json_logprob(b.chosen.logprob)) << i;
  }
  EXPECT_EQ(answers.at(1).cached_tokens, 0);
}

// Case 5: the pool has a quarter of the need.
TEST_F(PrefixTest, RequestsGiveWayWherePagesAreFew) {
  const std::vector<int32_t> book = tokens_of(200);
  const uint64_t page = PrefixTest::engine(1).session().page_bytes();
  Engine engine = PrefixTest::engine(4, 4 * page);  // of 4 sequences with 4 pages each
  Scheduler scheduler(engine, observer_, 256);
  std::vector<Given> given;
  std::vector<Request> requests;
  for (int i = 0; i < 5; ++i) given.push_back({{book.begin() + i, book.begin() + 100 + i}, i % 2 == 1});
  given.push_back({{book.begin(), book.begin() + 300}, false});
  for (const Given& g : given) requests.push_back(request(g, 200));
  for (Request& r : requests) scheduler.add(r);
  const auto answers = all(scheduler);
  ASSERT_EQ(answers.size(), given.size());
  for (size_t i = 0; i < given.size(); ++i) {
    EXPECT_EQ(answers.at(i).receipt_hash, alone(given[i], 200)) << i;
    EXPECT_EQ(answers.at(i).receipt.tokens.size(), 200u);
    EXPECT_EQ(answers.at(i).cached_tokens, 0);
  }
  EXPECT_GT(scheduler.figures().preemptions, 0u);
  EXPECT_EQ(scheduler.figures().kv_cache_usage, 0);
}

// Where sequences share no pages, as beside states of fixed size, a free one keeps what it has.
TEST(PagePoolTest, WithoutPagesASequenceKeepsItsTokens) {
  const run::TinyModel model(true, 4, /*hybrid=*/true);
  run::Options options;
  options.threads = 1, options.capacity = 64, options.sequences = 2;
  auto opened = run::Session::open(model.plan, model.folder, options);
  ASSERT_TRUE(opened) << opened.error().message;
  run::Session& session = *opened;
  ASSERT_FALSE(session.shares_pages());
  PagePool pool(session, Digest{}, true);
  const std::vector<int64_t> all{0, 1};
  const auto computed = [&](int64_t sequence, const std::vector<int32_t>& tokens) {
    const int64_t had = pool.begin(sequence, tokens);
    EXPECT_TRUE(session.step(std::span(tokens).subspan(static_cast<size_t>(had)), false, sequence));
    PageNames names = pool.names();
    EXPECT_EQ(pool.append_kept(sequence, names, tokens), 0);
    pool.release(sequence, names, tokens);
    return had;
  };
  const std::vector<int32_t> first{1, 2, 3, 4, 5, 6, 7, 8}, other{9, 8, 7, 6};
  EXPECT_EQ(computed(0, first), 0);
  EXPECT_EQ(computed(1, other), 0);
  EXPECT_EQ(pool.usage(), 12.0 / 128);
  EXPECT_TRUE(pool.make_room(1000));
  std::vector<int32_t> longer = first;
  longer.push_back(3);
  EXPECT_EQ(pool.choose(all, longer), 0);
  EXPECT_EQ(pool.choose(all, other), 1);
  EXPECT_EQ(computed(0, longer), 8);
  EXPECT_EQ(computed(1, other), 0);  // its last token is wanted, and a state does not go back
  pool.overwrite(0);
  longer.push_back(4);
  EXPECT_EQ(computed(0, longer), 0);
  longer.push_back(5);
  EXPECT_EQ(computed(0, longer), 10);
  pool.clear();
  longer.push_back(6);
  EXPECT_EQ(computed(0, longer), 0);
}

// Answers one at a time find the pages of all earlier ones, and go on behind the last one.
TEST_F(PrefixTest, StreamsFindWhatEarlierAnswersHad) {
  const std::vector<int32_t> book = tokens_of(200);
  const Given first{{book.begin(), book.begin() + 300}, false};
  const Given other{{book.begin() + 20, book.begin() + 180}, true};
  Given half = first, parts = first;
  half.tokens.resize(200), half.tokens[190] = 7;  // parts within the second page
  parts.tokens.insert(parts.tokens.end(), {7, 8, 9});
  Engine engine = PrefixTest::engine(1);
  const auto cached = [&](const Given& given) {
    Request asked = request(given);
    AnswerStream stream = engine.stream(asked, observer_);
    for (auto piece = stream.next(); piece && *piece;) piece = stream.next();
    const auto answer = stream.finish();
    EXPECT_TRUE(answer);
    EXPECT_EQ(answer->receipt_hash, alone(given));
    return answer->cached_tokens;
  };
  EXPECT_EQ(cached(first), 0);
  EXPECT_EQ(cached(first), 299);   // all but the last one, which no full page has
  EXPECT_EQ(cached(half), kPage);  // nobody writes into the second page
  EXPECT_EQ(cached(other), 0);
  EXPECT_EQ(cached(parts), 2 * kPage);
  EXPECT_EQ(cached(other), kPage);
  EXPECT_EQ(cached(other), 159);
  {  // a scheduler has the same pages
    Scheduler scheduler(engine, observer_, 256);
    Request asked = request(first);
    scheduler.add(asked);
    const auto answers = all(scheduler);
    EXPECT_EQ(answers.at(0).receipt_hash, alone(first));
    EXPECT_EQ(answers.at(0).cached_tokens, 2 * kPage);
  }
  EXPECT_EQ(cached(half), kPage);
}

// The lowest priority first; a client that has had less before one that has had more.
TEST_F(PrefixTest, TheTurnIsThatOfPriorityAndService) {
  Engine engine = PrefixTest::engine(1);
  Scheduler scheduler(engine, observer_, 256);
  std::vector<Request> requests;
  for (int i = 0; i < 7; ++i) requests.push_back(request({{5, 6, 7}, false}, 4));
  const std::pair<int64_t, uint64_t> turns[] = {{0, 1}, {0, 1}, {0, 1}, {5, 3}, {-1, 1}, {0, 2}, {0, 2}};
  for (size_t i = 0; i < requests.size(); ++i) scheduler.add(requests[i], {turns[i].first, turns[i].second});
  std::vector<size_t> order;
  for (auto done = scheduler.next(); done && *done; done = scheduler.next())
    order.push_back((*done)->request);
  // 4 has the lowest priority. Then client 2, who has had nothing, and each in turn; 3 is last.
  EXPECT_EQ(order, (std::vector<size_t>{4, 5, 0, 6, 1, 2, 3}));
}

// A long prompt comes in parts, and a running answer has a token of every step.
TEST_F(PrefixTest, ALongPromptStopsNobody) {
  const std::vector<int32_t> book = tokens_of(200);
  const Given first{{5, 6, 7}, false}, second{{book.begin(), book.begin() + 300}, true};
  Engine engine = PrefixTest::engine(2);
  Scheduler scheduler(engine, observer_, 64);
  Request runs = request(first), comes = request(second);
  scheduler.add(runs);
  std::string seen;  // whose tokens each step has brought
  std::map<size_t, std::string> receipts;
  for (int turn = 0; turn < 20; ++turn) {
    if (turn == 2) scheduler.add(comes);
    const auto step = scheduler.step();
    ASSERT_TRUE(step) << step.error().message;
    for (const auto& token : step->tokens) seen += std::to_string(token.request);
    seen += ' ';
    for (const auto& [number, answer] : step->complete) receipts[number] = answer.receipt_hash;
  }
  EXPECT_EQ(seen, "0 0 0 0 0 0 01 01 01 01 01 01 1 1 1 1 1 1   ");
  EXPECT_EQ(receipts.at(0), alone(first));
  EXPECT_EQ(receipts.at(1), alone(second));
}

// The first token of a short prompt comes in a step of its own, which computes the prompt.
TEST_F(PrefixTest, AFirstTokenWaitsForNobodysNext) {
  const std::vector<int32_t> book = tokens_of(200);
  const Given first{{5, 6, 7}, false}, second{{8, 9, 10, 11}, true};
  const Given long_one{{book.begin(), book.begin() + 10}, false};
  Engine engine = PrefixTest::engine(3);
  Scheduler scheduler(engine, observer_, 256, /*by_time=*/true);
  Request runs = request(first), comes = request(second), longer = request(long_one);
  scheduler.add(runs);
  std::string seen;
  std::map<size_t, std::string> receipts;
  while (scheduler.running() + scheduler.waiting() > 0) {
    if (seen == "0 0 ") scheduler.add(comes);
    if (seen == "0 0 1 01 01 ") scheduler.add(longer);  // than a pass whose logits are all computed
    const auto step = scheduler.step();
    ASSERT_TRUE(step) << step.error().message;
    for (const auto& token : step->tokens) seen += std::to_string(token.request);
    seen += ' ';
    for (const auto& [number, answer] : step->complete) receipts[number] = answer.receipt_hash;
  }
  EXPECT_EQ(seen.substr(0, 20), "0 0 1 01 01 012 012 ");
  EXPECT_EQ(receipts.at(0), alone(first));
  EXPECT_EQ(receipts.at(1), alone(second));
  EXPECT_EQ(receipts.at(2), alone(long_one));
}

// Random arrivals and cancels over prompts with common pages, in pools of all sizes.
TEST_F(PrefixTest, RandomCompanyDoesNotShow) {
  const uint64_t page = PrefixTest::engine(1).session().page_bytes();
  const auto most = [](size_t prompt) { return prompt < 6 ? int64_t{270} : int64_t{9}; };
  for (const auto& [seed, pages, partitions] :
       {std::tuple{1u, uint64_t{0}, 1}, {2u, uint64_t{4}, 1}, {3u, uint64_t{6}, 2}}) {
    std::mt19937 random(seed);
    const auto draw = [&](size_t below) { return static_cast<size_t>(random() % below); };
    Engine engine = PrefixTest::engine(5, pages * page, partitions);
    Scheduler scheduler(engine, observer_, static_cast<int64_t>(16 + draw(300)), /*by_time=*/pages == 0);
    std::map<size_t, std::pair<size_t, Request>> asked;  // by number: the prompt, and its request
    size_t answered = 0, cancelled = 0;
    for (int left = 30; left > 0 || scheduler.running() + scheduler.waiting() > 0;) {
      for (size_t more = draw(3); more > 0 && left > 0; --more, --left) {
        const size_t which = draw(prompts_.size());
        auto& [prompt, kept] =
            asked.try_emplace(asked.size(), which, request(prompts_[which], most(which))).first->second;
        scheduler.add(kept, {static_cast<int64_t>(draw(3)), draw(3)});
      }
      if (draw(60) == 0 && !asked.empty()) scheduler.cancel(draw(asked.size())), ++cancelled;
      auto step = scheduler.step();
      ASSERT_TRUE(step) << step.error().message;
      EXPECT_TRUE(step->failed.empty());
      for (const auto& [number, answer] : step->complete) {
        const size_t of = asked.at(number).first;
        EXPECT_EQ(answer.receipt_hash, alone(prompts_[of], most(of))) << "seed " << seed;
        ++answered;
      }
    }
    EXPECT_GT(answered, 15u) << cancelled;
    EXPECT_GT(scheduler.figures().prefix_hits, 0u);
    EXPECT_EQ(scheduler.figures().preemptions > 0, pages > 0) << seed;
    EXPECT_EQ(scheduler.figures().kv_cache_usage, 0);
  }
}

// Case 4: a page is found under its own tokens and its own root, and nowhere else.
TEST(PrefixCacheTest, PagesAreFoundByAllOfTheirTokens) {
  constexpr int64_t kSize = 4;
  std::mt19937 random(7);
  PrefixCache cache;
  std::map<std::pair<int, std::vector<int32_t>>, int64_t> want;  // by root and tokens up to the page's end
  std::vector<std::vector<int32_t>> sequences;
  int64_t pages = 0;
  for (int turn = 0; turn < 2000; ++turn) {
    const int of_root = static_cast<int>(random() % 2);
    Digest root{};
    root[31] = static_cast<uint8_t>(of_root);
    std::vector<int32_t> tokens;
    while (tokens.size() < 20) tokens.push_back(static_cast<int32_t>(random() % 2));
    PageNames names(root, kSize);
    const auto prefix = [&](int64_t i) {
      return std::pair(of_root, std::vector<int32_t>(tokens.begin(), tokens.begin() + (i + 1) * kSize));
    };
    std::vector<int64_t> expected;
    for (int64_t i = 0; i < 5 && want.contains(prefix(i)); ++i) expected.push_back(want.at(prefix(i)));
    EXPECT_EQ(cache.find(names, tokens, 0, 5), expected);
    const auto next = static_cast<int64_t>(expected.size());
    if (next < 5) cache.add(names.of(tokens, next), want[prefix(next)] = pages++);
    if (turn % 3 == 0) {
      const auto gone = cache.evict([](int64_t page) { return page % 5 != 0; });
      std::erase_if(want, [&](const auto& kept) { return gone && kept.second == *gone; });
    }
    EXPECT_EQ(cache.size(), want.size());
  }
  // Those used longest ago go first, and the end of a sequence before its begin.
  PrefixCache two;
  PageNames a(Digest{}, kSize), b(Digest{1}, kSize);
  const std::vector<int32_t> tokens(12, 3);
  for (int64_t i = 0; i < 3; ++i) two.add(a.of(tokens, i), i), two.add(b.of(tokens, i), 10 + i);
  two.find(b, tokens, 0, 3), two.find(a, tokens, 0, 2);
  std::vector<int64_t> order;
  while (const auto gone = two.evict([](int64_t) { return true; })) order.push_back(*gone);
  EXPECT_EQ(order, (std::vector<int64_t>{2, 12, 11, 10, 1, 0}));
}

}  // namespace
}  // namespace invar::generate
#endif
