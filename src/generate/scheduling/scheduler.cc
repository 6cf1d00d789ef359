// Many answers, several computed together: which requests run, which tokens a step computes, and
// who gives way where the pages of keys and values are too few.
#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "generate/engine/engine_impl.h"
#include "generate/scheduling/decode_groups.h"
#include "generate/scheduling/prompt_pace.h"
#include "num/env.h"
#include "run/prompt_tail.h"

namespace invar::generate {
namespace {

constexpr int64_t kPage = run::Session::kPagePositions;
using Clock = std::chrono::steady_clock;

double seconds(Clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

struct Entry {
  size_t number;
  Request* request;
  Scheduler::Turn turn;
  PageNames names;
  std::vector<int32_t> tokens;                // prompt and answer
  std::unique_ptr<GenerationLoop> loop = {};  // null: it has not begun
  Clock::time_point begun = {};
  int64_t sequence = -1;  // -1: it waits
  int64_t kept = 0;       // its first pages, which the pool knows
  int64_t cached = 0;     // positions of the prompt that were not computed
  size_t told = 0;        // tokens that steps have brought
};

// Who has had what. A client that comes is level with the least served of those that are there, so
// that nobody saves up.
class Service {
 public:
  void begins(uint64_t client) {
    Client& c = clients_[client];
    if (c.requests++ > 0) return;
    std::optional<int64_t> least;
    for (const auto& [other, of] : clients_)
      if (other != client && of.requests > 0) least = std::min(least.value_or(of.tokens), of.tokens);
    c.tokens = std::max(c.tokens, least.value_or(0));
  }
  void ends(uint64_t client) { --clients_[client].requests; }
  void had(uint64_t client, int64_t tokens) { clients_[client].tokens += tokens; }
  int64_t of(uint64_t client) const { return clients_.at(client).tokens; }

 private:
  struct Client {
    int64_t tokens = 0, requests = 0;
  };
  std::map<uint64_t, Client> clients_;
};

}  // namespace

struct Scheduler::Impl {
  using Part = GenerationLoop::Part;
  // What the next step computes: parts of prompts, and then a token of each of these, which are one
  // with the rest of its prompt, or those whose prompts are computed then.
  struct Plan {
    std::vector<std::pair<Entry*, size_t>> parts;
    std::vector<Entry*> next;
  };

  Impl(Engine::Impl& e, Observer& o, int64_t most, bool paced)
      : engine(e),
        pool(*e.pool),
        groups(*e.session),
        observer(o),
        prompt_tokens(e.is_reproducible() && most ? most : INT64_MAX),
        by_time(paced && e.is_reproducible() && most),
        pace(prompt_tokens, kPage, run::one_pass_rows(*e.session)) {
    rows.resize(static_cast<size_t>(e.session->sequences()));
  }
  ~Impl() {
    groups.finish();
    for (Entry* const row : rows)
      if (row) leave(*row);
  }
  Entry* first_waiting();
  bool has_room_for(Entry&);
  void begin_waiting();
  void begin(Entry&, int64_t sequence);
  void append_kept(Entry&);
  void leave(Entry&);
  std::vector<Entry*> running(bool fair) const;
  Plan plan();
  int64_t missing(const Plan&) const;
  void give_way(Plan&);
  Status compute(const Plan&);
  bool all_decode() const;
  Status advance(Step&);
  Status take_group(Step&);
  Status land(Step&);
  void tell(const Plan&, Step&);
  void seal_complete(Step&);
  bool comes_before(const Entry& a, const Entry& b) const {
    const auto rank = [this](const Entry& e) {
      return std::tuple(e.turn.priority, e.loop == nullptr, service.of(e.turn.client), e.number);
    };
    return rank(a) < rank(b);
  }
  // Whether others may have its keys and values, and it theirs.
  bool keeps(const Entry& e) const { return pool.keeps() && e.request->source().empty() && !engine.drafter; }
  bool takes(const Entry& e) const { return keeps(e) && !e.turn.anew; }

