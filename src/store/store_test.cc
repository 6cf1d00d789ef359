// The contract of every store. INVAR_TEST_POSTGRESQL names a database that a test may fill
// (tests/serve/test_store.py starts a server and gives one).
#include "store/store.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace invar::store {
namespace {

namespace fs = std::filesystem;

std::string id_of(int n) {
  std::string id(64, '0');
  const std::string digits = std::to_string(n);
  return id.replace(64 - digits.size(), digits.size(), digits);
}

Entry entry(int n, int64_t time = 1) {
  return {id_of(n), "{\"receipt\": " + std::to_string(n) + ", \"text\": \"\xc3\xa9 \\u0000 '\"}", "", time};
}

Record record(const std::string& answer, int64_t choice = 0, int64_t time = 1) {
  return {answer, choice, "req-1", "a model", id_of(1), "stop", "\"RO'MEO\"", 3, 4, 200, time};
}

bool has_sqlite() {
  const auto made = open("/nowhere/store");
  return made || made.error().message.find("libsqlite3") == std::string::npos;
}

struct Kind {
  std::string name;
  Result<std::unique_ptr<Store>> (*open)(const std::string&);
  bool keeps_records;  // and keys, for another process
};

class StoreTest : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    char name[] = "/tmp/invar-store-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
    where_ = folder_ + "/store";
    if (GetParam().name == "sqlite" && !has_sqlite()) GTEST_SKIP() << "no SQLite here";
    if (GetParam().name != "postgresql") return;
    const char* const given = std::getenv("INVAR_TEST_POSTGRESQL");
    if (!given) GTEST_SKIP() << "no INVAR_TEST_POSTGRESQL: tests/serve/test_store.py gives one";
    where_ = given;
    store();
    ASSERT_TRUE(store_->expire({.seconds = 1}, int64_t{1} << 60));  // nothing of an earlier test
  }
  void TearDown() override {
    store_.reset();
    fs::remove_all(folder_);
  }
  Store& store() {
    if (!store_) {
      auto made = GetParam().open(where_);
      if (!made) throw std::runtime_error(made.error().message);
      store_ = *std::move(made);
    }
    return *store_;
  }
  void reopen() { store_.reset(), store(); }
  std::string text(int n) {
    const auto found = store().receipt(id_of(n));
    EXPECT_TRUE(found) << found.error().message;
    return found && *found ? **found : "none";
  }
  size_t count_records() {
    const auto found = store().records("req-1");
    EXPECT_TRUE(found);
    return found->size();
  }

  std::string folder_, where_;
  std::unique_ptr<Store> store_;
};

TEST_P(StoreTest, KeepsReceiptsOverARestart) {
  ASSERT_TRUE(store().put({entry(1), entry(2)}, {}));
  EXPECT_EQ(text(1), entry(1).text);
  EXPECT_EQ(text(3), "none");
  EXPECT_FALSE(*store().receipt("../../etc/passwd"));
  EXPECT_FALSE(*store().receipt("' OR 1=1 --"));
  reopen();
  EXPECT_EQ(text(1), entry(1).text);
  EXPECT_EQ(text(2), entry(2).text);
}

TEST_P(StoreTest, WhatIsThereStays) {
  Entry other = entry(1);
  other.text = "{}";
  ASSERT_TRUE(store().put({entry(1)}, {record("a")}));
  ASSERT_TRUE(store().put({other, entry(2)}, {record("a"), record("a", 1)}));
  EXPECT_EQ(text(1), entry(1).text);
  EXPECT_EQ(text(2), entry(2).text);
  EXPECT_EQ(count_records(), 2u);
}

TEST_P(StoreTest, KeepsRecords) {
  ASSERT_TRUE(store().put({}, {record("b"), record("a", 1), record("a")}));
  Record failed = record("c");
  failed.receipt = failed.finish_reason = failed.prompt = "", failed.status = 503;
  ASSERT_TRUE(store().put({}, {failed}));
  if (GetParam().keeps_records) reopen();
  const auto found = *store().records("req-1");
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0].answer, "a");
  EXPECT_EQ(found[1].choice, 1);
  EXPECT_EQ(found[2].answer, "b");
  EXPECT_EQ(found[2].model, "a model");
  EXPECT_EQ(found[2].receipt, id_of(1));
  EXPECT_EQ(found[2].prompt, "\"RO'MEO\"");
  EXPECT_EQ(found[2].prompt_tokens, 3);
  EXPECT_EQ(found[2].completion_tokens, 4);
  EXPECT_EQ(found[2].time, 1);
  EXPECT_EQ(found[3].status, 503);
  EXPECT_EQ(found[3].receipt, "");
  EXPECT_TRUE(store().records("req-2")->empty());
}

TEST_P(StoreTest, FindsTheAnswerToAKey) {
  Entry keyed = entry(1);
  keyed.key = id_of(77);
  ASSERT_TRUE(store().put({keyed, entry(2)}, {}));
  const auto found = store().answer_to(id_of(77));
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->id, id_of(1));
  EXPECT_EQ((*found)->text, keyed.text);
  EXPECT_FALSE(*store().answer_to(id_of(78)));
  if (!GetParam().keeps_records) return;
  reopen();
  EXPECT_TRUE(*store().answer_to(id_of(77)));
}

