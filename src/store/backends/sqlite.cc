// A file of SQLite, by its library, which is opened at run time. The functions and numbers are
// SQLite's ABI, which is stable since version 3.0 (https://sqlite.org/c3ref/intro.html).
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "device/shared_library.h"
#include "store/backends/sql_store.h"

namespace invar::store {

struct SqliteConnection;  // sqlite3
struct SqliteStatement;   // sqlite3_stmt

namespace {

// SQLite's header
constexpr int kSqliteOk = 0, kSqliteRow = 100, kSqliteDone = 101, kSqliteInteger = 1, kSqliteNull = 5;
constexpr int kReadWrite = 2, kFullMutex = 0x10000;
constexpr int kApplication = 0x496e7672;  // "Invr"
constexpr int kBusyMilliseconds = 10000;  // another server writes

struct SqliteLibrary {
  int (*open_v2)(const char*, SqliteConnection**, int, const char*);
  int (*close)(SqliteConnection*);
  const char* (*errmsg)(SqliteConnection*);
  int (*busy_timeout)(SqliteConnection*, int);
  int (*prepare_v2)(SqliteConnection*, const char*, int, SqliteStatement**, const char**);
  int (*bind_text)(SqliteStatement*, int, const char*, int, void (*)(void*));
  int (*bind_int64)(SqliteStatement*, int, int64_t);
  int (*step)(SqliteStatement*);
  int (*column_count)(SqliteStatement*);
  int (*column_type)(SqliteStatement*, int);
  int64_t (*column_int64)(SqliteStatement*, int);
  const unsigned char* (*column_text)(SqliteStatement*, int);
  int (*column_bytes)(SqliteStatement*, int);
  int (*finalize)(SqliteStatement*);
  bool whole;

  // Null: there is none.
  static const SqliteLibrary* get() {
    static const SqliteLibrary library = load();
    return library.whole ? &library : nullptr;
  }

 private:
  static SqliteLibrary load() {
    SqliteLibrary l{};
    void* const file = open_library({"libsqlite3.so.0"});
    if (!file) return l;
    l.whole = true;
    const auto find = [&](auto*& function, const char* name) {
      l.whole &= find_function(file, name, function);
    };
    find(l.open_v2, "sqlite3_open_v2"), find(l.close, "sqlite3_close"), find(l.errmsg, "sqlite3_errmsg");
    find(l.busy_timeout, "sqlite3_busy_timeout"), find(l.prepare_v2, "sqlite3_prepare_v2");
    find(l.bind_text, "sqlite3_bind_text"), find(l.bind_int64, "sqlite3_bind_int64");
    find(l.step, "sqlite3_step"), find(l.column_count, "sqlite3_column_count");
    find(l.column_type, "sqlite3_column_type"), find(l.column_int64, "sqlite3_column_int64");
    find(l.column_text, "sqlite3_column_text"), find(l.column_bytes, "sqlite3_column_bytes");
    find(l.finalize, "sqlite3_finalize");
    return l;
  }
};

class Sqlite : public Database {
 public:
  Sqlite(const SqliteLibrary& library, std::string file) : l_(library), file_(std::move(file)) {}
  ~Sqlite() override { close(); }

  Result<std::vector<Row>> run(const char* text, const Row& parameters) override {
    if (!connection_) {
      INVAR_CHECK_OK(reopen_moved());
    }
    SqliteStatement* statement = nullptr;
    if (l_.prepare_v2(connection_, text, -1, &statement, nullptr) != kSqliteOk) return failure();
    const std::unique_ptr<SqliteStatement, int (*)(SqliteStatement*)> ends(statement, l_.finalize);
    for (size_t i = 0; i < parameters.size(); ++i) {
      const int place = static_cast<int>(i) + 1;
      int bound = kSqliteOk;  // what is not bound is NULL
      if (const auto* number = std::get_if<int64_t>(&parameters[i]))
        bound = l_.bind_int64(statement, place, *number);
      else if (const auto* string = std::get_if<std::string>(&parameters[i]))
        bound = l_.bind_text(statement, place, string->data(), static_cast<int>(string->size()), nullptr);
      if (bound != kSqliteOk) return failure();
    }
    std::vector<Row> rows;
    for (;;) {
      const int step = l_.step(statement);
      if (step == kSqliteDone) return rows;
      if (step != kSqliteRow) return failure();
      Row& row = rows.emplace_back();
      for (int column = 0; column < l_.column_count(statement); ++column)
        row.push_back(cell(statement, column));
    }
  }