  Engine::Impl& engine;
  PagePool& pool;
  DecodeGroups groups;  // answers whose next tokens are in flight
  Observer& observer;
  const int64_t prompt_tokens;
  const bool by_time;
  PromptPace pace;
  std::vector<Entry*> rows;              // by the session's sequence; null: it is free
  std::map<size_t, Entry> entries = {};  // without those that are cancelled or answered
  Service service = {};
  Figures figures = {};
  size_t added = 0;
  bool answers_alone = false;            // the next step computes no prompt
  Step landed = {};                      // what cancel() brought, which step() has yet to tell
  Status problem = {};                   // of the steps that brought it
  std::deque<Complete> answered = {};    // that next() has yet to return
  std::unique_ptr<Phase> decoding = {};  // prompts and answers
  int64_t made = 0, total = 0;           // tokens of answers; the most there can be
};

// --- who runs ------------------------------------------------------------------------------------

Entry* Scheduler::Impl::first_waiting() {
  Entry* first = nullptr;
  for (auto& [number, e] : entries)
    if (e.sequence < 0 && (!first || comes_before(e, *first))) first = &e;
  return first;
}

// Those that run keep the room for what they know, and a page more of each that needs one.
bool Scheduler::Impl::has_room_for(Entry& e) {
  const std::vector<Entry*> others = running(false);
  if (others.empty()) return true;
  int64_t needed = (static_cast<int64_t>(e.tokens.size()) + kPage - 1) / kPage;
  for (const Entry* const o : others)
    needed += pool.missing(o->sequence,
                           std::min(static_cast<int64_t>(o->tokens.size()) + kPage, o->request->positions()));
  return needed <= pool.free();
}

// A free sequence takes the next request at once, so that later steps are full.
void Scheduler::Impl::begin_waiting() {
  for (;;) {
    std::vector<int64_t> free;
    for (size_t i = 0; i < rows.size(); ++i)
      if (!rows[i]) free.push_back(static_cast<int64_t>(i));
    Entry* const next = free.empty() ? nullptr : first_waiting();
    if (!next || !has_room_for(*next)) return;
    begin(*next, pool.choose(free, next->tokens));
  }
}

void Scheduler::Impl::begin(Entry& e, int64_t sequence) {
  rows[static_cast<size_t>(sequence)] = &e;
  e.sequence = sequence, e.kept = 0;
  const bool rows_of_prompt =
      e.loop ? e.loop->wants_prompt_rows() : e.request->settings->options.prompt_logprobs;
  const int64_t has = pool.begin(sequence, takes(e) && !rows_of_prompt ? std::span<const int32_t>(e.tokens)
                                                                       : std::span<const int32_t>());
  if (e.loop) {
    e.loop->resume(sequence);
  } else {
    e.loop = std::make_unique<GenerationLoop>(*engine.session, engine.task(*e.request),
                                              static_cast<size_t>(has), sequence);
    e.begun = Clock::now();
    if (takes(e)) figures.prefix_queries += e.tokens.size();
    e.cached = has, figures.prefix_hits += static_cast<uint64_t>(has);
  }
  append_kept(e);
}

// Pages that others have computed since, too: two equal prompts that begin in one step.
void Scheduler::Impl::append_kept(Entry& e) {
  if (!takes(e) || e.loop->wants_prompt_rows()) return;
  const int64_t more = pool.append_kept(e.sequence, e.names, e.tokens);
  if (more == 0) return;
  e.loop->skip(static_cast<size_t>(more));
  e.kept = engine.session->position(e.sequence) / kPage;
  if (e.told > 0) return;  // its answer is computed again
  e.cached += more, figures.prefix_hits += static_cast<uint64_t>(more);
}

// Its sequence is free.
void Scheduler::Impl::leave(Entry& e) {
  engine.session->finish_overlapped();
  pool.release(e.sequence, e.names,
               keeps(e) ? std::span<const int32_t>(e.tokens) : std::span<const int32_t>());
  rows[static_cast<size_t>(e.sequence)] = nullptr;
  e.sequence = -1;
}

// In the order of their turns, or of priority and arrival alone, which does not change.
std::vector<Entry*> Scheduler::Impl::running(bool fair) const {
  std::vector<Entry*> all;
  for (Entry* const row : rows)
    if (row) all.push_back(row);
  std::ranges::sort(all, [&](const Entry* a, const Entry* b) {
    if (fair) return comes_before(*a, *b);
    return std::pair(a->turn.priority, a->number) < std::pair(b->turn.priority, b->number);
  });
  return all;
}

// --- what a step computes ------------------------------------------------------------------------

// How many of a prompt's next tokens a step computes that has so many left of `most`. Passes of
// whole pages fill the tiles of kernels. What remains of a step of pages is not worth a pass of its
// own, unless a prompt ends in it.
static size_t part_of(size_t unfed, int64_t left, int64_t most) {
  if (static_cast<int64_t>(unfed) <= left) return unfed;
  return static_cast<size_t>(most < kPage ? left : left / kPage * kPage);
}

Scheduler::Impl::Plan Scheduler::Impl::plan() {
  Plan plan;
  const std::vector<Entry*> all = running(true);
  const auto answers = static_cast<size_t>(std::ranges::count_if(
      all, [](const Entry* e) { return !e->loop->complete() && e->loop->unfed() == 0; }));
  const auto first = std::ranges::find_if(all, [](const Entry* e) { return e->loop->unfed() > 0; });
  int64_t most = prompt_tokens;
  if (std::exchange(answers_alone, false))
    most = 0;
  else if (by_time && first != all.end())
    most = pace.tokens(all.size() - answers, answers,
                       static_cast<int64_t>((*first)->tokens.size()) - (*first)->cached);
  int64_t left = most;
  std::set<Digest> coming;  // pages that this step computes
  for (Entry* const e : all) {
    if (e->loop->complete() || e->loop->in_flight()) continue;  // the first one without a token
    if (e->loop->unfed() > 0) append_kept(*e);
    const size_t unfed = e->loop->unfed();
    // A prompt alone is one step, as a verifier computes it.
    const bool whole = all.size() == 1 && static_cast<int64_t>(unfed) < left && !e->loop->wants_prompt_rows();
    if (unfed == 0 || whole || !engine.is_reproducible()) {
      plan.next.push_back(e);
      continue;
    }
    const size_t count = part_of(unfed, left, most);
    const int64_t position = engine.session->position(e->sequence),
                  end = position + static_cast<int64_t>(count);
    if (count == 0) continue;
    if (keeps(*e) && pool.keeps_pages()) {
      const bool full = (position / kPage + 1) * kPage < static_cast<int64_t>(e->tokens.size());
      if (full && takes(*e) && !e->loop->wants_prompt_rows() && position % kPage == 0 &&
          coming.contains(e->names.of(e->tokens, position / kPage)))
        continue;  // somebody computes its next page now
      // The last of them may be there after a later step.
      const auto whole_pages = static_cast<int64_t>(e->tokens.size()) / kPage;
      for (int64_t i = position / kPage; i < std::min((end + kPage - 1) / kPage, whole_pages); ++i)
        coming.insert(e->names.of(e->tokens, i));
    }
    left -= static_cast<int64_t>(count);
    plan.parts.emplace_back(e, count);
    if (count == unfed) plan.next.push_back(e);
  }
  // The first token of a prompt comes with its rest, before the others' next ones, where no other
  // prompt shares the pass.
  if (by_time && plan.parts.size() == 1 && plan.next.size() > 1) {
    const auto [e, count] = plan.parts[0];
    if (count == e->loop->unfed() && !e->loop->wants_prompt_rows() &&
        static_cast<int64_t>(count) < run::one_pass_rows(*engine.session))
      plan = {{}, {e}}, answers_alone = true;
  }
  return plan;
}

// Pages that the step takes. A part may be padded to the length of another one by a third of it
// (run/partitions/prompt_passes.h).
int64_t Scheduler::Impl::missing(const Plan& plan) const {
  std::map<const Entry*, int64_t> ends;
  for (const auto& [e, count] : plan.parts)
    ends[e] = engine.session->position(e->sequence) + static_cast<int64_t>(count + count / 3) + 1;
  for (const Entry* const e : plan.next) ends[e] = std::max(ends[e], static_cast<int64_t>(e->tokens.size()));
  int64_t pages = 0;
  for (const auto& [e, end] : ends) pages += pool.missing(e->sequence, end);
  return pages;
}

// As long as there are too few pages, the last one of those that run waits again. Its answer is
// computed again from its tokens, which changes no bit (plan.11).
void Scheduler::Impl::give_way(Plan& plan) {
  for (std::vector<Entry*> all = running(false); all.size() > 1 && !pool.make_room(missing(plan));) {
    Entry* const last = all.back();
    all.pop_back();
    std::erase_if(plan.parts, [&](const auto& part) { return part.first == last; });
    std::erase(plan.next, last);
    leave(*last);
    ++figures.preemptions;
  }
  pool.make_room(missing(plan));
}

Status Scheduler::Impl::compute(const Plan& plan) {
  std::vector<Part> parts;
  int64_t prompts = 0;
  for (const auto& [e, count] : plan.parts) {
    parts.push_back({e->loop.get(), count});
    prompts += static_cast<int64_t>(count);
    service.had(e->turn.client, static_cast<int64_t>(count));
  }
  const auto begin = Clock::now();
  INVAR_CHECK_OK(GenerationLoop::prefill(*engine.session, parts));
  const auto between = Clock::now();
  if (prompts > 0) pace.prompts_took(prompts, seconds(between - begin));
  std::vector<GenerationLoop*> next;
  int64_t rest = 0;
  for (Entry* const e : plan.next) {
    next.push_back(e->loop.get());
    rest += static_cast<int64_t>(e->loop->unfed());
    service.had(e->turn.client, 1 + static_cast<int64_t>(e->loop->unfed()));
  }
  if (!next.empty()) {
    INVAR_CHECK_OK(GenerationLoop::advance(*engine.session, next));
    const double took = seconds(Clock::now() - between);
    if (rest > 0)
      pace.prompts_took(rest + 1, took);
    else
      pace.answers_took(next.size(), took);
  }
  return {};
}

// Whether the answers that are not in flight need nothing but a step of answers.
bool Scheduler::Impl::all_decode() const {
  return engine.is_reproducible() && std::ranges::all_of(rows, [](const Entry* e) {
           return !e || e->loop->complete() || e->loop->in_flight() || e->loop->decodes();
         });
}

// Answers alone decode in groups, where they gain by it. Whatever else is to be done is done while
// none is in flight.
Status Scheduler::Impl::advance(Step& step) {
  if (!groups.empty() && !all_decode()) return land(step);
  Plan plan = this->plan();
  if (!groups.empty() && !pool.make_room(missing(plan))) return land(step);
  give_way(plan);
  if (!all_decode() || !groups.divide(plan.next.size())) {
    INVAR_CHECK_OK(compute(plan));
    tell(plan, step);
    return {};
  }
  std::vector<GenerationLoop*> ready;
  for (const Entry* const e : plan.next) ready.push_back(e->loop.get());
  INVAR_CHECK_OK(groups.start(ready));
  return take_group(step);
}

// The tokens of the group that was started first.
Status Scheduler::Impl::take_group(Step& step) {
  INVAR_TRY(const std::vector<GenerationLoop*> loops, groups.take());
  Plan taken;
  for (const GenerationLoop* const loop : loops) {
    taken.next.push_back(rows[static_cast<size_t>(loop->sequence())]);
    service.had(taken.next.back()->turn.client, 1);
  }
  tell(taken, step);
  return {};
}

// Nothing is in flight then.
Status Scheduler::Impl::land(Step& step) {
  while (!groups.empty()) INVAR_CHECK_OK(take_group(step));
  return {};
}

// The tokens that have come, and the pages that are full.
void Scheduler::Impl::tell(const Plan& plan, Step& step) {
  for (Entry* const e : plan.next) {
    const Generation& made_of = e->loop->generation();
    for (; e->told < made_of.tokens.size(); ++e->told, ++made) {
      const int32_t token = made_of.tokens[e->told];
      auto& told = step.tokens.emplace_back(Step::Token{e->number, token, {}});
      if (e->told < made_of.logprobs.size()) told.logprobs = made_of.logprobs[e->told];
      e->tokens.push_back(token);
    }
    if (keeps(*e)) e->kept = pool.keep(e->sequence, e->names, e->tokens, e->kept);
  }
  for (const auto& [e, count] : plan.parts)
    if (keeps(*e)) e->kept = pool.keep(e->sequence, e->names, e->tokens, e->kept);
}

void Scheduler::Impl::seal_complete(Step& step) {
  for (Entry* const row : rows) {
    if (!row || (!row->loop->complete() && !row->loop->problem())) continue;
    leave(*row);
    service.ends(row->turn.client);
    const Entry done = std::move(entries.extract(row->number).mapped());
    if (done.loop->problem()) {
      step.failed.push_back({done.number, *done.loop->problem()});
      continue;
    }
    auto answer = engine.seal(*done.request, done.loop->generation(), observer);
    if (answer) {
      answer->cached_tokens = done.cached, answer->begun = done.begun;
      step.complete.push_back({done.number, *std::move(answer)});
    } else {
      step.failed.push_back({done.number, answer.error()});
    }
  }
}

// --- the scheduler -------------------------------------------------------------------------------

Scheduler::Scheduler(Engine& engine, Observer& observer, int64_t prompt_tokens, bool by_time)
    : impl_(new Impl{*engine.impl_, observer, prompt_tokens, by_time}) {
  impl_->engine.held.clear(), impl_->engine.memory_user = nullptr;
}
Scheduler::Scheduler(Scheduler&&) noexcept = default;
Scheduler::~Scheduler() = default;

size_t Scheduler::add(Request& request, Turn turn) {
  const std::span<const int32_t> prompt = request.continued();
  impl_->service.begins(turn.client);
  impl_->entries.emplace(
      impl_->added, Entry{impl_->added, &request, turn, impl_->pool.names(), {prompt.begin(), prompt.end()}});
  impl_->total += request.max_new_tokens;
  return impl_->added++;
}

void Scheduler::cancel(size_t request) {
  const auto found = impl_->entries.find(request);
  if (found == impl_->entries.end()) return;
  if (const auto& loop = found->second.loop; loop && loop->in_flight())
    impl_->problem = impl_->land(impl_->landed);
  std::erase_if(impl_->landed.tokens, [=](const Step::Token& t) { return t.request == request; });
  if (found->second.sequence >= 0) impl_->leave(found->second);
  impl_->service.ends(found->second.turn.client);
  impl_->entries.erase(found);
}

size_t Scheduler::running() const {
  return static_cast<size_t>(
      std::ranges::count_if(impl_->rows, [](const Entry* row) { return row != nullptr; }));
}

size_t Scheduler::waiting() const {
  return impl_->entries.size() - running();
}

Scheduler::Figures Scheduler::figures() const {
  Figures figures = impl_->figures;
  figures.kv_cache_usage = impl_->pool.usage();
  return figures;
}

Result<Scheduler::Step> Scheduler::step() {
  const num::ArithmeticEnv env;
  INVAR_CHECK_OK(std::exchange(impl_->problem, Status()));
  Step step = std::exchange(impl_->landed, {});
  impl_->begin_waiting();
  INVAR_CHECK_OK(impl_->advance(step));
  impl_->seal_complete(step);
  return step;
}

Result<std::optional<Scheduler::Complete>> Scheduler::next() {
  if (!impl_->decoding) impl_->decoding = impl_->observer.phase("decode");
  while (impl_->answered.empty() && !impl_->entries.empty()) {
    INVAR_TRY(Step done, step());
    impl_->decoding->progress(impl_->made, impl_->total, "tokens");
    if (!done.failed.empty()) return done.failed.front().error;
    for (Complete& complete : done.complete) impl_->answered.push_back(std::move(complete));
  }
  if (impl_->answered.empty()) {
    impl_->decoding->done(std::to_string(impl_->made) + " tokens");
    impl_->decoding.reset();
    return std::optional<Complete>();
  }
  Complete first = std::move(impl_->answered.front());
  impl_->answered.pop_front();
  return std::optional(std::move(first));
}

}  // namespace invar::generate
