// invar-tui: a form, the command that it makes, and its receipts, in the terminal. `invar tui`
// starts it.
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
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
  // A stream that a process of the child still holds open is not waited for.
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

namespace {

constexpr const char* kUsage = R"(Usage: invar-tui [OPTIONS]

A form, the command that it makes, and its receipts, in the terminal.

  --model-name MODEL  checkpoint folder, or org/name on the Hugging Face hub
  --receipts FOLDER   the folder whose receipts are listed
  --invar FILE        the program that does the work (default: invar beside this one)
  --version           print the version
  -h, --help          print this help
)";

}  // namespace

int main(int argc, char** argv) {
  invar::tui::Options options{invar::tui::invar_beside(), "", ""};
  const std::pair<const char*, std::string*> known[] = {
      {"--model-name", &options.model}, {"--receipts", &options.receipts}, {"--invar", &options.invar}};
  const auto refused = [](const std::string& why) {
    std::fprintf(stderr, "invar-tui: %s: see `invar-tui --help`\n", invar::printable(why).c_str());
    return 2;
  };
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--help" || word == "-h") return std::fputs(kUsage, stdout) < 0;
    if (word == "--version") return std::puts(INVAR_VERSION) < 0;
    const size_t equal = std::min(word.find('='), word.size());
    const auto* const found = std::ranges::find(known, word.substr(0, equal),
                                                [](const auto& o) { return std::string_view(o.first); });
    if (found == std::end(known)) return refused("'" + word + "': no option");
    if (equal == word.size() && i + 1 == argc) return refused(word + ": its value is missing");
    *found->second = equal < word.size() ? word.substr(equal + 1) : argv[++i];
  }
  return invar::tui::main_of(options);
}