  Status transaction(const std::function<Status()>& f) override {
    INVAR_CHECK_OK(reopen_moved());
    if (auto begun = run("BEGIN IMMEDIATE", {}); !begun) return begun.error();
    Status done = f();
    if (done)
      if (auto kept = run("COMMIT", {}); !kept) done = kept.error();
    if (!done) (void)run("ROLLBACK", {});
    return done;
  }

  Status open() {
    // Receipts have prompts in them: nobody else may read them.
    const int made = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (made < 0) return bad_input(file_ + ": the store cannot be opened: " + std::strerror(errno));
    struct stat now {};
    const bool known = ::fstat(made, &now) == 0;
    ::close(made);
    if (!known || !S_ISREG(now.st_mode)) return bad_input(file_ + ": the store is a file of SQLite");
    device_ = now.st_dev, inode_ = now.st_ino;
    if (l_.open_v2(file_.c_str(), &connection_, kReadWrite | kFullMutex, nullptr) != kSqliteOk)
      return close_after(failure());
    l_.busy_timeout(connection_, kBusyMilliseconds);
    if (const Status ready = prepare_tables(); !ready) return close_after(ready.error());
    return {};
  }

 private:
  Cell cell(SqliteStatement* statement, int column) const {
    const int type = l_.column_type(statement, column);
    if (type == kSqliteNull) return {};
    if (type == kSqliteInteger) return l_.column_int64(statement, column);
    const auto* const text = reinterpret_cast<const char*>(l_.column_text(statement, column));
    return std::string(text ? text : "", static_cast<size_t>(l_.column_bytes(statement, column)));
  }

  Status prepare_tables() {
    INVAR_TRY(const auto journal, run("PRAGMA journal_mode = WAL", {}));
    if (journal.empty() || journal[0][0] != Cell(std::string("wal")))
      return bad_input(file_ +
                       ": the store needs a file system of this machine: SQLite has no write-ahead log here");
    // On the disk before anybody hears of it.
    for (const char* pragma : {"PRAGMA synchronous = FULL", "PRAGMA trusted_schema = OFF"})
      if (auto set = run(pragma, {}); !set) return set.error();
    INVAR_TRY(const auto application, run("PRAGMA application_id", {}));
    INVAR_TRY(const auto version, run("PRAGMA user_version", {}));
    INVAR_TRY(const auto tables, run("SELECT count(*) FROM sqlite_master", {}));
    const auto is = [](const std::vector<Row>& rows, int64_t n) { return rows[0][0] == Cell(n); };
    if (is(application, kApplication)) {
      if (!is(version, kVersion))
        return bad_input(file_ + ": the store has another version than this build's, " +
                         std::to_string(kVersion) + ": use the invar that made it");
      return {};
    }
    if (!is(tables, 0))
      return bad_input(file_ + ": the file is another program's database, no store of Invar's");
    if (auto begun = run("BEGIN IMMEDIATE", {}); !begun) return begun.error();
    for (const char* statement : kTables)
      if (auto made = run(statement, {}); !made) return made.error();
    for (const std::string& pragma : {"PRAGMA application_id = " + std::to_string(kApplication),
                                      "PRAGMA user_version = " + std::to_string(kVersion)})
      if (auto set = run(pragma.c_str(), {}); !set) return set.error();
    if (auto kept = run("COMMIT", {}); !kept) return kept.error();
    return {};
  }

  // SQLite goes on with a file that has no name any more, which nobody would find again.
  Status reopen_moved() {
    struct stat now {};
    const bool there = ::stat(file_.c_str(), &now) == 0;
    if (there && connection_ && now.st_dev == device_ && now.st_ino == inode_) return {};
    if (!there) return bad_input(file_ + ": the store is gone: " + std::strerror(errno));
    close();
    return open();
  }

  Error failure() const {
    return bad_input(file_ + ": the store: " + (connection_ ? l_.errmsg(connection_) : "no memory"));
  }
  Error close_after(Error error) {
    close();
    return error;
  }
  void close() {
    if (connection_) l_.close(std::exchange(connection_, nullptr));
  }

  const SqliteLibrary& l_;
  const std::string file_;
  SqliteConnection* connection_ = nullptr;
  dev_t device_{};
  ino_t inode_{};
};

}  // namespace

Result<std::unique_ptr<Store>> open_sqlite(const std::string& file) {
  const SqliteLibrary* const library = SqliteLibrary::get();
  if (!library)
    return bad_input(
        "a store needs SQLite (libsqlite3.so.0): install the package libsqlite3-0 (a build without "
        "INVAR_LIBRARIES has no store)");
  auto database = std::make_unique<Sqlite>(*library, file);
  INVAR_CHECK_OK(database->open());
  return std::unique_ptr<Store>(std::make_unique<SqlStore>(std::move(database)));
}

}  // namespace invar::store
