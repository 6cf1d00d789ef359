// The terminal: the only code that knows curses.
#pragma once

#include <memory>
#include <optional>

#include "base/status.h"
#include "screen/canvas.h"

namespace invar::tui {

// While it lives the terminal shows what is drawn. It is as before afterwards, also when the
// program crashes.
class Terminal {
 public:
  // Errors: the streams are no terminal, or one that cannot be drawn on.
  static Result<std::unique_ptr<Terminal>> open();
  ~Terminal();

  Canvas canvas() const;  // of the present size
  void show(const Canvas&);
  void resize();      // after SIGWINCH
  void redraw_all();  // something else may have written on it
  // The next key that is there.
  std::optional<Key> key();

 private:
  Terminal() = default;
  // One thing that came; a key of kind none where it is nothing for a screen.
  std::optional<Key> read();

  std::string paste_;
  bool pasting_ = false;
};

}  // namespace invar::tui
