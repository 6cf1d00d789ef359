// A command under way or done: phases, answer, log, receipt and verdict.
#pragma once

#include <optional>

#include "model/job.h"
#include "pages/verdicts.h"
#include "screen/edit.h"
#include "screen/popup.h"
#include "screen/text.h"

namespace invar::tui {

class RunPage {
 public:
  void begin(bool conversation);  // of another job
  // `check`: a verification that runs beside the job's result.
  void draw(Canvas&, const Rect&, const Job*, const Job* check, const Verdicts&, double now);
  enum class Did { nothing, handled, say };
  Did handle(const Key&, const Job*);
  // Whether keys are text for a conversation.
  bool speaks(const Job* job) const { return conversation_ && job && job->running(); }
  // The line that was typed for the conversation.
  std::string take_line();

 private:
  enum class Pane { answer, log, phases };
  void draw_status(Canvas&, const Rect&, const Job&, double now);
  void draw_phases(Canvas&, const Rect&, const Job&, const Job* check, double now);
  void draw_phase(Canvas&, const Rect&, const PhaseView&, double now);
  void draw_answer(Canvas&, const Rect&, const Job&);
  void draw_log(Canvas&, const Rect&, const Job&);
  int draw_result(Canvas&, const Rect&, const Job&, const Job* check, const Verdicts&);
  void title(Canvas&, const Rect&, const std::string& text, Pane);
  Style title_style(Pane p) const { return p == pane_ ? Style::accent : Style::dim; }

  Pane pane_ = Pane::answer;
  Scroller answer_scroll_, log_scroll_, phases_scroll_;
  Wrapped answer_, log_;
  bool conversation_ = false;
  Edit line_;
};

}  // namespace invar::tui
