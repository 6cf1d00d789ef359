#include "store/backends/sql_store.h"

namespace invar::store {
namespace {

Cell or_null(const std::string& text) {
  return text.empty() ? Cell() : Cell(text);
}

std::string text_in(const Cell& cell) {
  const auto* const text = std::get_if<std::string>(&cell);
  return text ? *text : std::string();
}

int64_t number_in(const Cell& cell) {
  const auto* const number = std::get_if<int64_t>(&cell);
  return number ? *number : 0;
}

}  // namespace

Status SqlStore::put(const std::vector<Entry>& entries, const std::vector<Record>& records) {
  const std::lock_guard lock(mutex_);
  return database_->transaction([&]() -> Status {
    for (const Entry& e : entries)
      if (auto done = database_->run(kPutReceipt, {e.id, e.time, or_null(e.key), e.text}); !done)
        return done.error();
    for (const Record& r : records) {
      auto done = database_->run(kPutRequest, {r.answer, r.choice, r.request, r.time, r.model,
                                               or_null(r.receipt), or_null(r.finish_reason), r.prompt_tokens,
                                               r.completion_tokens, r.status, or_null(r.prompt)});
      if (!done) return done.error();
    }
    return {};
  });
}

Result<std::optional<std::string>> SqlStore::receipt(const std::string& id) {
  const std::lock_guard lock(mutex_);
  INVAR_TRY(const auto rows, database_->run(kReceipt, {id}));
  return rows.empty() ? std::nullopt : std::optional(text_in(rows[0][0]));
}

Result<std::optional<Entry>> SqlStore::answer_to(const std::string& key) {
  const std::lock_guard lock(mutex_);
  INVAR_TRY(const auto rows, database_->run(kAnswer, {key}));
  if (rows.empty()) return std::optional<Entry>();
  const Row& row = rows[0];
  return std::optional(Entry{text_in(row[0]), text_in(row[1]), key, number_in(row[2])});
}

Result<std::vector<Record>> SqlStore::records(const std::string& request) {
  const std::lock_guard lock(mutex_);
  INVAR_TRY(const auto rows, database_->run(kRequests, {request}));
  std::vector<Record> found;
  for (const Row& r : rows)
    found.push_back({text_in(r[0]), number_in(r[1]), text_in(r[2]), text_in(r[4]), text_in(r[5]),
                     text_in(r[6]), text_in(r[10]), number_in(r[7]), number_in(r[8]), number_in(r[9]),
                     number_in(r[3])});
  return found;
}

Status SqlStore::expire(const Retention& keep, int64_t now) {
  const std::lock_guard lock(mutex_);
  return database_->transaction([&]() -> Status {
    const auto all = [&](const auto& statements, int64_t parameter) -> Status {
      for (const char* const statement : statements)
        if (auto done = database_->run(statement, {parameter}); !done) return done.error();
      return {};
    };
    Status done;
    if (keep.seconds > 0) done = all(kExpireByTime, now - keep.seconds * 1000);
    if (done && keep.receipts > 0) done = all(kExpireByCount, keep.receipts);
    return done;
  });
}

// A row that is there for the length of a transaction: a full disk and a missing right show.
Status SqlStore::probe() {
  const std::lock_guard lock(mutex_);
  return database_->transaction([&]() -> Status {
    if (auto put =
            database_->run(kPutReceipt, {std::string("probe"), int64_t{0}, Cell(), std::string(4096, ' ')});
        !put)
      return put.error();
    if (auto gone = database_->run("DELETE FROM receipts WHERE id = $1", {std::string("probe")}); !gone)
      return gone.error();
    return {};
  });
}

}  // namespace invar::store
