// A store over a database that runs the statements of table.h.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include "store/backends/table.h"
#include "store/store.h"

namespace invar::store {

// A value of a statement: a number, a text, or NULL.
using Cell = std::variant<std::monostate, int64_t, std::string>;
using Row = std::vector<Cell>;

class Database {
 public:
  virtual ~Database() = default;
  virtual Result<std::vector<Row>> run(const char* statement, const Row& parameters) = 0;
  // Runs it between BEGIN and COMMIT; after an error nothing of it stays.
  virtual Status transaction(const std::function<Status()>&) = 0;
};

class SqlStore : public Store {
 public:
  explicit SqlStore(std::unique_ptr<Database> database) : database_(std::move(database)) {}
  Status put(const std::vector<Entry>&, const std::vector<Record>&) override;
  Result<std::optional<std::string>> receipt(const std::string& id) override;
  Result<std::optional<Entry>> answer_to(const std::string& key) override;
  Result<std::vector<Record>> records(const std::string& request) override;
  Status expire(const Retention&, int64_t now) override;
  Status probe() override;

 private:
  std::mutex mutex_;
  const std::unique_ptr<Database> database_;
};

}  // namespace invar::store
