#include "model/job.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace invar::tui {
namespace {

constexpr size_t kMostLog = 1 << 20;      // of a log that is shown
constexpr size_t kLongestLine = 1 << 20;  // of an event; longer ones are cut
constexpr size_t kMostText = 8 << 20;     // of an answer that is shown
constexpr size_t kMostPhases = 64;        // the last ones

// The start of what has become too long goes.
void append_bounded(std::string& text, std::string_view more, size_t most = kMostText) {
  text += more;
  if (text.size() <= most) return;
  size_t cut = text.find('\n', text.size() - most / 2);
  cut = cut == text.npos ? text.size() - most / 2 : cut + 1;
  while (cut < text.size() && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) ++cut;
  text.erase(0, cut);
}

}  // namespace

std::optional<double> PhaseView::fraction() const {
  if (state == State::done) return 1;
  if (total <= 0 || done < 0) return std::nullopt;
  return std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
}

Job::Job(std::vector<std::string> arguments, double now) : arguments_(std::move(arguments)), began_(now) {}

void Job::read_err(std::string_view bytes, double now) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    if (line_.size() < kLongestLine) line_ += part.substr(0, kLongestLine - line_.size());
    if (end == bytes.npos) return;
    read_line(line_, now);
    line_.clear();
    bytes.remove_prefix(end + 1);
  }
}

void Job::read_out(std::string_view bytes) {
  append_bounded(out_, bytes);
}

void Job::say(const std::string& text) {
  asked_ = !text.starts_with('/') && !text.ends_with('\\');
  answered_ = true;
  if (!answer_.empty()) answer_ += answer_.ends_with('\n') ? "\n" : "\n\n";
  append_bounded(answer_, "> " + text + "\n");
}

bool Job::waits() const {
  return is_conversation() && state_ == State::running && loaded_ && !asked_ && !current();
}

// Adds words of the program to a conversation, on lines of their own.
void Job::add_remark(std::string_view text) {
  answered_ = true;
  if (!answer_.empty() && !answer_.ends_with('\n')) answer_ += '\n';
  append_bounded(answer_, std::string(text) + (text.ends_with('\n') ? "" : "\n"));
}

void Job::read_line(std::string_view line, double now) {
  if (const auto event = parse_event(line)) return apply(*event, now);
  if (line.find_first_not_of(" \t\r") == line.npos) return;
  constexpr std::string_view kError = "invar: ";
  if (line.starts_with(kError)) last_error_ = line.substr(kError.size());
  add_log(line);
}

void Job::add_log(std::string_view line) {
  append_bounded(log_, (log_.empty() ? "" : "\n") + std::string(line), kMostLog);
}

void Job::apply(const Event& e, double now) {
  switch (e.kind) {
    case Event::Kind::phase: return apply_phase(e, now);
    case Event::Kind::note:
      if (is_conversation() && (e.topic == "help" || e.topic == "forgotten" || e.topic == "saved"))
        return add_remark(e.topic == "help" ? e.text : "  " + e.topic + ": " + e.text);
      return add_log(e.topic.empty() ? e.text : e.topic + "  " + e.text);
    case Event::Kind::text: {
      answered_ = true;
      if (e.prompt != prompt_ && prompt_ >= 0 && !is_conversation())
        answer_ += (answer_.ends_with('\n') ? "\n" : "\n\n");
      if (e.prompt != prompt_ && (e.prompt > 0 || prompt_ >= 0) && !is_conversation())
        answer_ += "-- prompt " + std::to_string(e.prompt + 1) + " --\n";
      prompt_ = e.prompt;
      return append_bounded(answer_, e.text);
    }
    case Event::Kind::receipt:
      asked_ = false;
      receipts_.push_back({e.path, e.hash, "", ""});
      return add_log("receipt  " + e.path + "  " + e.hash);
    case Event::Kind::verdict: {
      const auto it = std::find_if(receipts_.begin(), receipts_.end(),
                                   [&](const ReceiptView& r) { return r.path == e.path; });
      ReceiptView& r = it == receipts_.end() ? receipts_.emplace_back() : *it;
      r.path = e.path, r.status = e.status, r.detail = e.detail;
      if (!e.hash.empty()) r.hash = e.hash;
      return add_log(e.status + "  " + e.path + (e.detail.empty() ? "" : "  " + e.detail));
    }
    case Event::Kind::error:
      error_ = e;
      asked_ = false;
      if (is_conversation() && loaded_) add_remark("  ! " + e.message);
      add_log("error  " + e.message);
      for (const std::string& item : e.items) add_log("       " + item);
      if (!e.hint.empty()) add_log("       " + e.hint);
      return;
  }
}

