#include "terminal.h"

#define NCURSES_NOMACROS
#include <curses.h>
#include <langinfo.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/text/utf8.h"
#include "terminfo.h"

namespace invar::tui {
namespace {

termios before;
bool opened = false, colours = false;

constexpr int kPasteBegin = KEY_MAX + 1, kPasteEnd = KEY_MAX + 2, kWordLeft = KEY_MAX + 3,
              kWordRight = KEY_MAX + 4;

// Mouse off, plain paste, main screen, cursor on, attributes off: what is safe in a signal handler.
constexpr char kRestore[] =
    "\033[?1000l\033[?1002l\033[?1006l\033[?2004l\033[0m\033[?25h\033[?1l\033>\033[?1049l\r\n";

void crashed(int number) {
  if (opened) {
    (void)!::write(STDOUT_FILENO, kRestore, sizeof kRestore - 1);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &before);
  }
  ::raise(number);  // SA_RESETHAND: now as the system does
}

void write_raw(const char* text) {
  (void)!::write(STDOUT_FILENO, text, std::strlen(text));
}

attr_t attributes(Style s) {
  const auto colour = [](int pair, attr_t without) {
    return colours ? static_cast<attr_t>(COLOR_PAIR(pair)) : without;
  };
  switch (s) {
    case Style::plain: return A_NORMAL;
    case Style::bold: return A_BOLD;
    case Style::dim: return A_DIM;
    case Style::title: return colour(1, A_REVERSE);
    case Style::focus: return colour(2, A_BOLD | A_UNDERLINE);
    case Style::accent: return colour(3, A_BOLD);
    case Style::good: return colour(4, A_BOLD) | A_BOLD;
    case Style::bad: return colour(5, A_BOLD) | A_BOLD;
    case Style::warn: return colour(6, A_BOLD);
    case Style::bar: return colour(4, A_NORMAL);
  }
  return A_NORMAL;
}

void use_colours() {
  const char* const no = std::getenv("NO_COLOR");  // https://no-color.org
  colours = !(no && *no) && has_colors();
  if (!colours) return;
  start_color();
  use_default_colors();
  init_pair(1, COLOR_WHITE, COLOR_BLUE);
  init_pair(2, COLOR_BLACK, COLOR_CYAN);
  init_pair(3, COLOR_CYAN, -1);
  init_pair(4, COLOR_GREEN, -1);
  init_pair(5, COLOR_RED, -1);
  init_pair(6, COLOR_YELLOW, -1);
}

Error no_terminal(const std::string& why) {
  return bad_input(why + ": `invar run` and the other commands need no terminal");
}

}  // namespace

Result<std::unique_ptr<Terminal>> Terminal::open() {
  if (!::isatty(STDIN_FILENO) || !::isatty(STDOUT_FILENO))
    return no_terminal("standard input and output are not both a terminal");
  std::setlocale(LC_ALL, "");
  if (std::strcmp(::nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
  const char* const name = std::getenv("TERM");
  if (const std::string problem = terminal_problem(name); !problem.empty()) return no_terminal(problem);
  ::tcgetattr(STDIN_FILENO, &before);
  if (!::newterm(name, stdout, stdin))
    return no_terminal("TERM=" + std::string(name) + " cannot be drawn on");
  opened = true;
  struct sigaction action = {};
  action.sa_handler = crashed;
  action.sa_flags = SA_RESETHAND | SA_NODEFER;
  for (const int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS})
    ::sigaction(s, &action, nullptr);
  std::unique_ptr<Terminal> terminal(new Terminal);
  ::raw();
  ::noecho();
  ::nonl();
  ::keypad(stdscr, TRUE);
  ::nodelay(stdscr, TRUE);
  ::set_escdelay(30);
  use_colours();
  ::mouseinterval(0);
  ::mousemask(BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED, nullptr);
  ::define_key("\033[200~", kPasteBegin);
  ::define_key("\033[201~", kPasteEnd);
  for (const char* s : {"\033[1;5D", "\033[1;3D", "\033b"}) ::define_key(s, kWordLeft);
  for (const char* s : {"\033[1;5C", "\033[1;3C", "\033f"}) ::define_key(s, kWordRight);
  write_raw("\033[?2004h");
  return terminal;
}

Terminal::~Terminal() {
  write_raw("\033[?2004l");
  ::endwin();
  ::tcsetattr(STDIN_FILENO, TCSANOW, &before);
  opened = false;
}

Canvas Terminal::canvas() const {
  return {COLS, LINES};
}

void Terminal::resize() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
    ::resizeterm(size.ws_row, size.ws_col);
}

