// Writes a report as a table, as JSON, and as SVG.
#include "bench/report/report.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "base/text/json.h"
#include "device/machine.h"

namespace invar::bench {
namespace {

using json::Value;

[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...) {
  char text[512];
  va_list args;
  va_start(args, pattern);
  std::vsnprintf(text, sizeof text, pattern, args);
  va_end(args);
  return text;
}

std::string time_text(double s) {
  return s < 1e-6   ? format("%.0f ns", s * 1e9)
         : s < 1e-3 ? format("%.1f us", s * 1e6)
                    : format("%.2f ms", s * 1e3);
}

std::string rate_text(const Row& r) {
  if (r.suite == "model") return format("%.0f tokens/s", 1 / r.seconds);
  return r.flops > 0 ? format("%.1f GFLOP/s", r.flops / r.seconds / 1e9)
                     : format("%.1f GB/s", r.bytes / r.seconds / 1e9);
}

// Nanoseconds of one thread, or of the GPU, per element of the result.
double per_element(const Row& r) {
  return r.elements > 0 ? r.seconds * std::max(r.threads, 1) / r.elements * 1e9 : 0;
}

std::string escape(const std::string& s) {
  std::string out;
  for (char c : s) out += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

}  // namespace

std::string table(const Report& r) {
  std::string out =
      (r.device == "cpu" ? processor() : r.device) + (r.peer.empty() ? "" : "; peer: " + r.peer) + "\n";
  for (const Limit& l : r.limits)
    out +=
        "limits " + l.isa + (l.threads ? format(", %d thread%s", l.threads, l.threads == 1 ? "" : "s") : "") +
        format(": %.1f GFLOP/s, read %.1f GB/s, copy %.1f GB/s\n", l.flops / 1e9, l.read / 1e9, l.copy / 1e9);
  size_t width = 5;
  for (const Row& row : r.rows) width = std::max(width, row.shape.size());
  out += format("\n%-9s %-11s %-*s %-9s %3s %10s %15s %8s %13s  %s\n", "suite", "operation",
                static_cast<int>(width), "shape", "isa", "thr", "time", "rate", "ns/elem", "of limit",
                r.peer.empty() ? "" : "peer / ours: medians, best");
  for (const Row& row : r.rows) {
    const std::string threads = row.threads ? std::to_string(row.threads) : "-";
    out += format("%-9s %-11s %-*s %-9s %3s %10s %15s %8.3f %5.0f%% %-6s  ", row.suite.c_str(),
                  row.op.c_str(), static_cast<int>(width), row.shape.c_str(), row.isa.c_str(),
                  threads.c_str(), time_text(row.seconds).c_str(), rate_text(row).c_str(), per_element(row),
                  100 * row.fraction(), row.by_flops ? "FMA" : "bytes");
    if (!row.peer.empty())
      out += format("%6.2f %5.2f%s  %s", row.ratio(), row.best_ratio(), row.unsteady() ? "~" : " ",
                    row.peer.c_str());
    out.erase(out.find_last_not_of(' ') + 1);
    out += "\n";
  }
  return out;
}

std::string json_of(const Report& r) {
  Value j{{"cpu", processor()},
          {"device", r.device},
          {"peer", r.peer},
          {"limits", Value::array},
          {"rows", Value::array}};
  for (const Limit& l : r.limits)
    j["limits"].add({{"isa", l.isa},
                     {"threads", l.threads},
                     {"flops_per_second", l.flops},
                     {"read_bytes_per_second", l.read},
                     {"copy_bytes_per_second", l.copy}});
  for (const Row& row : r.rows) {
    Value o{{"suite", row.suite},
            {"op", row.op},
            {"shape", row.shape},
            {"call", row.text},
            {"isa", row.isa},
            {"threads", row.threads},
            {"seconds", row.seconds},
            {"best_seconds", row.best_seconds},
            {"flops", row.flops},
            {"bytes", row.bytes},
            {"ns_per_element", per_element(row)},
            {"limit", row.by_flops ? "flops" : "bytes"},
            {"fraction_of_limit", row.fraction()}};
    if (!row.peer.empty()) {
      o["peer"] = row.peer, o["peer_seconds"] = row.peer_seconds, o["ratio"] = row.ratio();
      o["peer_best_seconds"] = row.peer_best_seconds, o["best_ratio"] = row.best_ratio();
    }
    j["rows"].add(std::move(o));
  }
  return json::dump(j, {.indent = 1}) + "\n";
}

std::string svg(const Report& r) {
  constexpr int kLeft = 430, kScale = 300, kLine = 18;  // kScale pixels are 1.0
  const int height = 50 + kLine * static_cast<int>(r.rows.size());
  std::string out = format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
      "font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      kLeft + 2 * kScale + 60, height);
  out += format(
      "<text x=\"%d\" y=\"14\">bar: fraction of the machine's limit; mark: peer time / our time</text>\n",
      kLeft);
  for (int tenth = 0; tenth <= 20; tenth += 5) {
    const int x = kLeft + kScale * tenth / 10;
    out += format(
        "<line x1=\"%d\" y1=\"34\" x2=\"%d\" y2=\"%d\" stroke=\"%s\"/><text x=\"%d\" y=\"30\" "
        "text-anchor=\"middle\">%.1f</text>\n",
        x, x, height, tenth == 10 ? "black" : "#ccc", x, tenth / 10.0);
  }
  int y = 40;
  for (const Row& row : r.rows) {
    const auto pixels = [](double v) { return static_cast<int>(kScale * std::clamp(v, 0.0, 2.0)); };
    out += format("<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", kLeft - 6, y + 11) +
           escape(row.op + " " + row.shape + ", " + row.isa + " x" + std::to_string(row.threads)) + "</text>";
    out += format("<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"12\" fill=\"%s\"/>", kLeft, y,
                  pixels(row.fraction()), row.by_flops ? "#4c78a8" : "#9ecae9");
    if (!row.peer.empty())
      out += format("<rect x=\"%d\" y=\"%d\" width=\"3\" height=\"14\" fill=\"#e45756\"/>",
                    kLeft + pixels(row.ratio()) - 1, y - 1);
    out += "\n";
    y += kLine;
  }
  return out + "</svg>\n";
}

}  // namespace invar::bench
