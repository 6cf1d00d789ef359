// A command under way, or the last one: what its events and its output say so far.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/event.h"

namespace invar::tui {

struct PhaseView {
  enum class State { running, done, stopped };
  std::string name;
  State state = State::running;
  int64_t done = -1, total = -1;
  std::string unit, detail;
  double ms = -1;
  double began = 0;  // seconds of the clock that the caller has
  // The part that is done, 0 to 1, if the total is known.
  std::optional<double> fraction() const;
};

struct ReceiptView {
  std::string path, hash;
  std::string status, detail;  // of its verdict; "" = none yet
};

class Job {
 public:
  enum class State { running, cancelling, done, failed, cancelled };
  // `arguments`: from the subcommand on. `now`: seconds of one clock in all functions.
  Job(std::vector<std::string> arguments, double now);

  // Bytes as they come. Lines of `err` that are events change the view; others go to the log.
  void read_err(std::string_view bytes, double now);
  void read_out(std::string_view bytes);
  void cancel() { state_ = State::cancelling; }
  // The process ended: by `signal`, or with `code` where that is 0.
  void end(int code, int signal, double now);
  // Adds what the user said in a conversation.
  void say(const std::string& text);
  bool is_conversation() const { return command() == "chat"; }
  // A conversation that runs and waits for what the user says.
  bool waits() const;

  const std::vector<std::string>& arguments() const { return arguments_; }
  const std::string& command() const { return arguments_.front(); }
  State state() const { return state_; }
  bool running() const { return state_ == State::running || state_ == State::cancelling; }
  double seconds(double now) const { return (running() ? now : ended_) - began_; }
  const std::vector<PhaseView>& phases() const { return phases_; }
  // The last phase that runs.
  const PhaseView* current() const;
  // Bytes as the program gave them; whoever shows them escapes them (Wrapped).
  const std::string& answer() const { return answered_ ? answer_ : out_; }
  const std::string& log() const { return log_; }  // lines
  const std::vector<ReceiptView>& receipts() const { return receipts_; }
  const std::optional<Event>& error() const { return error_; }
  // The rate of the decode phase; 0: not known.
  double tokens_per_second() const { return rate_; }
  // "done", "cancelled", "failed: MESSAGE": one line about the whole.
  std::string summary() const;

 private:
  void read_line(std::string_view line, double now);
  void apply(const Event&, double now);
  void apply_phase(const Event&, double now);
  void measure(const PhaseView&, double now);
  void add_log(std::string_view line);
  void add_remark(std::string_view text);

  std::vector<std::string> arguments_;
  double began_, ended_ = 0;
  State state_ = State::running;
  std::vector<PhaseView> phases_;
  std::string answer_, out_, line_;
  bool answered_ = false, loaded_ = false, asked_ = false;
  int64_t prompt_ = -1;           // whose text comes
  std::string log_, last_error_;  // the last line of `invar: ...`
  std::vector<ReceiptView> receipts_;
  std::optional<Event> error_;
  double rate_ = 0, rate_began_ = 0;
  int64_t rate_from_ = -1;
  int code_ = 0, signal_ = 0;
};

// "5 867", "12.5": a rate in few digits.
std::string rate_text(double per_second);
// "27 ms", "1.2 s", "3:05".
std::string duration_text(double seconds);

}  // namespace invar::tui
