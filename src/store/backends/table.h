// The tables of a store in SQL, which SQLite and PostgreSQL read alike: the parameters of a
// statement are $1, $2, ...
#pragma once

#include <string>
#include <string_view>

namespace invar::store {

// Of the tables; a store of another one is refused.
inline constexpr int kVersion = 1;

inline constexpr const char* kTables[] = {
    "CREATE TABLE IF NOT EXISTS receipts (id TEXT PRIMARY KEY, time BIGINT NOT NULL, key TEXT,"
    " text TEXT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS receipts_by_key ON receipts (key) WHERE key IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS receipts_by_time ON receipts (time, id)",
    "CREATE TABLE IF NOT EXISTS requests (answer TEXT NOT NULL, choice BIGINT NOT NULL,"
    " request TEXT NOT NULL, time BIGINT NOT NULL, model TEXT NOT NULL, receipt TEXT,"
    " finish_reason TEXT, prompt_tokens BIGINT NOT NULL, completion_tokens BIGINT NOT NULL,"
    " status BIGINT NOT NULL, prompt TEXT, PRIMARY KEY (answer, choice))",
    "CREATE INDEX IF NOT EXISTS requests_by_request ON requests (request)",
    "CREATE INDEX IF NOT EXISTS requests_by_time ON requests (time, answer, choice)",
};
inline constexpr const char* kPutReceipt =
    "INSERT INTO receipts (id, time, key, text) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
inline constexpr const char* kPutRequest =
    "INSERT INTO requests (answer, choice, request, time, model, receipt, finish_reason, prompt_tokens,"
    " completion_tokens, status, prompt) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
    " ON CONFLICT DO NOTHING";
inline constexpr const char* kReceipt = "SELECT text FROM receipts WHERE id = $1";
inline constexpr const char* kAnswer =
    "SELECT id, text, time FROM receipts WHERE key = $1 ORDER BY time LIMIT 1";
inline constexpr const char* kRequests =
    "SELECT answer, choice, request, time, model, receipt, finish_reason, prompt_tokens,"
    " completion_tokens, status, prompt FROM requests WHERE request = $1 ORDER BY answer, choice";
// $1: the time before which all of it goes.
inline constexpr const char* kExpireByTime[] = {"DELETE FROM receipts WHERE time < $1",
                                                "DELETE FROM requests WHERE time < $1"};
// $1: how many stay.
inline constexpr const char* kExpireByCount[] = {
    "DELETE FROM receipts WHERE id IN (SELECT id FROM receipts ORDER BY time DESC, id DESC"
    " LIMIT 1000000 OFFSET $1)",
    "DELETE FROM requests WHERE (answer, choice) IN (SELECT answer, choice FROM requests"
    " ORDER BY time DESC, answer DESC, choice DESC LIMIT 1000000 OFFSET $1)",
};

}  // namespace invar::store