TEST_P(StoreTest, ForgetsTheOldest) {
  const int64_t now = 1000 * int64_t{4102444800};
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(store().put({entry(i, i * 1000)}, {record("a", i, i * 1000)}));
    if (GetParam().keeps_records) continue;  // a file has the time of its writing
    fs::last_write_time(where_ + "/" + id_of(i) + ".json",
                        fs::file_time_type::clock::now() - std::chrono::seconds(100 - i));
  }
  ASSERT_TRUE(store().expire({.receipts = 4}, now));
  EXPECT_EQ(text(1), "none");
  EXPECT_EQ(text(2), entry(2).text);
  EXPECT_EQ(count_records(), 4u);
  if (GetParam().keeps_records) {
    ASSERT_TRUE(store().expire({.seconds = 2}, 5000));  // before 3000
    EXPECT_EQ(text(2), "none");
    EXPECT_EQ(text(3), entry(3).text);
    EXPECT_EQ(count_records(), 3u);
  }
  ASSERT_TRUE(store().expire({}, now));
  EXPECT_EQ(text(5), entry(5).text);
  ASSERT_TRUE(store().expire({.seconds = 1}, now));
  EXPECT_EQ(text(5), "none");
  EXPECT_EQ(count_records(), 0u);
}

TEST_P(StoreTest, ThreadsAndServersTogether) {
  store();
  const auto put_all = [&](int first) {
    auto own = GetParam().open(where_);
    ASSERT_TRUE(own) << own.error().message;
    for (int i = 0; i < 20; ++i)  // half of them are the other's, too
      ASSERT_TRUE((*own)->put({entry(first + i)}, {record("t" + std::to_string(first + i))}));
  };
  std::thread one([&] { put_all(100); }), two([&] { put_all(110); });
  one.join(), two.join();
  for (int i = 100; i < 130; ++i) EXPECT_EQ(text(i), entry(i).text);
  if (GetParam().keeps_records) {
    EXPECT_EQ(count_records(), 30u);
  }
}

TEST_P(StoreTest, CanBeProbed) {
  EXPECT_TRUE(store().probe());
  EXPECT_FALSE(*store().receipt("probe"));
  if (GetParam().name == "postgresql") return;
  fs::rename(where_, where_ + ".away");
  EXPECT_FALSE(store().probe());
  EXPECT_FALSE(store().put({entry(1)}, {}));
  fs::rename(where_ + ".away", where_);
  EXPECT_TRUE(store().put({entry(1)}, {}));
  EXPECT_EQ(text(1), entry(1).text);
}

INSTANTIATE_TEST_SUITE_P(Kinds, StoreTest,
                         ::testing::Values(Kind{"folder", open_folder, false}, Kind{"sqlite", open, true},
                                           Kind{"postgresql", open, true}),
                         [](const auto& kind) { return kind.param.name; });

TEST(StoreOfSqlite, RefusesWhatIsNoStore) {
  char name[] = "/tmp/invar-store-XXXXXX";
  ASSERT_NE(::mkdtemp(name), nullptr);
  const std::string folder = name, file = folder + "/text";
  std::ofstream(file) << std::string(1000, 'x');
  for (const std::string& where : {file, folder, folder + "/none/store", std::string("mysql://host/db")}) {
    const auto made = open(where);
    ASSERT_FALSE(made) << where;
    EXPECT_EQ(made.error().code, Code::bad_input);
    EXPECT_EQ(made.error().message.find('\n'), std::string::npos);
  }
  fs::remove_all(folder);
}

// A full disk: nothing of a call stays, what was there does, and it goes on when there is room.
TEST(StoreOfSqlite, AFullDisk) {
  if (!has_sqlite()) GTEST_SKIP() << "no SQLite here";
  char name[] = "/tmp/invar-store-XXXXXX";
  ASSERT_NE(::mkdtemp(name), nullptr);
  const std::string file = std::string(name) + "/store";
  auto made = open(file);
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_TRUE((*made)->put({entry(1)}, {record("a")}));
  rlimit was{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &was), 0);
  const auto old = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{fs::file_size(file + "-wal") + 5000, was.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  Entry large = entry(2);
  large.text.append(100000, ' ');
  const Status full = (*made)->put({entry(3), large}, {record("b")});
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &was), 0);
  std::signal(SIGXFSZ, old);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().message.find('\n'), std::string::npos);
  EXPECT_FALSE(*(*made)->receipt(id_of(3)));
  EXPECT_EQ(*(*made)->receipt(id_of(1)), entry(1).text);
  EXPECT_EQ((*made)->records("req-1")->size(), 1u);
  ASSERT_TRUE((*made)->put({entry(3), large}, {record("b")}));
  EXPECT_EQ(*(*made)->receipt(id_of(2)), large.text);
  fs::remove_all(name);
}

}  // namespace
}  // namespace invar::store
