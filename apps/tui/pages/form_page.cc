#include "pages/form_page.h"

#include <algorithm>
#include <filesystem>

#include "model/shell_words.h"
#include "screen/text.h"

namespace invar::tui {
namespace {

using K = Key::Kind;

constexpr int kLabel = 15;  // columns

bool is_choice(Field f) {
  return info(f).kind == Kind::choice;
}
bool has_browser(Field f) {
  const Kind k = info(f).kind;
  return k == Kind::model || k == Kind::file || k == Kind::folder || f == Field::receipts;
}

bool file_exists(const std::string& path) {
  std::error_code ec;
  return std::filesystem::exists(path, ec);
}

}  // namespace

FormPage::FormPage(Form form) {
  for (const FieldInfo& row : fields()) edits_[static_cast<size_t>(row.field)] = Edit(row.kind == Kind::text);
  set(std::move(form));
}

void FormPage::set(Form form) {
  form_ = std::move(form);
  for (const FieldInfo& row : fields()) edits_[static_cast<size_t>(row.field)].set(form_[row.field]);
  if (!form_.shows(focus_)) focus_ = Field::command;
}

void FormPage::set(Field f, const std::string& value) {
  edits_[static_cast<size_t>(f)].set(value);
  form_[f] = edits_[static_cast<size_t>(f)].text();
}

void FormPage::move(int by) {
  const std::vector<Field> shown = form_.shown();
  const auto it = std::find(shown.begin(), shown.end(), focus_);
  const long at = it == shown.end() ? 0 : it - shown.begin();
  const long count = static_cast<long>(shown.size());
  focus_ = shown[static_cast<size_t>(((at + by) % count + count) % count)];
}

void FormPage::cycle(int by) {
  const auto& choices = info(focus_).choices;
  const auto it = std::find(choices.begin(), choices.end(), form_[focus_]);
  const long count = static_cast<long>(choices.size()), at = it == choices.end() ? 0 : it - choices.begin();
  set(focus_, choices[static_cast<size_t>(((at + by) % count + count) % count)]);
}

FormPage::Did FormPage::handle(const Key& key) {
  left_out_ = 0;
  if (key.is(K::focus)) {
    const Field before = std::exchange(focus_, static_cast<Field>(key.number));
    return before == focus_ && is_choice(focus_) ? Did::choose : Did::handled;
  }
  if (is_choice(focus_)) {
    if (key.is(K::left)) return cycle(-1), Did::handled;
    if (key.is(K::right) || key.is_text(" ")) return cycle(1), Did::handled;
    if (key.is(K::enter)) return Did::choose;
  } else if (key.is(K::paste)) {
    left_out_ = edit().insert(key.text);
    form_[focus_] = edit().text();
    return Did::handled;
  } else if (edit().handle(key)) {
    form_[focus_] = edit().text();
    return Did::handled;
  }
  if (key.is(K::enter) && has_browser(focus_)) return Did::browse;
  switch (key.kind) {
    case K::up:
    case K::wheel_up:
    case K::back_tab: return move(-1), Did::handled;
    case K::down:
    case K::wheel_down:
    case K::enter:
    case K::tab: return move(1), Did::handled;
    case K::page_up: return move(-5), Did::handled;
    case K::page_down: return move(5), Did::handled;
    default: return Did::nothing;
  }
}

std::string FormPage::problem_of(Field f) const {
  for (const Problem& p : form_.problems())
    if (p.field == f && (complains_ || !form_[f].empty())) return p.message;
  return "";
}

std::string FormPage::command_text() const {
  return "invar " + joined(arguments(form_, file_exists));
}

std::vector<FormPage::Place> FormPage::places(int width, int height) {
  std::vector<Place> out;
  int y = 0;
  for (const Field f : form_.shown()) {
    int rows = 1;
    if (info(f).kind == Kind::text)
      rows = std::clamp(edits_[static_cast<size_t>(f)].rows(width), height < 16 ? 2 : 3,
                        std::max(2, height / 3));
    out.push_back({f, y, rows});
    y += rows;
  }
  return out;
}

void FormPage::draw(Canvas& canvas, const Rect& r) {
  if (r.width >= 120) {
    const int left = std::min(84, r.width / 2);
    draw_fields(canvas, {r.x, r.y, left, r.height});
    draw_about(canvas, {r.x + left + 2, r.y, r.width - left - 2, r.height});
    return;
  }
  const int about = r.height >= 18 ? 6 : r.height >= 13 ? 5 : 4;
  draw_fields(canvas, {r.x, r.y, r.width, r.height - about});
  draw_about(canvas, {r.x, r.y + r.height - about, r.width, about});
}

void FormPage::draw_fields(Canvas& canvas, const Rect& r) {
  const std::vector<Place> all = places(r.width - kLabel - 2, r.height);
  const auto focused =
      std::find_if(all.begin(), all.end(), [&](const Place& p) { return p.field == focus_; });
  const int total = all.back().y + all.back().height;
  if (focused != all.end()) {
    scroll_ = std::min(scroll_, focused->y);
    scroll_ = std::max(scroll_, focused->y + focused->height - r.height);
  }
  scroll_ = std::clamp(scroll_, 0, std::max(0, total - r.height));
  for (const Place& p : all) {
    const int y = r.y + p.y - scroll_;
    const int top = std::max(y, r.y), bottom = std::min(y + p.height, r.y + r.height);
    if (top >= bottom) continue;
    draw_field(canvas, {r.x, top, kLabel, 1}, {r.x + kLabel, top, r.width - kLabel - 1, bottom - top}, p.field);
    canvas.press({r.x, top, r.width, bottom - top}, {K::focus, {}, static_cast<int>(p.field)});
  }
  if (scroll_ > 0) canvas.put(r.x + r.width - 1, r.y, "▲", Style::dim);
  if (scroll_ + r.height < total) canvas.put(r.x + r.width - 1, r.y + r.height - 1, "▼", Style::dim);
}

void FormPage::draw_field(Canvas& canvas, const Rect& label, const Rect& value, Field f) {
  const FieldInfo& row = info(f);
  const bool focused = f == focus_;
  const bool bad = !problem_of(f).empty();
  canvas.put(label.x, label.y, focused ? "▸" : bad ? "!" : " ", bad ? Style::bad : Style::accent);
  canvas.put(label.x + 1, label.y, clip(row.label, label.width - 2), bad ? Style::bad : Style::bold);
  const Style style = focused ? Style::focus : Style::plain;
  if (row.kind == Kind::choice) {
    canvas.put(value.x, value.y, focused ? "‹ " + form_[f] + " ›" : "  " + form_[f], style, value.width);
    return;
  }
  edits_[static_cast<size_t>(f)].draw(canvas, value, focused, style);
}

// The command line that the form makes, and what the focused field is.
void FormPage::draw_about(Canvas& canvas, const Rect& r) {
  const std::string problem = problem_of(focus_);
  const bool wide = r.height > 8;
  int y = r.y;
  canvas.rule(r.x, y++, r.width, info(focus_).label + (*info(focus_).option
                                                           ? "   " + std::string(info(focus_).option)
                                                           : std::string()));
  const int help_rows = wide ? r.height / 3 : (r.height - 1) / 2;
  if (!problem.empty()) {
    canvas.put(r.x, y++, clip(one_line(problem), r.width), Style::bad);
  }
  const std::vector<std::string> help = wrap(info(focus_).help, r.width);
  for (size_t i = 0; i < help.size() && y <= r.y + help_rows; ++i) {
    const bool cut = y == r.y + help_rows && i + 1 < help.size();
    canvas.put(r.x, y++, cut ? clip(help[i] + " …", r.width) : help[i], Style::dim);
  }
  y = wide ? y + 1 : r.y + 1 + help_rows;
  if (wide) canvas.rule(r.x, y++, r.width, "command");
  const std::vector<std::string> command = wrap(one_line(command_text()), r.width - 2);
  for (size_t i = 0; i < command.size() && y < r.y + r.height; ++i, ++y) {
    const bool cut = y + 1 == r.y + r.height && i + 1 < command.size();
    canvas.put(r.x, y, (i == 0 ? "$ " : "  ") + (cut ? clip(command[i] + " …", r.width - 2) : command[i]),
               Style::accent, r.width);
  }
}

}  // namespace invar::tui
