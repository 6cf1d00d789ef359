#include "pages/app.h"

#include <algorithm>
#include <filesystem>

#include "model/shell_words.h"
#include "pages/help.h"
#include "screen/text.h"

namespace invar::tui {
namespace {

using K = Key::Kind;
namespace fs = std::filesystem;

bool is_file(const std::string& path) {
  std::error_code ec;
  return fs::exists(path, ec);
}

}  // namespace

App::App(Form form, const std::string& receipts_folder)
    : form_page_(std::move(form)), receipts_opened_(receipts_folder) {
  form_page_.focus(form_page_.form()[Field::model].empty() ? Field::model : Field::command);
}

std::vector<Request> App::take_requests() {
  return std::exchange(requests_, {});
}

void App::handle(const Key& key, double now) {
  message_.clear();
  if (popup_) {
    // A popup may open another one while it closes.
    std::unique_ptr<Popup> popup = std::move(popup_);
    if (key.is_control('c') || key.is_control('q') || key.is_function(10)) return;
    if (popup->handle(key) && !popup_) popup_ = std::move(popup);
    return;
  }
  if (handle_global(key, now)) return;
  if (page_ == Page::form) return handle_form(key);
  if (page_ == Page::run) return handle_run(key, now);
  handle_receipts(key, now);
}

bool App::handle_global(const Key& key, double now) {
  if (key.is_control('c')) return running() ? stop() : quit(), true;
  if (key.is_control('q') || key.is_function(10)) return quit(), true;
  if (key.is_function(1)) return popup_ = make_pager("help", kHelp), true;
  if (key.is_function(2)) return show(Page::form), true;
  if (key.is_function(3)) return show(Page::run), true;
  if (key.is_function(4)) return show(Page::receipts), true;
  if (key.is_function(5) || key.is_control('r')) return start(now), true;
  if (key.is_function(6) || key.is_control('x')) return stop(), true;
  if (key.is_function(8)) return reset(), true;
  if (key.is_control('n')) return show(static_cast<Page>((static_cast<int>(page_) + 1) % 3)), true;
  if (key.is_control('p')) return show(static_cast<Page>((static_cast<int>(page_) + 2) % 3)), true;
  return false;
}

void App::show(Page page) {
  page_ = page;
  if (page == Page::receipts) receipts_.open(receipts_folder());
}

// The one that was chosen; else where the form's receipts go.
std::string App::receipts_folder() const {
  if (!receipts_opened_.empty()) return receipts_opened_;
  const Form& form = form_page_.form();
  if (form[Field::command] == "chat" && !form[Field::receipts_folder].empty())
    return form[Field::receipts_folder];
  const std::string parent = fs::path(form[Field::receipt_path]).parent_path().string();
  return parent.empty() || !is_file(parent) ? "." : parent;
}

void App::handle_form(const Key& key) {
  switch (form_page_.handle(key)) {
    case FormPage::Did::choose: return choose();
    case FormPage::Did::browse: return browse();
    case FormPage::Did::nothing:
      if (key.is_text("?")) popup_ = make_pager("help", kHelp);
      return;
    case FormPage::Did::handled: break;
  }
  if (form_page_.left_out())
    message_ = std::to_string(form_page_.left_out()) +
               " control characters were left out: a prompt file can hold them";
}

void App::handle_run(const Key& key, double now) {
  switch (run_page_.handle(key, job())) {
    case RunPage::Did::handled: return;
    case RunPage::Did::say: {
      const std::string line = run_page_.take_line();
      job_->say(line);
      requests_.push_back({Request::Kind::say, {}, line + "\n"});
      return;
    }
    case RunPage::Did::nothing: break;
  }
  if (key.is_text("v")) return check_last(now);
  if (key.is_text("e") || key.is(K::escape)) return show(Page::form);
  if (key.is_text("?")) popup_ = make_pager("help", kHelp);
}

void App::handle_receipts(const Key& key, double now) {
  if (receipts_.handle(key)) return;
  const ReceiptEntry* const e = receipts_.selected();
  if (key.is_text("o")) return browse_receipts_folder();
  if (key.is_text("r")) return receipts_.open(receipts_folder());
  if (key.is_text("?")) popup_ = make_pager("help", kHelp);
  if (key.is(K::escape)) return show(Page::form);
  if (!e) return;
  if (key.is(K::enter)) popup_ = make_pager("receipt", receipts_.about(verdicts_));
  if (key.is_text("v")) check(e->path, e->model, "verify", now);
  if (key.is_text("c")) check(e->path, e->model, "validate", now);
}

void App::start(double now) {
  if (running()) {
    message_ = "something runs: F6 stops it";
    return;
  }
  const std::vector<Problem> problems = form_page_.form().problems();
  if (!problems.empty()) {
    form_page_.complain();
    form_page_.focus(problems.front().field);
    page_ = Page::form;
    std::string label = info(problems.front().field).label;
    label.erase(0, label.find_first_not_of(' '));
    message_ = label + ": " + problems.front().message;
    return;
  }
  const std::vector<std::string> what = arguments(form_page_.form(), is_file);
  const bool speaks = what.front() == "chat";
  check_.reset();
  job_.emplace(what, now);
  active_ = &*job_;
  stopping_ = false;
  ran_ = true;
  run_page_.begin(speaks);
  page_ = Page::run;
  requests_.push_back({Request::Kind::start, what, {}, speaks});
}

void App::stop() {
  if (!running()) {
    message_ = "nothing runs";
    return;
  }
  requests_.push_back({stopping_ ? Request::Kind::kill : Request::Kind::stop});
  active_->cancel();
  message_ = stopping_ ? "ending it" : "stopping; F6 once more ends it at once";
  stopping_ = true;
}

void App::quit() {
  const auto leave = [this] { requests_.push_back({Request::Kind::quit}); };
  if (!running()) return leave();
  popup_ = make_question("Something runs: stop it and leave?", leave);
}

void App::reset() {
  const Form initial;
  if (before_reset_ && form_page_.form() == initial) {
    form_page_.set(*before_reset_);
    before_reset_.reset();
    message_ = "the form is as it was";
  } else {
    before_reset_ = form_page_.form();
    form_page_.set(initial);
    message_ = "the form is as in the beginning; F8 once more brings yours back";
  }
  page_ = Page::form;
}

void App::check_last(double now) {
  if (!job_ || job_->receipts().empty()) {
    message_ = "no receipt to verify";
    return;
  }
  const std::string path = job_->receipts().back().path;
  std::string model;
  // The model of this run, if the form still names it.
  const auto& words = job_->arguments();
  const auto it = std::find(words.begin(), words.end(), "--model-name");
  if (it != words.end() && it + 1 != words.end()) model = *(it + 1);
  std::string name = model;
  while (name.size() > 1 && name.ends_with('/')) name.pop_back();
  check(path, fs::path(name).filename().string(), "verify", now);
}

void App::check(const std::string& path, const std::string& model, const char* command, double now) {
  if (running()) {
    message_ = "something runs: F6 stops it";
    return;
  }
  const Form& form = form_page_.form();
  std::vector<std::string> what = {command};
  if (what.front() == "verify")
    what = verify_arguments(path, model, form[Field::model], form[Field::device]);
  else
    what.push_back(path.starts_with('-') ? "./" + path : path);
  check_.emplace(what, now);
  active_ = &*check_;
  stopping_ = false;
  checked_ = path;
  before_ = verdicts_[path];
  verdicts_[path] = {path, "", "…", ""};
  requests_.push_back({Request::Kind::start, what});
}

void App::read_err(std::string_view bytes, double now) {
  if (active_) active_->read_err(bytes, now);
}
void App::read_out(std::string_view bytes) {
  if (active_) active_->read_out(bytes);
}

void App::ended(int code, int signal, double now) {
  if (!active_) return;
  Job& job = *active_;
  active_ = nullptr;
  job.end(code, signal, now);
  message_.clear();
  for (const ReceiptView& r : job.receipts())
    if (!r.status.empty()) verdicts_[r.path] = r;
  if (&job == &*check_) {
    ReceiptView& verdict = verdicts_[checked_];
    if (verdict.status == "…") {  // it ended without one
      verdict.status = code == 0 && signal == 0 ? (job.command() == "verify" ? "verified" : "valid")
                       : code == 1              ? "failed"
                                                : "";
      verdict.detail = code == 0 ? "" : job.summary();
    }
    // Hashes that hold take nothing from what a recomputation of the same receipt found.
    if (verdict.status == "valid" && before_.status == "verified" && !verdict.hash.empty() &&
        before_.hash == verdict.hash) {
      verdict = before_;
      message_ = "the hashes hold: VALID";
    }
    if (verdict.status.empty()) message_ = job.command() + ": " + job.summary();
  } else if (job.state() == Job::State::failed) {
    message_ = job.summary();
  }
  if (page_ == Page::receipts && &job != &*check_ && !job.receipts().empty())
    receipts_.open(receipts_folder());  // there are new ones
}

void App::not_started(const std::string& why, double now) {
  if (active_) active_->read_err("invar: " + why + "\n", now);
  ended(127, 0, now);
  message_ = why;
}

void App::set_hub(const std::vector<HubModel>& models) {
  hub_ = models;
  if (popup_) popup_->set_hub(models);
}

void App::choose() {
  const Field f = form_page_.focus();
  popup_ = make_choices(info(f).label, {info(f).choices.begin(), info(f).choices.end()}, form_page_.form()[f],
                        [this, f](const std::string& value) { form_page_.set(f, value); });
}

void App::browse() {
  const Field f = form_page_.focus();
  const std::string now = form_page_.form()[f];
  const Kind kind = info(f).kind;
  if (f == Field::receipts) {
    popup_ = make_browser("receipts",
                          Browser(Browser::Wants::file, now.empty() ? receipts_folder() : now, ".json"),
                          [this, f](const std::string& path) { form_page_.set(f, shell_quoted(path)); });
    return;
  }
  const Browser::Wants wants = kind == Kind::model  ? Browser::Wants::model
                               : kind == Kind::file ? Browser::Wants::file
                                                    : Browser::Wants::folder;
  Browser browser(wants, now, f == Field::onnx_file ? ".onnx" : "");
  if (kind == Kind::model) {
    browser.set_hub(hub_);
    requests_.push_back({Request::Kind::list_models});
  }
  popup_ = make_browser(info(f).label, std::move(browser),
                        [this, f](const std::string& value) { form_page_.set(f, value); });
}

void App::browse_receipts_folder() {
  popup_ = make_browser("folder of receipts", Browser(Browser::Wants::folder, receipts_.folder()),
                        [this](const std::string& path) {
                          receipts_opened_ = path;
                          receipts_.open(path);
                        });
}

void App::draw(Canvas& canvas, double now) {
  canvas.hide_cursor();
  draw_header(canvas, now);
  draw_footer(canvas);
  const Rect r{1, 1, canvas.width() - 2, canvas.height() - 2};
  const Job* const check = check_ ? &*check_ : nullptr;
  if (canvas.width() < 40 || canvas.height() < 10) {
    canvas.put(0, 1, "The terminal is too small:");
    canvas.put(0, 2, "at least 40 columns, 10 rows.");
    return;
  }
  if (page_ == Page::form) form_page_.draw(canvas, r);
  if (page_ == Page::run) {
    const bool of_job =
        check && job_ && !job_->receipts().empty() && job_->receipts().back().path == checked_;
    run_page_.draw(canvas, r, job(), of_job ? check : nullptr, verdicts_, now);
  }
  if (page_ == Page::receipts) receipts_.draw(canvas, r, check, verdicts_);
  if (popup_) {
    canvas.hide_cursor();
    popup_->draw(canvas);
  }
}

void App::draw_header(Canvas& canvas, double now) {
  canvas.fill({0, 0, canvas.width(), 1}, Style::title);
  int x = canvas.put(0, 0, " invar ", Style::title);
  static constexpr const char* kTabs[] = {" F2 Form ", " F3 Run ", " F4 Receipts "};
  for (int i = 0; i < 3; ++i) {
    const int from = x;
    x = canvas.put(x, 0, kTabs[i], static_cast<int>(page_) == i ? Style::focus : Style::title);
    canvas.press({from, 0, x - from, 1}, function_key(2 + i));
  }
  std::string right = running() ? active_->command() + " " + duration_text(active_->seconds(now)) + " " : "";
  if (!running() && job_)
    right = job_->command() + (job_->state() == Job::State::done ? " done " : " ended ");
  if (columns(right) < canvas.width() - x)
    canvas.put(canvas.width() - columns(right), 0, right, Style::title);
}

void App::draw_footer(Canvas& canvas) {
  const int y = canvas.height() - 1;
  if (!message_.empty()) {
    canvas.put(0, y, padded(" " + one_line(message_), canvas.width()), Style::warn);
    return;
  }
  struct Hint {
    const char* key;
    const char* text;
    Key press;
  };
  std::vector<Hint> hints = {{"F1", "help", function_key(1)}};
  if (running())
    hints.push_back({"F6", "stop", function_key(6)});
  else
    hints.push_back({"F5", "run", function_key(5)});
  if (page_ == Page::form) hints.push_back({"F8", "reset", function_key(8)});
  if (page_ == Page::run) {
    const bool speaks = run_page_.speaks(job());
    if (speaks) hints.push_back({"Enter", "say", {K::enter}});
    if (!speaks && job_ && !job_->receipts().empty()) hints.push_back({"v", "verify", text_key("v")});
    if (!speaks) hints.push_back({"e", "edit", function_key(2)});
    hints.push_back({"Tab", "answer/log/phases", {K::tab}});
  }
  if (page_ == Page::receipts) {
    hints.push_back({"v", "verify", text_key("v")});
    hints.push_back({"c", "check", text_key("c")});
    hints.push_back({"o", "folder", text_key("o")});
  }
  hints.push_back({"F10", "leave", function_key(10)});
  int x = 0;
  for (const Hint& h : hints) {
    const int from = x;
    if (x + columns(h.key) + columns(h.text) + 3 > canvas.width()) break;
    x = canvas.put(x, y, std::string(" ") + h.key, Style::accent);
    x = canvas.put(x + 1, y, std::string(h.text) + " ", Style::dim);
    canvas.press({from, y, x - from, 1}, h.press);
  }
}

}  // namespace invar::tui
