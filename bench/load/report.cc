// Writes the report of a load as a table, as JSON, and as SVG.
#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/text/json.h"
#include "bench/load/load.h"

namespace invar::bench {
namespace {

using json::Value;

template <class... Values>
std::string printed(const char* pattern, Values... values) {
  char text[512];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

std::string name_of_load(const LoadRow& row) {
  if (row.clients == 0) return printed("%g requests/s", row.rate);
  return std::to_string(row.clients) + (row.clients == 1 ? " client" : " clients");
}

// Seconds at half, at 99 of 100, and the most.
Value times_json(const std::vector<double>& ascending) {
  return {{"count", ascending.size()},
          {"median", quantile(ascending, 0.5)},
          {"p99", quantile(ascending, 0.99)},
          {"most", quantile(ascending, 1)}};
}

std::string times_text(const std::vector<double>& ascending) {
  return printed("%9.1f %9.1f", 1e3 * quantile(ascending, 0.5), 1e3 * quantile(ascending, 0.99));
}

std::string svg_text(int x, int y, const std::string& text, const char* anchor = "start") {
  return printed("<text x=\"%d\" y=\"%d\" text-anchor=\"%s\">", x, y, anchor) + text + "</text>\n";
}

}  // namespace

std::string load_table(const LoadReport& report) {
  std::string out = report.url + ", model " + json::quote(report.model) + "; times in ms: median, p99\n\n";
  out += printed("%-16s %8s %6s %9s %9s  %19s  %19s  %19s\n", "load", "answers", "errors", "req/s",
                 "tokens/s", "first token", "between tokens", "whole answer");
  for (const LoadRow& row : report.rows)
    out += printed("%-16s %8zu %6zu %9.2f %9.1f", name_of_load(row).c_str(), row.whole.size(), row.failed(),
                   row.requests_per_second(), row.tokens_per_second()) +
           "  " + times_text(row.first) + "  " + times_text(row.gaps) + "  " + times_text(row.whole) + "\n";
  bool any = false;
  for (const LoadRow& row : report.rows)
    for (const auto& [message, times] : row.errors) {
      if (!std::exchange(any, true)) out += "\nerrors\n";
      out += printed("%-16s %8zu  ", name_of_load(row).c_str(), times) + json::quote(message) + "\n";
    }
  return out;
}

std::string load_json(const LoadReport& report) {
  Value out = {{"url", report.url}, {"model", report.model}, {"loads", Value::array}};
  for (const LoadRow& row : report.rows) {
    Value one = {{"clients", row.clients ? Value(row.clients) : Value()},
                 {"rate", row.clients ? Value() : Value(row.rate)},
                 {"requests", row.requests},
                 {"answers", row.whole.size()},
                 {"seconds", row.seconds},
                 {"prompt_tokens", row.prompt_tokens},
                 {"tokens", row.tokens},
                 {"requests_per_second", row.requests_per_second()},
                 {"tokens_per_second", row.tokens_per_second()},
                 {"first_token", times_json(row.first)},
                 {"between_tokens", times_json(row.gaps)},
                 {"whole_answer", times_json(row.whole)},
                 {"errors", Value::object}};
    for (const auto& [message, times] : row.errors) one["errors"][message] = times;
    out["loads"].add(std::move(one));
  }
  return json::dump(out, {.indent = 1}) + "\n";
}

std::string load_svg(const LoadReport& report) {
  constexpr int kName = 130, kScale = 300, kLine = 16, kGap = 14, kBars = 4;
  double most_tokens = 1e-9, most_time = 1e-9;
  for (const LoadRow& row : report.rows) {
    most_tokens = std::max(most_tokens, row.tokens_per_second());
    most_time = std::max({most_time, quantile(row.first, 0.99), quantile(row.gaps, 0.99)});
  }
  const int height = 40 + static_cast<int>(report.rows.size()) * (kBars * kLine + kGap);
  const int right = kName + kScale + 110;
  std::string out = printed(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
      "font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      right + kScale + 160, height);
  out +=
      svg_text(kName, 20, "output tokens a second") + svg_text(right, 20, "ms: first token, between tokens");
  const auto bar = [&](int x, int y, double share, const char* colour, const std::string& text) {
    const int width = static_cast<int>(kScale * share);
    out += printed("<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"12\" fill=\"%s\"/>\n", x, y, width, colour);
    out += svg_text(x + width + 5, y + 10, text);
  };
  int y = 34;
  for (const LoadRow& row : report.rows) {
    out += svg_text(kName - 8, y + 10, name_of_load(row), "end");
    bar(kName, y, row.tokens_per_second() / most_tokens, "#4c78a8", printed("%.1f", row.tokens_per_second()));
    const struct {
      const char *name, *colour;
      double seconds;
    } bars[kBars] = {{"first token, median", "#54a24b", quantile(row.first, 0.5)},
                     {"first token, p99", "#a6d49f", quantile(row.first, 0.99)},
                     {"between tokens, median", "#e45756", quantile(row.gaps, 0.5)},
                     {"between tokens, p99", "#f2a7a6", quantile(row.gaps, 0.99)}};
    for (const auto& one : bars) {
      bar(right, y, one.seconds / most_time, one.colour, printed("%.1f ", 1e3 * one.seconds) + one.name);
      y += kLine;
    }
    y += kGap;
  }
  return out + "</svg>\n";
}

}  // namespace invar::bench