void Job::apply_phase(const Event& e, double now) {
  // The last one of its name that is not done; a phase may come again for the next prompt.
  const auto it = std::find_if(phases_.rbegin(), phases_.rend(), [&](const PhaseView& p) {
    return p.name == e.phase && p.state == PhaseView::State::running;
  });
  PhaseView* p = it == phases_.rend() ? nullptr : &*it;
  if (!p) {
    // Without an error, a phase that stopped before this one had nothing to do.
    if (!error_)
      std::erase_if(phases_, [](const PhaseView& one) { return one.state == PhaseView::State::stopped; });
    if (phases_.size() == kMostPhases) phases_.erase(phases_.begin());
    p = &phases_.emplace_back();
    p->name = e.phase, p->began = now;
    if (e.phase == "decode") rate_from_ = -1;
  }
  if (e.done >= 0) p->done = e.done;
  if (e.total >= 0) p->total = e.total;
  if (!e.unit.empty()) p->unit = e.unit;
  if (!e.detail.empty()) p->detail = e.detail;
  if (p->name == "decode" && e.per_second > 0)
    rate_ = e.per_second;
  else
    measure(*p, now);
  if (e.state == "stopped") p->state = PhaseView::State::stopped;
  if (e.state != "done") return;
  p->state = PhaseView::State::done;
  loaded_ |= p->name == "load";
  p->ms = e.ms >= 0 ? e.ms : 1000 * (now - p->began);
  // `invar` has said it without the first token, which prefill made.
  if (p->name == "decode" && p->done > 0 && p->ms > 0 && (e.done > 0 || rate_ <= 0))
    rate_ = 1000 * static_cast<double>(p->done) / p->ms;
  add_log(p->name + "  " + p->detail + (p->detail.empty() ? "" : "  ") + "(" + duration_text(p->ms / 1000) +
          ")");
}

// Tokens per second since the first event of the phase that counts them.
void Job::measure(const PhaseView& p, double now) {
  if (p.name != "decode" || p.done < 0) return;
  if (rate_from_ < 0) {
    rate_from_ = p.done, rate_began_ = now;
  } else if (now > rate_began_) {
    rate_ = static_cast<double>(p.done - rate_from_) / (now - rate_began_);
  }
}

const PhaseView* Job::current() const {
  const auto it = std::find_if(phases_.rbegin(), phases_.rend(),
                               [](const PhaseView& p) { return p.state == PhaseView::State::running; });
  return it == phases_.rend() ? nullptr : &*it;
}

void Job::end(int code, int signal, double now) {
  if (!line_.empty()) read_line(line_, now);
  line_.clear();
  const bool cancelled = state_ == State::cancelling && (signal != 0 || code != 0);
  code_ = code, signal_ = signal, ended_ = now;
  // A conversation goes on behind a line that was refused.
  const bool refused = is_conversation() && loaded_ && code == 2 && signal == 0;
  const bool done = refused || (code == 0 && signal == 0);
  state_ = cancelled ? State::cancelled : done ? State::done : State::failed;
  for (PhaseView& p : phases_)
    if (p.state == PhaseView::State::running) p.state = PhaseView::State::stopped;
}

std::string Job::summary() const {
  switch (state_) {
    case State::running: return "running";
    case State::cancelling: return "stopping";
    case State::done: return code_ == 0 ? "done" : "done; what was refused stands above";
    case State::cancelled: return "stopped: no receipt of what was under way";
    case State::failed: break;
  }
  if (signal_) return std::string("ended by signal ") + std::to_string(signal_) + ": " + strsignal(signal_);
  if (error_) return "exit code " + std::to_string(code_) + ": " + error_->message;
  if (!last_error_.empty()) return "exit code " + std::to_string(code_) + ": " + last_error_;
  for (const ReceiptView& r : receipts_)
    if (r.status == "failed") return "exit code " + std::to_string(code_) + ": a receipt does not hold";
  return "exit code " + std::to_string(code_);
}

std::string rate_text(double per_second) {
  char text[32];
  std::snprintf(text, sizeof text, per_second < 100 ? "%.1f" : "%.0f", per_second);
  return text;
}

std::string duration_text(double seconds) {
  char text[48];
  if (seconds < 1)
    std::snprintf(text, sizeof text, "%.0f ms", 1000 * seconds);
  else if (seconds < 60)
    std::snprintf(text, sizeof text, "%.1f s", seconds);
  else
    std::snprintf(text, sizeof text, "%d:%02d", static_cast<int>(seconds) / 60,
                  static_cast<int>(seconds) % 60);
  return text;
}

}  // namespace invar::tui
