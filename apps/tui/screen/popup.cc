#include "screen/popup.h"

#include <algorithm>

namespace invar::tui {

using K = Key::Kind;

size_t Scroller::first(size_t lines, int height) {
  page_ = std::max(1, height - 1);
  last_ = std::max(0L, static_cast<long>(lines) - std::max(1, height));
  if (follow_ || top_ > last_) top_ = last_;
  return static_cast<size_t>(top_);
}

bool Scroller::handle(const Key& key) {
  long by = 0;
  switch (key.kind) {
    case K::up: by = -1; break;
    case K::down: by = 1; break;
    case K::wheel_up: by = -3; break;
    case K::wheel_down: by = 3; break;
    case K::page_up: by = -page_; break;
    case K::page_down: by = page_; break;
    case K::home: by = -top_; break;
    case K::end: by = last_ - top_; break;
    default: return false;
  }
  top_ = std::clamp(top_ + by, 0L, last_);
  follow_ = top_ == last_ && (by > 0 || key.is(K::end));
  return true;
}

void draw_lines(Canvas& canvas, const Rect& r, const std::vector<std::string>& lines, Scroller& scroller,
                Style style) {
  const size_t first = scroller.first(lines.size(), r.height);
  for (int i = 0; i < r.height; ++i) {
    const size_t at = first + static_cast<size_t>(i);
    if (at < lines.size()) canvas.put(r.x, r.y + i, lines[at], style, r.width - 1);
  }
  const size_t height = static_cast<size_t>(std::max(1, r.height));
  if (lines.size() <= height) return;
  const size_t mark = first * (height - 1) / (lines.size() - height);
  for (size_t i = 0; i < height; ++i)
    canvas.put(r.x + r.width - 1, r.y + static_cast<int>(i), i == mark ? "█" : "│", Style::dim);
}

size_t first_in_view(size_t at, size_t first, size_t count, int height) {
  const size_t rows = static_cast<size_t>(std::max(1, height));
  if (count <= rows) return 0;
  if (at < first) return at;
  if (at >= first + rows) return at + 1 - rows;
  return std::min(first, count - rows);
}

namespace {

Rect centred(const Canvas& canvas, int width, int height) {
  width = std::min(width, canvas.width());
  height = std::min(height, canvas.height());
  return {(canvas.width() - width) / 2, (canvas.height() - height) / 2, width, height};
}

Rect inside(const Rect& r) {
  return {r.x + 2, r.y + 1, r.width - 4, r.height - 2};
}

void hint(Canvas& canvas, const Rect& r, const std::string& text) {
  canvas.put(r.x + 2, r.y + r.height - 1, " " + clip(text, r.width - 6) + " ", Style::dim);
}

class BrowserPopup : public Popup {
 public:
  BrowserPopup(std::string title, Browser browser, Chosen chosen)
      : title_(std::move(title)), browser_(std::move(browser)), chosen_(std::move(chosen)) {}

  void set_hub(const std::vector<HubModel>& models) override { browser_.set_hub(models); }

  void draw(Canvas& canvas) override {
    const Rect r = centred(canvas, std::min(canvas.width() - 4, 100), canvas.height() - 4);
    canvas.cover();
    canvas.box(r, title_);
    Rect in = inside(r);
    canvas.put(in.x, in.y, clip_middle(one_line(short_path(browser_.folder())), in.width), Style::dim);
    ++in.y, --in.height;
    if (!browser_.problem().empty())
      canvas.put(in.x, in.y + in.height - 1, clip(one_line(browser_.problem()), in.width), Style::bad);
    const auto& entries = browser_.entries();
    page_ = std::max(1, in.height);
    first_ = first_in_view(browser_.at(), first_, entries.size(), in.height);
    for (int i = 0; i < in.height && first_ + static_cast<size_t>(i) < entries.size(); ++i) {
      const size_t at = first_ + static_cast<size_t>(i);
      draw_entry(canvas, {in.x, in.y + i, in.width, 1}, entries[at], at == browser_.at());
      canvas.press({in.x, in.y + i, in.width, 1}, {K::choose, {}, static_cast<int>(at)});
    }
    hint(canvas, r, "Enter chooses · letters jump · Backspace up · Esc closes");
  }

