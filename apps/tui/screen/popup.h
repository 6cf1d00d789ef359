// A popup lies over a page and takes the keys: lists to choose from, texts to read, a question.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/browser.h"
#include "screen/canvas.h"
#include "screen/text.h"

namespace invar::tui {

class Popup {
 public:
  virtual ~Popup() = default;
  virtual void draw(Canvas&) = 0;
  // Whether it stays open.
  virtual bool handle(const Key&) = 0;
  virtual void set_hub(const std::vector<HubModel>&) {}
};

using Chosen = std::function<void(const std::string&)>;

// A path or a model.
std::unique_ptr<Popup> make_browser(std::string title, Browser, Chosen);
// One of a few words.
std::unique_ptr<Popup> make_choices(std::string title, std::vector<std::string> choices,
                                    const std::string& now, Chosen);
// A text that scrolls.
std::unique_ptr<Popup> make_pager(std::string title, std::string text);
// y or n; `yes` is called for y.
std::unique_ptr<Popup> make_question(std::string question, std::function<void()> yes);

// Lines and where they are scrolled to; at the end they follow what is added.
class Scroller {
 public:
  // Returns the first line to draw.
  size_t first(size_t lines, int height);
  // Whether the key scrolls.
  bool handle(const Key&);
  void to_end() { follow_ = true; }
  void to_start() { top_ = 0, follow_ = false; }

 private:
  long top_ = 0, page_ = 1, last_ = 0;
  bool follow_ = true;
};
// The lines, and a mark at the right edge that says where they are.
void draw_lines(Canvas&, const Rect&, const std::vector<std::string>& lines, Scroller&, Style = Style::plain);
// The first entry to draw so that `at` is in view.
size_t first_in_view(size_t at, size_t first, size_t count, int height);

}  // namespace invar::tui
