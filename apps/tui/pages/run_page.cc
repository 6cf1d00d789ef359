#include "pages/run_page.h"

#include <algorithm>

#include "model/shell_words.h"

namespace invar::tui {

using K = Key::Kind;

std::string verdict_word(const std::string& status) {
  if (status == "verified" || status == "valid") return status == "valid" ? "VALID" : "VERIFIED";
  return status == "failed" ? "FAILED" : status;
}
Style verdict_style(const std::string& status) {
  if (status == "verified" || status == "valid") return Style::good;
  return status == "failed" ? Style::bad : Style::warn;
}

void RunPage::begin(bool conversation) {
  conversation_ = conversation;
  pane_ = Pane::answer;
  answer_scroll_ = log_scroll_ = phases_scroll_ = Scroller();
  answer_ = log_ = Wrapped();
  line_ = Edit();
}

std::string RunPage::take_line() {
  const std::string text = line_.text();
  line_.set("");
  answer_scroll_.to_end();
  return text;
}

RunPage::Did RunPage::handle(const Key& key, const Job* job) {
  if (key.is(K::focus)) return pane_ = static_cast<Pane>(key.number), Did::handled;
  if (key.is(K::tab) || key.is(K::back_tab)) {
    const int step = key.is(K::tab) ? 1 : 2;
    return pane_ = static_cast<Pane>((static_cast<int>(pane_) + step) % 3), Did::handled;
  }
  Scroller& scroller = pane_ == Pane::answer ? answer_scroll_
                       : pane_ == Pane::log  ? log_scroll_
                                             : phases_scroll_;
  const bool speaks = this->speaks(job);
  if (speaks && key.is(K::enter)) return line_.text().empty() ? Did::handled : Did::say;
  const bool of_line = key.is(K::home) || key.is(K::end);
  if (!(speaks && of_line) && scroller.handle(key)) return Did::handled;
  if (speaks && line_.handle(key)) return Did::handled;
  return Did::nothing;
}

void RunPage::draw(Canvas& canvas, const Rect& r, const Job* job, const Job* check, const Verdicts& verdicts,
                   double now) {
  if (!job) {
    canvas.put(r.x + 1, r.y + 1, clip("Nothing has run yet. F2 is the form, F5 runs it.", r.width - 2),
               Style::dim);
    return;
  }
  draw_status(canvas, {r.x, r.y, r.width, 1}, *job, now);
  Rect rest{r.x, r.y + 1, r.width, r.height - 1};
  if (speaks(job)) {
    const int y = rest.y + rest.height - 1;
    canvas.put(rest.x, y, "say ▸ ", Style::accent);
    line_.draw(canvas, {rest.x + 6, y, rest.width - 6, 1}, true);
    --rest.height;
  }
  rest.height -= draw_result(canvas, rest, *job, check, verdicts);
  if (rest.width >= 120 && rest.height >= 12) {
    const int left = std::min(72, rest.width * 2 / 5);
    const int phases = std::max(4, rest.height / 2);
    draw_phases(canvas, {rest.x, rest.y, left, phases}, *job, check, now);
    draw_log(canvas, {rest.x, rest.y + phases, left, rest.height - phases}, *job);
    draw_answer(canvas, {rest.x + left + 2, rest.y, rest.width - left - 2, rest.height}, *job);
  } else if (rest.height >= 14) {
    // Phases that are over give their place to the answer, until Tab asks for them. Those of a run
    // that failed stay: they say where.
    const int count = static_cast<int>(job->phases().size() + (check ? check->phases().size() : 0));
    const bool useful = !job->running() && job->state() != Job::State::done && count > 0;
    // The line above a conversation says what runs.
    const bool over = (job->is_conversation() ? !job->answer().empty() : !job->running()) && !useful &&
                      !(check && check->running()) && pane_ != Pane::phases;
    const int most = rest.height >= 20 ? 8 : 5, log = rest.height >= 20 ? 6 : 4;
    const int phases = over ? 0 : std::clamp(count, 1, most) + 1;
    if (phases) draw_phases(canvas, {rest.x, rest.y, rest.width, phases}, *job, check, now);
    draw_answer(canvas, {rest.x, rest.y + phases, rest.width, rest.height - phases - log}, *job);
    draw_log(canvas, {rest.x, rest.y + rest.height - log, rest.width, log}, *job);
  } else if (pane_ == Pane::answer) {
    draw_answer(canvas, rest, *job);
  } else if (pane_ == Pane::log) {
    draw_log(canvas, rest, *job);
  } else {
    draw_phases(canvas, rest, *job, check, now);
  }
}

void RunPage::draw_status(Canvas& canvas, const Rect& r, const Job& job, double now) {
  std::string right = duration_text(job.seconds(now));
  if (job.tokens_per_second() > 0) right = rate_text(job.tokens_per_second()) + " tokens/s  " + right;
  const PhaseView* const phase = job.current();
  std::string text = job.command() + ": " + (job.waits() ? "type below; /help lists more" : job.summary());
  if (job.running() && phase) {
    text =
        job.command() + ": " + (job.state() == Job::State::cancelling ? "stopping, in " : "") + phase->name;
    if (phase->done >= 0)
      text += " " + std::to_string(phase->done) +
              (phase->total > 0 ? " of " + std::to_string(phase->total) : std::string()) + " " + phase->unit;
  }
  const Style style = job.state() == Job::State::done     ? Style::good
                      : job.state() == Job::State::failed ? Style::bad
                      : job.running()                     ? Style::accent
                                                          : Style::warn;
  const int room = std::max(0, r.width - columns(right) - 2);
  canvas.put(r.x, r.y, clip(one_line(text), room), style);
  canvas.put(r.x + r.width - columns(right), r.y, right, Style::bold);
}

void RunPage::title(Canvas& canvas, const Rect& r, const std::string& text, Pane pane) {
  canvas.rule(r.x, r.y, r.width, text, title_style(pane));
  canvas.press({r.x, r.y, r.width, r.height}, {K::focus, {}, static_cast<int>(pane)});
}

void RunPage::draw_phase(Canvas& canvas, const Rect& r, const PhaseView& p, double now) {
  const Style style = p.state == PhaseView::State::done      ? Style::good
                      : p.state == PhaseView::State::stopped ? Style::warn
                                                             : Style::accent;
  const char* const mark = p.state == PhaseView::State::done      ? "✓"
                           : p.state == PhaseView::State::stopped ? "×"
                                                                  : "▸";
  canvas.put(r.x, r.y, mark, style);
  int x = canvas.put(r.x + 2, r.y, padded(one_line(p.name), 10), Style::bold);
  const double seconds = p.state == PhaseView::State::running ? now - p.began : p.ms / 1000;
  const std::string time =
      p.state == PhaseView::State::stopped ? "stopped" : duration_text(std::max(0.0, seconds));
  const int end = r.x + r.width - 9;
  canvas.put(r.x + r.width - 8, r.y, time, Style::dim);
  if (const auto fraction = p.fraction(); p.state != PhaseView::State::done && fraction) {
    const int bar = std::min(30, (end - x) / 2);
    canvas.progress(x, r.y, bar, *fraction);
    x += bar + 1;
    const std::string count = std::to_string(p.done) + "/" + std::to_string(p.total) + " " + p.unit;
    canvas.put(x, r.y, clip(one_line(count), end - x));
    return;
  }
  std::string detail = p.detail;
  if (detail.empty() && p.done >= 0) detail = std::to_string(p.done) + " " + p.unit;
  canvas.put(x, r.y, clip_middle(one_line(short_path(detail)), end - x), Style::dim);
}

void RunPage::draw_phases(Canvas& canvas, const Rect& r, const Job& job, const Job* check, double now) {
  title(canvas, r, "phases", Pane::phases);
  std::vector<const PhaseView*> all;
  for (const PhaseView& p : job.phases()) all.push_back(&p);
  if (check)
    for (const PhaseView& p : check->phases()) all.push_back(&p);
  const int height = r.height - 1;
  const size_t first = phases_scroll_.first(all.size(), height);
  for (int i = 0; i < height && first + static_cast<size_t>(i) < all.size(); ++i)
    draw_phase(canvas, {r.x, r.y + 1 + i, r.width, 1}, *all[first + static_cast<size_t>(i)], now);
}

void RunPage::draw_answer(Canvas& canvas, const Rect& r, const Job& job) {
  const bool answers = job.command() == "run" || job.command() == "chat";
  title(canvas, r, job.is_conversation() ? "conversation" : answers ? "answer" : "output", Pane::answer);
  answer_.set(job.answer(), r.width - 1);
  draw_lines(canvas, {r.x, r.y + 1, r.width, r.height - 1}, answer_.lines(), answer_scroll_);
}

void RunPage::draw_log(Canvas& canvas, const Rect& r, const Job& job) {
  title(canvas, r, "log tail", Pane::log);
  log_.set(job.log(), r.width - 1);
  draw_lines(canvas, {r.x, r.y + 1, r.width, r.height - 1}, log_.lines(), log_scroll_, Style::dim);
}

// Receipt, hash and verdict, at the end of `r`. Returns the rows that they take.
int RunPage::draw_result(Canvas& canvas, const Rect& r, const Job& job, const Job* check,
                         const Verdicts& verdicts) {
  if (job.receipts().empty()) return 0;
  const ReceiptView& last = job.receipts().back();
  const auto found = verdicts.find(last.path);
  const std::string status = found == verdicts.end() ? last.status : found->second.status;
  const std::string detail = found == verdicts.end() ? last.detail : found->second.detail;
  const bool small = r.height < 16;
  const int rows = small ? 2 : 4, width = r.width - 10;
  int y = r.y + r.height - rows;
  if (!small)
    canvas.rule(r.x, y++, r.width,
                job.receipts().size() == 1
                    ? "receipt"
                    : "the last of " + std::to_string(job.receipts().size()) + " receipts");
  if (!small) {
    canvas.put(r.x, y, "receipt", Style::bold);
    canvas.put(r.x + 10, y++, clip_middle(one_line(short_path(last.path)), width));
  }
  canvas.put(r.x, y, "hash", Style::bold);
  canvas.put(r.x + 10, y++, clip_middle(one_line(last.hash), width));
  canvas.put(r.x, y, "verdict", Style::bold);
  if (check && check->running()) {
    const PhaseView* const p = check->current();
    std::string text = "verifying";
    if (p)
      text +=
          ": " + p->name +
          (p->total > 0 ? " " + std::to_string(std::max<int64_t>(0, p->done)) + "/" + std::to_string(p->total)
                        : "");
    canvas.put(r.x + 10, y, clip(one_line(text), width), Style::accent);
  } else if (status.empty()) {
    const bool later = speaks(&job);  // the key is a letter of what is said
    canvas.put(r.x + 10, y,
               clip(later ? "not verified yet: after /quit v computes it again"
                          : "not verified yet: v computes it again",
                    width),
               Style::dim);
    if (!later) canvas.press({r.x, y, r.width, 1}, text_key("v"));
  } else {
    const int x = canvas.put(r.x + 10, y, verdict_word(status), verdict_style(status));
    canvas.put(x + 2, y, clip(one_line(detail), r.x + r.width - x - 2));
  }
  return rows;
}

}  // namespace invar::tui