  bool handle(const Key& key) override {
    if (!key.is(K::text)) typed_.clear();
    switch (key.kind) {
      case K::escape: return false;
      case K::up: browser_.move(-1); break;
      case K::down: browser_.move(1); break;
      case K::wheel_up: browser_.move(-3); break;
      case K::wheel_down: browser_.move(3); break;
      case K::page_up: browser_.move(-page_); break;
      case K::page_down: browser_.move(page_); break;
      case K::home: browser_.select(0); break;
      case K::end: browser_.select(browser_.entries().size() - 1); break;
      case K::backspace: return up();
      case K::text:
        typed_ += key.text;
        browser_.jump(typed_);
        break;
      case K::choose: browser_.select(static_cast<size_t>(key.number)); [[fallthrough]];
      case K::right:
      case K::enter: return choose();
      default: break;
    }
    return true;
  }

 private:
  static void draw_entry(Canvas& canvas, const Rect& r, const Browser::Entry& e, bool selected) {
    using E = Browser::Entry::Kind;
    const char* what = e.kind == E::hub ? "hub" : e.kind == E::model ? "model" : e.kind == E::here ? "." : "";
    const Style style = selected                    ? Style::focus
                        : e.kind == E::folder       ? Style::accent
                        : e.kind == E::up           ? Style::accent
                                                    : Style::plain;
    canvas.put(r.x, r.y, padded(what, 6), selected ? Style::focus : Style::dim);
    canvas.put(r.x + 6, r.y, padded(one_line(e.name), r.width - 6), style);
  }
  bool choose() {
    const std::string value = browser_.choose();
    first_ = 0;
    if (value.empty()) return true;
    chosen_(value);
    return false;
  }
  bool up() {
    for (size_t i = 0; i < browser_.entries().size(); ++i)
      if (browser_.entries()[i].kind == Browser::Entry::Kind::up) {
        browser_.select(i);
        return choose();
      }
    return true;
  }

  std::string title_, typed_;
  Browser browser_;
  Chosen chosen_;
  size_t first_ = 0;
  long page_ = 1;
};

class ChoicesPopup : public Popup {
 public:
  ChoicesPopup(std::string title, std::vector<std::string> choices, const std::string& now, Chosen chosen)
      : title_(std::move(title)), choices_(std::move(choices)), chosen_(std::move(chosen)) {
    at_ = static_cast<size_t>(std::find(choices_.begin(), choices_.end(), now) - choices_.begin());
    if (at_ == choices_.size()) at_ = 0;
  }
  void draw(Canvas& canvas) override {
    int width = columns(title_) + 8;
    for (const std::string& c : choices_) width = std::max(width, columns(c) + 6);
    const Rect r = centred(canvas, width, static_cast<int>(choices_.size()) + 2);
    canvas.cover();
    canvas.box(r, title_);
    const Rect in = inside(r);
    first_ = first_in_view(at_, first_, choices_.size(), in.height);
    for (int i = 0; i < in.height && first_ + static_cast<size_t>(i) < choices_.size(); ++i) {
      const size_t at = first_ + static_cast<size_t>(i);
      canvas.put(in.x, in.y + i, padded(choices_[at], in.width), at == at_ ? Style::focus : Style::plain);
      canvas.press({in.x, in.y + i, in.width, 1}, {K::choose, {}, static_cast<int>(at)});
    }
  }
  bool handle(const Key& key) override {
    switch (key.kind) {
      case K::escape: return false;
      case K::up:
      case K::wheel_up: at_ = at_ == 0 ? 0 : at_ - 1; return true;
      case K::down:
      case K::wheel_down: at_ = std::min(at_ + 1, choices_.size() - 1); return true;
      case K::home: at_ = 0; return true;
      case K::end: at_ = choices_.size() - 1; return true;
      case K::text:
        if (key.text != " ") {
          for (size_t i = 1; i <= choices_.size(); ++i)
            if (choices_[(at_ + i) % choices_.size()].starts_with(key.text)) {
              at_ = (at_ + i) % choices_.size();
              break;
            }
          return true;
        }
        break;
      case K::choose: at_ = std::min(static_cast<size_t>(key.number), choices_.size() - 1); break;
      case K::enter: break;
      default: return true;
    }
    chosen_(choices_[at_]);
    return false;
  }

