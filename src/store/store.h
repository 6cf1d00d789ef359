// What a server keeps: receipts under their ids, and a record of every request that began. One
// interface over a folder, SQLite and PostgreSQL.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace invar::store {

// Every text is UTF-8 without NUL. Times are milliseconds since 1970.

struct Entry {
  std::string id;    // the receipt's hash, 64 hexadecimal digits
  std::string text;  // what is kept of the receipt
  std::string key;   // names the request, where it has this answer alone; "": it has others
  int64_t time = 0;
};

// One answer of a request, or what became of it.
struct Record {
  std::string answer;  // an id of the server's, which no other request has
  int64_t choice = 0;
  std::string request;  // x-request-id
  std::string model;
  std::string receipt;  // its id; "": none
  std::string finish_reason;
  std::string prompt;  // JSON; "": not kept
  int64_t prompt_tokens = 0, completion_tokens = 0, status = 0, time = 0;
};

// How long things are kept; 0: for ever, any number.
struct Retention {
  int64_t seconds = 0;
  int64_t receipts = 0;
  bool bounded() const { return seconds > 0 || receipts > 0; }
};

// Of any thread: one call after another. An error says that the store is full, gone or broken, and
// that nothing of the call was kept; the next call tries again.
class Store {
 public:
  virtual ~Store() = default;
  // All of it or nothing, on the disk when it returns. What is there already stays as it is.
  virtual Status put(const std::vector<Entry>&, const std::vector<Record>&) = 0;
  // What was put as this id's text.
  virtual Result<std::optional<std::string>> receipt(const std::string& id) = 0;
  // The entry of this key.
  virtual Result<std::optional<Entry>> answer_to(const std::string& key) = 0;
  // The records of a request, in the order of their answers and choices.
  virtual Result<std::vector<Record>> records(const std::string& request) = 0;
  // Removes what is older than that, then the oldest receipts and records beyond the number.
  virtual Status expire(const Retention&, int64_t now) = 0;
  // Whether something could be put now.
  virtual Status probe() = 0;
};

// Each is made where it is not there. `where` of the last: postgresql://USER@HOST/DATABASE, as
// libpq reads it. Errors: bad_input, where it cannot be had, is another program's or another
// version's, or its library is not installed.
Result<std::unique_ptr<Store>> open_folder(const std::string& folder);
Result<std::unique_ptr<Store>> open_sqlite(const std::string& file);
Result<std::unique_ptr<Store>> open_postgresql(const std::string& where);
// The one that the value of `--store` means.
Result<std::unique_ptr<Store>> open(const std::string& where);

}  // namespace invar::store
