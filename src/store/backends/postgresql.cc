// A database of PostgreSQL, by libpq, which is opened at run time. The functions and numbers are
// libpq's ABI, which is stable since version 9.0
// (https://www.postgresql.org/docs/current/libpq.html).
#include <charconv>

#include "base/text/utf8.h"
#include "device/shared_library.h"
#include "store/backends/sql_store.h"

namespace invar::store {

struct PgConnection;  // PGconn
struct PgResult;      // PGresult

namespace {

// libpq's header, and the server's catalog of types
constexpr int kConnectionOk = 0, kCommandOk = 1, kTuplesOk = 2;
constexpr unsigned kInt8 = 20;

struct PgLibrary {
  PgConnection* (*connect)(const char* const*, const char* const*, int);
  void (*finish)(PgConnection*);
  void (*reset)(PgConnection*);
  int (*status)(const PgConnection*);
  const char* (*error_message)(const PgConnection*);
  PgResult* (*exec_params)(PgConnection*, const char*, int, const unsigned*, const char* const*, const int*,
                           const int*, int);
  int (*result_status)(const PgResult*);
  int (*tuples)(const PgResult*);
  int (*fields)(const PgResult*);
  unsigned (*type)(const PgResult*, int);
  int (*is_null)(const PgResult*, int, int);
  const char* (*value)(const PgResult*, int, int);
  int (*length)(const PgResult*, int, int);
  void (*clear)(PgResult*);
  bool whole;

  // Null: there is none.
  static const PgLibrary* get() {
    static const PgLibrary library = load();
    return library.whole ? &library : nullptr;
  }

 private:
  static PgLibrary load() {
    PgLibrary l{};
    void* const file = open_library({"libpq.so.5"});
    if (!file) return l;
    l.whole = true;
    const auto find = [&](auto*& function, const char* name) {
      l.whole &= find_function(file, name, function);
    };
    find(l.connect, "PQconnectdbParams"), find(l.finish, "PQfinish"), find(l.reset, "PQreset");
    find(l.status, "PQstatus"), find(l.error_message, "PQerrorMessage");
    find(l.exec_params, "PQexecParams"), find(l.result_status, "PQresultStatus");
    find(l.tuples, "PQntuples"), find(l.fields, "PQnfields"), find(l.type, "PQftype");
    find(l.is_null, "PQgetisnull"), find(l.value, "PQgetvalue"), find(l.length, "PQgetlength");
    find(l.clear, "PQclear");
    return l;
  }
};

class Postgresql : public Database {
 public:
  Postgresql(const PgLibrary& library, std::string where) : l_(library), where_(std::move(where)) {}
  ~Postgresql() override {
    if (connection_) l_.finish(connection_);
  }

  Status open() {
    // What the address says counts more. A server that is silent is an error in seconds.
    const char* const names[] = {"connect_timeout", "tcp_user_timeout", "fallback_application_name", "dbname",
                                 nullptr};
    const char* const values[] = {"5", "10000", "invar", where_.c_str(), nullptr};
    connection_ = l_.connect(names, values, /*expand_dbname=*/1);
    if (!connection_ || l_.status(connection_) != kConnectionOk) return failure();
    return prepare();
  }

  Result<std::vector<Row>> run(const char* statement, const Row& parameters) override {
    auto rows = run_once(statement, parameters);
    if (rows || in_transaction_ || l_.status(connection_) == kConnectionOk) return rows;
    INVAR_CHECK_OK(reconnect());
    return run_once(statement, parameters);
  }

  // A connection that was lost is made again, and the transaction begins from its start: each of
  // its statements may be done twice.
  Status transaction(const std::function<Status()>& f) override {
    Status done = transaction_once(f);
    if (done || l_.status(connection_) == kConnectionOk) return done;
    INVAR_CHECK_OK(reconnect());
    return transaction_once(f);
  }

 private:
  Status transaction_once(const std::function<Status()>& f) {
    in_transaction_ = true;
    Status done;
    if (auto begun = run_once("BEGIN", {}); !begun) done = begun.error();
    if (done) done = f();
    if (done)
      if (auto kept = run_once("COMMIT", {}); !kept) done = kept.error();
    if (!done && l_.status(connection_) == kConnectionOk) (void)run_once("ROLLBACK", {});
    in_transaction_ = false;
    return done;
  }

