// invar-tui: a form, the command that it makes, and its receipts, in the terminal. `invar tui`
// starts it.
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>

#include "base/text/display.h"
#include "child.h"
#include "model/saved.h"
#include "pages/app.h"
#include "signals.h"
#include "terminal.h"

namespace invar::tui {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string invar, model, receipts;
};

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The program of this one's folder.
std::string invar_beside() {
  std::error_code ec;
  const fs::path self = fs::read_symlink("/proc/self/exe", ec);
  return ec ? "invar" : (self.parent_path() / "invar").string();
}

// Keys, the child and the screen, in turns. Nothing waits but poll().
class Loop {
 public:
  Loop(const Options& o, Terminal& terminal, Signals& signals)
      : options_(o), terminal_(terminal), signals_(signals), app_(first_form(o), o.receipts) {}
  // The signal that ended it, or 0.
  int run();

 private:
  static Form first_form(const Options& o) {
    Form form = load_form(saved_form_path());
    if (!o.model.empty()) form[Field::model] = o.model;
    return form;
  }
  void wait(int milliseconds);
  void read_keys();
  void read_child();
  void read_lister();
  void serve(const Request&);
  void start(const Request&);

  const Options& options_;
  Terminal& terminal_;
  Signals& signals_;
  App app_;
  Child child_, lister_;
  std::string listed_;
  std::optional<Child::End> end_;  // of the child, whose streams may hold something yet
  double drawn_ = 0;
  bool dirty_ = true, over_ = false;
};

void Loop::wait(int milliseconds) {
  pollfd streams[6] = {{STDIN_FILENO, POLLIN, 0}, {signals_.stream(), POLLIN, 0}, {child_.out(), POLLIN, 0},
                       {child_.err(), POLLIN, 0}, {lister_.out(), POLLIN, 0},     {lister_.err(), POLLIN, 0}};
  if (::poll(streams, 6, milliseconds) > 0 && (streams[0].revents & (POLLHUP | POLLERR | POLLNVAL)))
    over_ = true;  // the terminal is gone
}

int Loop::run() {
  constexpr double kFrame = 1.0 / 30;
  while (!over_) {
    const Signals::Came came = signals_.take();
    if (came.end) return came.end;
    if (came.continued) terminal_.redraw_all();
    if (came.resized) terminal_.resize(), dirty_ = true;
    read_child();
    read_lister();
    const bool more = app_.work();
    dirty_ = dirty_ || more || (app_.running() && seconds_now() - drawn_ > 0.2);
    if (dirty_ && seconds_now() - drawn_ >= kFrame) {
      Canvas canvas = terminal_.canvas();
      app_.draw(canvas, seconds_now());
      terminal_.show(canvas);
      drawn_ = seconds_now();
      dirty_ = false;
    }
    wait(more ? 0 : dirty_ ? 1000 * kFrame : app_.running() ? 100 : 1000);
    read_keys();
  }
  return 0;
}

void Loop::read_keys() {
  while (std::optional<Key> key = terminal_.key()) {
    dirty_ = true;
    if (key->is(Key::Kind::mouse)) {
      Canvas canvas = terminal_.canvas();
      app_.draw(canvas, seconds_now());
      *key = canvas.pressed(key->x, key->y);
      if (key->is(Key::Kind::none)) continue;
    }
    app_.handle(*key, seconds_now());
    for (const Request& r : app_.take_requests()) serve(r);
  }
}

void Loop::read_child() {
  if (!child_.running() && !end_) return;
  constexpr int kReads = 16;  // at a time; a fast child does not keep the keys waiting
  bool empty = false;
  for (int i = 0; i < kReads && !empty; ++i) {
    const std::string out = child_.read_out(), err = child_.read_err();
    if (!out.empty()) app_.read_out(out);
    if (!err.empty()) app_.read_err(err, seconds_now());
    empty = out.empty() && err.empty();
    dirty_ = dirty_ || !empty;
  }
  child_.flush();
  if (!end_) end_ = child_.end();
  // What a process that it left behind still holds open is not waited for.
  if (!end_ || !empty) return;
  child_.close_streams();
  app_.ended(end_->code, end_->signal, seconds_now());
  end_.reset();
  dirty_ = true;
}

void Loop::read_lister() {
  if (!lister_.running()) return;
  lister_.read_err();
  for (std::string more; !(more = lister_.read_out()).empty();) listed_ += more;
  if (!lister_.end()) return;
  for (std::string more; !(more = lister_.read_out()).empty();) listed_ += more;
  lister_.close_streams();
  app_.set_hub(hub_models(listed_));
  dirty_ = true;
}

void Loop::start(const Request& r) {
  std::vector<std::string> arguments = r.arguments;
  arguments.insert(arguments.begin() + 1, {"--progress", "json"});
  // Receipts go into folders that are there.
  std::error_code ec;
  const Form& form = app_.form();
  if (arguments.front() == "run")
    fs::create_directories(fs::path(form[Field::receipt_path]).parent_path(), ec);
  const Status saved = save_form(saved_form_path(), form);
  if (!saved) app_.say(saved.error().message);
  const Status started = child_.start(options_.invar, arguments, r.speaks);
  if (!started) app_.not_started(started.error().message, seconds_now());
}

void Loop::serve(const Request& r) {
  switch (r.kind) {
    case Request::Kind::start: return start(r);
    case Request::Kind::stop: return child_.signal(SIGINT);
    case Request::Kind::kill: return child_.signal(SIGKILL);
    case Request::Kind::say: return child_.say(r.text);
    case Request::Kind::quit: over_ = true; return;
    case Request::Kind::list_models:
      if (lister_.running()) return;
      listed_.clear();
      (void)static_cast<bool>(lister_.start(options_.invar, {"cache", "list", "--json"}, false));
      return;
  }
}

int main_of(const Options& options) {
  Signals signals;
  auto terminal = Terminal::open();
  if (!terminal) {
    std::fprintf(stderr, "invar-tui: %s\n", printable(terminal.error()).c_str());
    return static_cast<int>(terminal.error().code);
  }
  int signal = 0;
  {
    Loop loop(options, **terminal, signals);
    signal = loop.run();
  }
  terminal = Error{Code::internal, ""};  // the terminal as it was
  if (signal == 0) return 0;
  ::signal(signal, SIG_DFL);
  ::raise(signal);
  return 128 + signal;
}

}  // namespace
}  // namespace invar::tui

int main(int argc, char** argv) {
  CLI::App app{"A form, the command that it makes, and its receipts, in the terminal.", "invar-tui"};
  app.set_version_flag("--version", INVAR_VERSION);
  invar::tui::Options options{invar::tui::invar_beside(), "", ""};
  app.add_option("--model-name", options.model, "checkpoint folder, or org/name on the Hugging Face hub");
  app.add_option("--receipts", options.receipts, "the folder whose receipts are listed");
  app.add_option("--invar", options.invar, "the program that does the work (default: invar beside this one)");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    std::fprintf(stderr, "invar-tui: %s: see `invar-tui --help`\n", invar::printable(e.what()).c_str());
    return 2;
  }
  return invar::tui::main_of(options);
}
