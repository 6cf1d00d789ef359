// Requests to a server of OpenAI's protocol, as clients send them: the times of their tokens. Only
// members that every such server knows are sent.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "generate/observer.h"

namespace invar::bench {

struct LoadSettings {
  std::string url = "http://127.0.0.1:8000/v1";
  std::string served_model;                // "": the first that the server lists
  std::string api_key_file;                // "": no key is sent
  std::string requests_file;               // lines of OpenAI's batch form; "": prompts are made
  std::vector<int> clients;                // closed arrival: each sends its next request after an answer
  std::vector<double> rates;               // open arrival: requests per second, at random times (Poisson)
  int requests = 64;                       // of each load
  int prompt_words = 64, max_tokens = 64;  // of prompts that are made
  bool chat = false;                       // messages instead of prompts
  uint64_t seed = 0;                       // of arrival times and prompts
  int timeout = 600;                       // seconds without a byte
};

// What a load has brought. Times are in seconds.
struct LoadRow {
  int clients = 0;  // of closed arrival
  double rate = 0;  // of open arrival
  size_t requests = 0;
  double seconds = 0;                      // from the first request to the last answer
  uint64_t prompt_tokens = 0, tokens = 0;  // as the server counts them
  std::vector<double> first, gaps, whole;  // ascending: until the first piece, between pieces, until the end
  std::map<std::string, size_t> errors;    // by message
  size_t failed() const;
  double tokens_per_second() const { return seconds > 0 ? static_cast<double>(tokens) / seconds : 0; }
  double requests_per_second() const { return seconds > 0 ? static_cast<double>(whole.size()) / seconds : 0; }
};

struct LoadReport {
  std::string url, model;
  std::vector<LoadRow> rows;
};

// The value below which this share of them is, in 0 to 1; 0 of none.
double quantile(const std::vector<double>& ascending, double share);

// One load after another. bad_input: the server does not answer at all.
Result<LoadReport> measure_load(const LoadSettings&, generate::Observer&);

std::string load_table(const LoadReport&);
std::string load_json(const LoadReport&);
// Output tokens a second, and the times, of each load.
std::string load_svg(const LoadReport&);

}  // namespace invar::bench
