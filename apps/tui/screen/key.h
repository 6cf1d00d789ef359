// Input from a terminal.
#pragma once

#include <string>

namespace invar::tui {

struct Key {
  enum class Kind {
    none,
    text,  // typed characters, or a paste
    paste,
    enter,
    tab,
    back_tab,
    backspace,
    erase,
    escape,
    up,
    down,
    left,
    right,
    page_up,
    page_down,
    home,
    end,
    word_left,
    word_right,
    function,  // F`number`
    control,   // Ctrl with the letter `number`, from 'a' on
    focus,     // a press on entry `number` of what is shown
    choose,    // the same, and choose it
    wheel_up,
    wheel_down,
    mouse,  // a press at x, y, before a screen says what lies there
  };
  Kind kind = Kind::none;
  std::string text = {};
  int number = 0;
  int x = 0, y = 0;

  bool is(Kind k) const { return kind == k; }
  bool is_function(int n) const { return kind == Kind::function && number == n; }
  bool is_control(char c) const { return kind == Kind::control && number == c; }
  bool is_text(const char* t) const { return kind == Kind::text && text == t; }
};

inline Key function_key(int number) {
  return {Key::Kind::function, {}, number};
}
inline Key text_key(const char* text) {
  return {Key::Kind::text, text};
}

}  // namespace invar::tui
