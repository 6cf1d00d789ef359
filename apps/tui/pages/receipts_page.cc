#include "pages/receipts_page.h"

#include <algorithm>

#include "base/text/size_text.h"
#include "screen/popup.h"
#include "screen/text.h"

namespace invar::tui {

using K = Key::Kind;

void ReceiptsPage::open(const std::string& folder) {
  const std::string kept = selected() ? selected()->path : "";
  const Status opened = folder_.open(folder);
  problem_ = opened ? "" : opened.error().message;
  folder_.read_some();
  at_ = first_ = 0;
  for (size_t i = 0; i < folder_.entries().size(); ++i)
    if (folder_.entries()[i].path == kept) at_ = i;
}

const ReceiptEntry* ReceiptsPage::selected() const {
  return at_ < folder_.entries().size() ? &folder_.entries()[at_] : nullptr;
}

bool ReceiptsPage::handle(const Key& key) {
  const long count = static_cast<long>(folder_.entries().size());
  long by = 0;
  switch (key.kind) {
    case K::up: by = -1; break;
    case K::down: by = 1; break;
    case K::wheel_up: by = -3; break;
    case K::wheel_down: by = 3; break;
    case K::page_up: by = -page_; break;
    case K::page_down: by = page_; break;
    case K::home: by = -count; break;
    case K::end: by = count; break;
    case K::focus: by = key.number - static_cast<long>(at_); break;
    default: return false;
  }
  if (count) at_ = static_cast<size_t>(std::clamp(static_cast<long>(at_) + by, 0L, count - 1));
  return true;
}

void ReceiptsPage::draw(Canvas& canvas, const Rect& r, const Job* check, const Verdicts& verdicts) {
  const size_t count = folder_.entries().size();
  std::string text = std::to_string(count) + (count == 1 ? " receipt" : " receipts");
  if (folder_.unread()) text += ", " + std::to_string(folder_.unread()) + " files to read";
  if (folder_.left_out()) text += ", " + std::to_string(folder_.left_out()) + " older files left out";
  canvas.put(r.x + r.width - columns(text), r.y, text, Style::dim);
  canvas.put(r.x, r.y, clip_middle(one_line(short_path(folder_.folder())), r.width - columns(text) - 2),
             Style::bold);
  canvas.press({r.x, r.y, r.width - columns(text) - 2, 1}, text_key("o"));
  Rect list{r.x, r.y + 1, r.width, r.height - 1};
  if (r.width >= 120) {
    list.width = r.width * 3 / 5;
    draw_about(canvas, {list.width + 2, r.y + 1, r.width - list.width - 2, r.height - 1}, verdicts);
  } else if (r.height >= 18) {
    const int about = 8;
    list.height -= about;
    draw_about(canvas, {r.x, r.y + r.height - about, r.width, about}, verdicts);
  }
  if (check && check->running()) {
    const PhaseView* const p = check->current();
    const int y = list.y + --list.height;
    const int x = canvas.put(r.x, y, padded(p ? one_line(p->name) : check->command(), 10), Style::accent);
    if (p && p->fraction()) canvas.progress(x, y, std::min(40, list.width - 12), *p->fraction());
  }
  if (!problem_.empty())
    canvas.put(list.x, list.y, clip(one_line(problem_), list.width), Style::bad);
  else if (count == 0 && !folder_.unread())
    canvas.put(list.x, list.y, clip("No receipts here. F5 makes one, o opens another folder.", list.width),
               Style::dim);
  page_ = std::max(1, list.height);
  first_ = first_in_view(at_, first_, count, list.height);
  for (int i = 0; i < list.height && first_ + static_cast<size_t>(i) < count; ++i) {
    const size_t at = first_ + static_cast<size_t>(i);
    const Rect row{list.x, list.y + i, list.width, 1};
    draw_row(canvas, row, folder_.entries()[at], at == at_, verdicts);
    canvas.press(row, {K::focus, {}, static_cast<int>(at)});
  }
}

void ReceiptsPage::draw_row(Canvas& canvas, const Rect& r, const ReceiptEntry& e, bool selected,
                            const Verdicts& verdicts) {
  const auto found = verdicts.find(e.path);
  const bool known = found != verdicts.end() && (found->second.hash.empty() || found->second.hash == e.hash);
  const std::string status = known ? found->second.status : "";
  const bool narrow = r.width < 70;
  const Style style = selected ? Style::focus : Style::plain;
  canvas.fill(r, style);
  const std::string date = date_text(e.modified);
  int x = canvas.put(r.x, r.y, narrow ? date.substr(std::min<size_t>(5, date.size())) : date, style) + 1;
  x = canvas.put(x, r.y, padded(one_line(e.hash.substr(0, 8)), 8), selected ? style : Style::accent) + 1;
  const int model = narrow ? 12 : 18, verdict = 9;
  x = canvas.put(x, r.y, padded(one_line(e.model), model), style) + 1;
  const int room = r.x + r.width - x - verdict - 1;
  canvas.put(x, r.y, clip(one_line(e.title.empty() ? e.name : e.title), room), style);
  canvas.put(r.x + r.width - verdict, r.y, verdict_word(status),
             selected || status.empty() ? style : verdict_style(status));
}

std::string ReceiptsPage::about(const Verdicts& verdicts) const {
  const ReceiptEntry* const e = selected();
  if (!e) return "";
  const auto found = verdicts.find(e->path);
  std::string out = "file     " + e->path + "\nhash     " + e->hash + "\nmodel    " + e->model +
                    "\nmade     " + date_text(e->modified) + ", " + size_text(e->bytes) +
                    (e->version.empty() ? "" : ", Invar " + e->version) +
                    (e->device.empty() ? "" : ", " + e->device) + "\nset      " + e->operation_set +
                    ", numerics " + e->numerics + (e->profile.empty() ? "" : ", " + e->profile) + "\n";
  if (found != verdicts.end())
    out += "verdict  " + verdict_word(found->second.status) + "  " + found->second.detail + "\n";
  out += "tokens   " + std::to_string(e->prompt_tokens) + " of the prompt, " +
         std::to_string(e->answer_tokens) + " of the answer" +
         (e->finish.empty() ? "" : ", ended by " + e->finish) + "\n";
  return out + "\nprompt\n" + e->prompt + "\n\nanswer\n" + e->answer;
}

void ReceiptsPage::draw_about(Canvas& canvas, const Rect& r, const Verdicts& verdicts) {
  canvas.rule(r.x, r.y, r.width, "the receipt says");
  const std::vector<std::string> lines = wrap(about(verdicts).substr(0, 20000), r.width);
  for (int i = 0; i + 1 < r.height && static_cast<size_t>(i) < lines.size(); ++i)
    canvas.put(r.x, r.y + 1 + i, lines[static_cast<size_t>(i)], Style::plain, r.width);
}

}  // namespace invar::tui
