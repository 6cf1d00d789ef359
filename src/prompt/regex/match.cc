// The matcher. Backtracking points are frames of an explicit stack; a run of one set is a single
// frame however long it is, so text of any length needs no recursion, and memory grows only with
// repeated groups.
#include <algorithm>
#include <bit>

#include "base/text/utf8.h"
#include "prompt/regex/regex.h"

namespace invar::prompt {
namespace {

// The kinds of frames in Frame.extra. A plain one means "go to pc at this place".
enum : uint32_t { plain, give_back, take_one, branches, barrier, barrier_not };

bool take(const Bitmap& set, std::string_view text, size_t& at) {
  if (at == text.size()) return false;
  const uint8_t lead = static_cast<uint8_t>(text[at]);
  if (lead < 0x80) return set.ascii(lead) ? (++at, true) : false;
  size_t next = at;
  if (!set.contains(decode_utf8(text, next))) return false;
  at = next;
  return true;
}

}  // namespace

size_t Regex::run_of(const Bitmap& set, std::string_view text, size_t at, uint32_t most,
                     uint32_t& count) const {
  uint32_t n = 0;
  while (n < most && take(set, text, at)) ++n;
  count = n;
  return at;
}

uint64_t Regex::open_branches(const Branches& b, std::string_view text, size_t at) const {
  if (at == text.size()) return b.at_end;
  const uint8_t lead = static_cast<uint8_t>(text[at]);
  return lead < 0x80 ? b.by_byte[lead] : b.other;
}

std::optional<Regex::Match> Regex::find(std::string_view text, size_t from, Scratch& scratch) const {
  for (size_t at = from;;) {
    size_t end = 0;
    if (code_[0].op != Code::choose || open_branches(branches_[code_[0].x], text, at) != 0) {
      if (match_at(text, at, end, scratch)) return Match{at, end};
      if (scratch.steps < 0) return std::nullopt;
    }
    if (at == text.size()) return std::nullopt;
    decode_utf8(text, at);
  }
}

// Long because it is the dispatch loop of the matcher: one case per instruction, on shared state.
bool Regex::match_at(std::string_view text, size_t begin, size_t& end, Scratch& scratch) const {
  auto& stack = scratch.stack;
  stack.clear();
  uint32_t pc = 0;
  size_t at = begin;
  // Frames: plain {pc, at}; give_back {pc of the run, at: where it ends now, floor: the least end};
  // take_one {pc of the run, at, floor: how many more}; branches {pc of the choice, at, floor:
  // those not yet tried}; barrier(_not) {pc behind the group, at}.
  const auto cut = [&] {  // back to the innermost open group
    while (stack.back().extra != barrier && stack.back().extra != barrier_not) stack.pop_back();
    const Scratch::Frame f = stack.back();
    stack.pop_back();
    return f;
  };
  for (;;) {
    if (--scratch.steps < 0) return false;
    const Code& c = code_[pc];
    bool ok = true;
    switch (c.op) {
      case Code::chars:
        ok = take(sets_[c.x], text, at);
        ++pc;
        break;
      case Code::run:
      case Code::run_possessive: {
        uint32_t count;
        const size_t start = at;
        size_t floor = at;
        if (c.op == Code::run && c.n[0] != 0) {
          floor = run_of(sets_[c.x], text, at, c.n[0], count);
          ok = count == c.n[0];
          if (!ok) break;
          at = run_of(sets_[c.x], text, floor, c.n[1] == kNoBound ? kNoBound : c.n[1] - c.n[0], count);
        } else {
          at = run_of(sets_[c.x], text, at, c.n[1], count);
          ok = count >= c.n[0];
        }
        scratch.steps -= static_cast<int64_t>(at - start);
        if (ok && c.op == Code::run && at > floor) stack.push_back({pc, give_back, at, floor});
        ++pc;
        break;
      }
      case Code::run_lazy: {
        uint32_t count;
        at = run_of(sets_[c.x], text, at, c.n[0], count);
        ok = count == c.n[0];
        if (ok && c.n[1] > c.n[0])
          stack.push_back({pc, take_one, at, c.n[1] == kNoBound ? SIZE_MAX : c.n[1] - c.n[0]});
        ++pc;
        break;
      }
      case Code::choose: {
        const Branches& b = branches_[c.x];
        uint64_t open = open_branches(b, text, at);
        ok = open != 0;
        if (!ok) break;
        const uint32_t next = b.target[std::countr_zero(open)];
        open &= open - 1;
        if (open) stack.push_back({pc, branches, at, static_cast<size_t>(open)});
        pc = next;
        break;
      }
      case Code::jump: pc = c.x; break;
      case Code::prefer:
        stack.push_back({c.x, plain, at, 0});
        ++pc;
        break;
      case Code::defer:
        stack.push_back({pc + 1, plain, at, 0});
        pc = c.x;
        break;
      case Code::look:
      case Code::atomic:
        stack.push_back({c.x, barrier, at, 0});
        ++pc;
        break;
      case Code::look_not:
        stack.push_back({c.x, barrier_not, at, 0});
        ++pc;
        break;
      case Code::look_end: {
        const Scratch::Frame f = cut();
        at = f.at;
        ok = f.extra == barrier;
        pc = f.pc;
        break;
      }
      case Code::atomic_end:
        cut();
        ++pc;
        break;
      case Code::line_start:
        ok = at == 0 || (text[at - 1] == '\n' && at != text.size());
        ++pc;
        break;
      case Code::line_end:
        ok = at == text.size() || text[at] == '\n';
        ++pc;
        break;
      case Code::text_start:
        ok = at == 0;
        ++pc;
        break;
      case Code::text_end:
        ok = at == text.size();
        ++pc;
        break;
      case Code::match: end = at; return true;
    }
    while (!ok) {
      if (stack.empty()) return false;
      if (--scratch.steps < 0) return false;
      Scratch::Frame& f = stack.back();
      switch (f.extra) {
        case plain:
        case barrier_not:
          pc = f.pc, at = f.at, ok = true;
          stack.pop_back();
          break;
        case barrier: stack.pop_back(); break;
        case give_back:
          at = f.at = previous_utf8(text, f.at);
          pc = f.pc + 1, ok = true;
          if (f.at == f.floor) stack.pop_back();
          break;
        case take_one:
          ok = take(sets_[code_[f.pc].x], text, f.at);
          if (!ok) {
            stack.pop_back();
            break;
          }
          at = f.at, pc = f.pc + 1;
          if (--f.floor == 0) stack.pop_back();
          break;
        case branches: {
          const Branches& b = branches_[code_[f.pc].x];
          uint64_t open = f.floor;
          pc = b.target[std::countr_zero(open)];
          at = f.at, ok = true;
          open &= open - 1;
          if (open)
            f.floor = static_cast<size_t>(open);
          else
            stack.pop_back();
          break;
        }
      }
    }
  }
}

}  // namespace invar::prompt