 private:
  std::string title_;
  std::vector<std::string> choices_;
  Chosen chosen_;
  size_t at_ = 0, first_ = 0;
};

class PagerPopup : public Popup {
 public:
  PagerPopup(std::string title, std::string text) : title_(std::move(title)), text_(std::move(text)) {
    scroller_.to_start();
  }
  void draw(Canvas& canvas) override {
    const Rect r = centred(canvas, std::min(canvas.width() - 2, 96), canvas.height() - 2);
    canvas.cover();
    canvas.box(r, title_);
    wrapped_.set(text_, r.width - 5);
    draw_lines(canvas, inside(r), wrapped_.lines(), scroller_);
    hint(canvas, r, "↑ ↓ PgUp PgDn scroll · Esc closes");
    canvas.press({r.x, r.y + r.height - 1, r.width, 1}, {K::escape});
  }
  bool handle(const Key& key) override {
    if (scroller_.handle(key)) return true;
    return !(key.is(K::escape) || key.is(K::enter) || key.is_text("q") || key.is_function(1));
  }

 private:
  std::string title_, text_;
  Wrapped wrapped_;
  Scroller scroller_;
};

class QuestionPopup : public Popup {
 public:
  QuestionPopup(std::string question, std::function<void()> yes)
      : question_(std::move(question)), yes_(std::move(yes)) {}
  void draw(Canvas& canvas) override {
    const int width = std::min(canvas.width() - 4, columns(question_) + 4);
    const std::vector<std::string> lines = wrap(question_, width - 4);
    const Rect r = centred(canvas, width, static_cast<int>(lines.size()) + 4);
    canvas.cover();
    canvas.box(r, "", Style::warn);
    const Rect in = inside(r);
    for (size_t i = 0; i < lines.size(); ++i) canvas.put(in.x, in.y + static_cast<int>(i), lines[i]);
    const int y = in.y + in.height - 1, x = canvas.put(in.x, y, "[ y  yes ]", Style::focus);
    canvas.press({in.x, y, 10, 1}, text_key("y"));
    canvas.put(x + 2, y, "[ n  no ]");
    canvas.press({x + 2, y, 9, 1}, text_key("n"));
  }
  bool handle(const Key& key) override {
    if (key.is_text("y") || key.is_text("Y")) return yes_(), false;
    return !(key.is_text("n") || key.is_text("N") || key.is(K::escape));
  }

 private:
  std::string question_;
  std::function<void()> yes_;
};

}  // namespace

std::unique_ptr<Popup> make_browser(std::string title, Browser browser, Chosen chosen) {
  return std::make_unique<BrowserPopup>(std::move(title), std::move(browser), std::move(chosen));
}
std::unique_ptr<Popup> make_choices(std::string title, std::vector<std::string> choices,
                                    const std::string& now, Chosen chosen) {
  return std::make_unique<ChoicesPopup>(std::move(title), std::move(choices), now, std::move(chosen));
}
std::unique_ptr<Popup> make_pager(std::string title, std::string text) {
  return std::make_unique<PagerPopup>(std::move(title), std::move(text));
}
std::unique_ptr<Popup> make_question(std::string question, std::function<void()> yes) {
  return std::make_unique<QuestionPopup>(std::move(question), std::move(yes));
}

}  // namespace invar::tui