void Terminal::redraw_all() {
  ::clearok(curscr, TRUE);
}

void Terminal::show(const Canvas& canvas) {
  ::erase();
  for (int y = 0; y < canvas.height(); ++y) {
    std::string run;
    int from = 0;
    Style style = Style::plain;
    const auto flush = [&] {
      if (run.empty()) return;
      ::attrset(attributes(style));
      ::mvaddstr(y, from, run.c_str());
      run.clear();
    };
    for (int x = 0; x < canvas.width(); ++x) {
      const Canvas::Cell& cell = canvas.at(x, y);
      if (cell.style != style || run.empty()) {
        flush();
        from = x, style = cell.style;
      }
      run += cell.text;
    }
    flush();
  }
  ::attrset(A_NORMAL);
  ::curs_set(canvas.cursor_x() >= 0 ? 1 : 0);
  if (canvas.cursor_x() >= 0) ::move(canvas.cursor_y(), std::min(canvas.cursor_x(), canvas.width() - 1));
  ::refresh();
}

std::optional<Key> Terminal::key() {
  for (;;) {
    auto key = read();
    if (!key || !key->is(Key::Kind::none)) return key;
  }
}

namespace {

using K = Key::Kind;

Key mouse_key() {
  MEVENT event;
  if (::getmouse(&event) != OK) return {};
  Key key;
  key.x = event.x, key.y = event.y;
  if (event.bstate & BUTTON4_PRESSED) return {K::wheel_up};
  if (event.bstate & BUTTON5_PRESSED) return {K::wheel_down};
  if (event.bstate & BUTTON1_PRESSED) key.kind = K::mouse;
  return key;
}

Key special_key(int code) {
  switch (code) {
    case KEY_UP: return {K::up};
    case KEY_DOWN: return {K::down};
    case KEY_LEFT: return {K::left};
    case KEY_RIGHT: return {K::right};
    case KEY_PPAGE: return {K::page_up};
    case KEY_NPAGE: return {K::page_down};
    case KEY_HOME: return {K::home};
    case KEY_END: return {K::end};
    case KEY_BACKSPACE: return {K::backspace};
    case KEY_DC: return {K::erase};
    case KEY_BTAB: return {K::back_tab};
    case KEY_ENTER: return {K::enter};
    case KEY_MOUSE: return mouse_key();
    case kWordLeft: return {K::word_left};
    case kWordRight: return {K::word_right};
    default: break;
  }
  if (code > KEY_F0 && code <= KEY_F0 + 12) return function_key(code - KEY_F0);
  return {};
}

Key character_key(uint32_t c) {
  switch (c) {
    case '\r':
    case '\n': return {K::enter};
    case '\t': return {K::tab};
    case 8:
    case 127: return {K::backspace};
    case 27: return {K::escape};
    default: break;
  }
  if (c < 27) return {K::control, {}, static_cast<int>('a' + c - 1)};
  if (c < 32) return {};
  std::string text;
  append_utf8(text, c);
  return {K::text, text};
}

}  // namespace

std::optional<Key> Terminal::read() {
  wint_t c = 0;
  const int kind = ::get_wch(&c);
  if (kind == ERR) return std::nullopt;
  if (kind == KEY_CODE_YES && c == static_cast<wint_t>(kPasteBegin)) {
    pasting_ = true;
    paste_.clear();
    return Key();
  }
  if (kind == KEY_CODE_YES && c == static_cast<wint_t>(kPasteEnd)) {
    pasting_ = false;
    return Key{K::paste, std::exchange(paste_, {})};
  }
  if (!pasting_) return kind == KEY_CODE_YES ? special_key(static_cast<int>(c)) : character_key(c);
  if (kind == OK) append_utf8(paste_, c == '\r' ? '\n' : c);
  return Key();
}

}  // namespace invar::tui