  Status reconnect() {
    l_.reset(connection_);
    if (l_.status(connection_) != kConnectionOk) return failure();
    return prepare();
  }

  Status prepare() {
    for (const char* const setting : {"SET client_encoding = 'UTF8'", "SET client_min_messages = 'error'",
                                      "SET statement_timeout = '30s'", "SET synchronous_commit = 'on'"})
      if (auto set = run_once(setting, {}); !set) return set.error();
    return transaction_once([&]() -> Status {
      // Two servers may begin at once.
      if (auto locked = run_once("SELECT 1 FROM pg_advisory_xact_lock(1232958066)", {}); !locked)
        return locked.error();
      if (auto made = run_once("CREATE TABLE IF NOT EXISTS invar_store (version BIGINT NOT NULL)", {}); !made)
        return made.error();
      INVAR_TRY(const auto version, run_once("SELECT version FROM invar_store", {}));
      if (!version.empty()) {
        if (version[0][0] == Cell(int64_t{kVersion})) return {};
        return bad_input("the store in PostgreSQL has another version than this build's, " +
                         std::to_string(kVersion) + ": use the invar that made it, or another database");
      }
      for (const char* const statement : kTables)
        if (auto made = run_once(statement, {}); !made) return made.error();
      if (auto set = run_once("INSERT INTO invar_store VALUES ($1)", {int64_t{kVersion}}); !set)
        return set.error();
      return {};
    });
  }

  Result<std::vector<Row>> run_once(const char* statement, const Row& parameters) {
    std::vector<std::string> texts(parameters.size());
    std::vector<const char*> values(parameters.size(), nullptr);
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].index() == 0) continue;
      const auto* const number = std::get_if<int64_t>(&parameters[i]);
      texts[i] = number ? std::to_string(*number) : std::get<std::string>(parameters[i]);
      values[i] = texts[i].c_str();
    }
    const std::unique_ptr<PgResult, void (*)(PgResult*)> result(
        l_.exec_params(connection_, statement, static_cast<int>(values.size()), nullptr, values.data(),
                       nullptr, nullptr, /*result_format=*/0),
        l_.clear);
    const int status = l_.result_status(result.get());
    if (status != kCommandOk && status != kTuplesOk) return failure();
    std::vector<Row> rows(static_cast<size_t>(l_.tuples(result.get())));
    for (size_t r = 0; r < rows.size(); ++r)
      for (int column = 0; column < l_.fields(result.get()); ++column)
        rows[r].push_back(cell(result.get(), static_cast<int>(r), column));
    return rows;
  }

  Cell cell(PgResult* result, int row, int column) const {
    if (l_.is_null(result, row, column) != 0) return {};
    std::string text(l_.value(result, row, column), static_cast<size_t>(l_.length(result, row, column)));
    if (l_.type(result, column) != kInt8) return text;
    int64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
  }

  // libpq's messages have lines, the last of which may be empty, and no password.
  Error failure() const {
    std::string line;
    append_lossy(line, connection_ ? l_.error_message(connection_) : "no memory", false);
    while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.pop_back();
    for (char& c : line)
      if (c == '\n' || c == '\t') c = ' ';
    return bad_input("the store in PostgreSQL: " + line);
  }

  const PgLibrary& l_;
  const std::string where_;
  PgConnection* connection_ = nullptr;
  bool in_transaction_ = false;
};

}  // namespace

Result<std::unique_ptr<Store>> open_postgresql(const std::string& where) {
  const PgLibrary* const library = PgLibrary::get();
  if (!library)
    return bad_input(
        "a store in PostgreSQL needs libpq (libpq.so.5): install the package libpq5 (a build without "
        "INVAR_LIBRARIES has no store)");
  auto database = std::make_unique<Postgresql>(*library, where);
  INVAR_CHECK_OK(database->open());
  return std::unique_ptr<Store>(std::make_unique<SqlStore>(std::move(database)));
}

}  // namespace invar::store
