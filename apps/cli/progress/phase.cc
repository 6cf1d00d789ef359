#include "progress/phase.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>

#include "base/text/display.h"
#include "base/text/size_text.h"
#include "console.h"

namespace invar::cli {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

std::string duration(double ms) {  // "12 ms", "1.2 s"
  char text[32];
  std::snprintf(text, sizeof text, ms < 1000 ? "%.0f ms" : "%.1f s", ms < 1000 ? ms : ms / 1000);
  return text;
}

// How far a phase is, and how fast since its first report.
struct Reached {
  uint64_t done = 0, total = 0;
  std::string unit;
  double rate = 0;  // of the unit, each second; 0: unknown
};

std::string amount(const Reached& r) {  // "12 of 64 tokens, 88.1 tokens/s, 2 s left"
  const bool bytes = r.unit == "bytes";
  std::string text = bytes ? size_text(r.done) + " of " + size_text(r.total)
                           : std::to_string(r.done) + " of " + std::to_string(r.total) + " " + r.unit;
  if (r.rate <= 0) return text;
  char rate[64];
  std::snprintf(rate, sizeof rate, "%.1f %s", r.rate, r.unit.c_str());
  return text + ", " + (bytes ? size_text(static_cast<uint64_t>(r.rate)) : rate) + "/s, " +
         duration(1000 * std::ceil(static_cast<double>(r.total - r.done) / r.rate)) + " left";
}

// A phase that shows itself; the base class measures.
class ShownPhase : public generate::Phase {
 public:
  ShownPhase(std::string_view name, Clock::duration pause)
      : name_(printable(name)), pause_(pause), start_(Clock::now()), last_(start_) {}

  void progress(int64_t done, int64_t total, std::string_view unit) override {
    if (done >= 0) report(static_cast<uint64_t>(done), static_cast<uint64_t>(std::max(done, total)), unit);
  }
  bool bytes(uint64_t done, uint64_t total) override {
    report(done, std::max(done, total), "bytes");
    return true;
  }

 protected:
  virtual void show(const Reached&) = 0;
  double passed() const { return milliseconds(Clock::now() - start_); }

  std::string name_;
  bool open_ = true;
  std::optional<Reached> unshown_;  // the last that came too soon behind another

 private:
  void report(uint64_t done, uint64_t total, std::string_view unit) {
    const auto now = Clock::now();
    if (!first_) first_.emplace(now, done);
    if (total == 0) return;
    Reached reached{done, total, std::string(unit), 0};
    if (const double seconds = milliseconds(now - first_->first) / 1000; done > first_->second && seconds > 0)
      reached.rate = static_cast<double>(done - first_->second) / seconds;
    if (now - last_ < pause_) return (void)(unshown_ = std::move(reached));
    last_ = now;
    unshown_.reset();
    show(reached);
  }

  const Clock::duration pause_;
  const Clock::time_point start_;
  Clock::time_point last_;
  std::optional<std::pair<Clock::time_point, uint64_t>> first_;
};

// Phases of every run. The summary after the answer has their times.
bool is_brief(std::string_view name) {
  return name == "prefill" || name == "encode" || name == "decode" || name == "seal";
}

// Lines in a pipe: one at the end, and one every ten seconds before that.
class LinePhase : public ShownPhase {
 public:
  explicit LinePhase(std::string_view name, Clock::duration pause = std::chrono::seconds(10))
      : ShownPhase(name, pause) {}
  void done(std::string_view detail) override {
    open_ = false;
    if (is_brief(name_) && !display().verbose) return;
    write_line(name_, printable(detail) + (detail.empty() ? "(" : " (") + duration(passed()) + ")");
  }

 protected:
  void show(const Reached& r) override {
    std::fprintf(stderr, "  %-9s %s\n", name_.c_str(), amount(r).c_str());
  }
};

// A bar on a terminal, which the line replaces.
class BarPhase : public LinePhase {
 public:
  explicit BarPhase(std::string_view name) : LinePhase(name, std::chrono::milliseconds(50)) {
    std::fprintf(stderr, "\r\033[K  %-9s …", name_.c_str());
  }
  ~BarPhase() override {  // an unfinished phase leaves the line clean
    if (open_) std::fputs("\r\033[K", stderr);
  }
  void done(std::string_view detail) override {
    std::fputs("\r\033[K", stderr);
    LinePhase::done(detail);
  }

 protected:
  void show(const Reached& r) override {
    const int room = terminal_width() - 1;
    const int width = std::clamp(room - 54, 5, 30);
    const auto full = static_cast<int>(static_cast<double>(r.done) / static_cast<double>(r.total) * width);
    std::string bar;
    for (int i = 0; i < width; ++i) bar += i < full ? "█" : "░";
    char percent[16];
    std::snprintf(percent, sizeof percent, " %3d%%  ", static_cast<int>(r.done * 100.0 / r.total));
    const int left = std::max(0, room - 12 - width - 7);
    std::fprintf(stderr, "\r\033[K  %-9s %s%s%s", name_.c_str(), bar.c_str(), percent,
                 amount(r).substr(0, static_cast<size_t>(left)).c_str());
    std::fflush(stderr);
  }
};

class EventPhase : public ShownPhase {
 public:
  explicit EventPhase(std::string_view name) : ShownPhase(name, std::chrono::milliseconds(50)) {
    emit({{"event", "phase"}, {"phase", name_}, {"state", "started"}});
  }
  ~EventPhase() override {  // it failed, or there was nothing to do
    if (open_) emit({{"event", "phase"}, {"phase", name_}, {"state", "stopped"}});
  }
  void done(std::string_view detail) override {
    open_ = false;
    if (unshown_) show(*unshown_);
    emit({{"event", "phase"},
          {"phase", name_},
          {"state", "done"},
          {"detail", detail},
          {"ms", std::round(passed() * 1000) / 1000}});
  }

 protected:
  void show(const Reached& r) override {
    json::Value event = {{"event", "phase"}, {"phase", name_},   {"state", "running"},
                         {"done", r.done},   {"total", r.total}, {"unit", r.unit}};
    if (r.rate > 0) event["per_second"] = std::round(r.rate * 1000) / 1000;
    emit(event);
  }
};

}  // namespace

std::unique_ptr<generate::Phase> make_phase(std::string_view name, ProgressForm form) {
  switch (form) {
    case ProgressForm::json: return std::make_unique<EventPhase>(name);
    case ProgressForm::bar: return std::make_unique<BarPhase>(name);
    case ProgressForm::lines: return std::make_unique<LinePhase>(name);
    default: return std::make_unique<generate::Phase>();
  }
}

}  // namespace invar::cli
