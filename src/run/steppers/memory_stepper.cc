#include "run/steppers/memory_stepper.h"

#include <algorithm>

#include "run/partitions/prompt_passes.h"
#include "run/prompt_tail.h"

namespace invar::run {
namespace {

constexpr int64_t kDefaultChunk = 256, kDeviceChunk = 2048;
// The most memory for the logits of one pass.
constexpr int64_t kTailBytes = int64_t{512} << 20;
// So many sequences are worth a pass of their own through all weights.
constexpr size_t kPassSequences = 8;

void add_new_names(const std::vector<std::string>& names, std::vector<std::string>& all) {
  for (const std::string& name : names)
    if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
}

std::vector<std::string> names_of(const Pipeline& pipeline, std::vector<std::string> (Stage::*of)() const) {
  std::vector<std::string> all;
  for (const auto& stage : pipeline.stages()) add_new_names(((*stage).*of)(), all);
  return all;
}

}  // namespace

bool MemoryStepper::remembers(const Pipeline& pipeline) {
  return std::ranges::all_of(pipeline.stages(), [](const auto& stage) { return stage->has_memory(); });
}

bool MemoryStepper::has_leading_sequences(int value) const {
  return std::ranges::all_of(pipeline_->stages(),
                             [=](const auto& stage) { return stage->has_leading_sequences(value); });
}

std::vector<std::string> MemoryStepper::kernels() const {
  return names_of(*pipeline_, &Stage::kernels);
}

std::vector<std::string> MemoryStepper::libraries() const {
  return names_of(*pipeline_, &Stage::libraries);
}

// The queues of stages with states of fixed size, and the messages of stages elsewhere, are of one
// thread at a time.
void MemoryStepper::rest_unless_shared() {
  if (!shares_pages_) pipeline_->rest();
}

Status MemoryStepper::weights_unchanged() {
  rest_unless_shared();
  for (const auto& stage : pipeline_->stages()) INVAR_CHECK_OK(stage->weights_unchanged());
  return {};
}

// The most rows of a pass.
int64_t MemoryStepper::most_rows() const {
  if (options().chunk) return options().chunk;
  const auto groups = static_cast<int64_t>(pipeline_->groups());
  return state_.context.device ? std::max(kDeviceChunk / groups, kDefaultChunk) : kDefaultChunk;
}

void MemoryStepper::size_passes() {
  const Options& o = options();
  chunk_ = stages_remember_ ? std::min(most_rows(), o.capacity) : o.capacity;  // without: all rows in one
  tail_rows_ = stages_remember_ ? std::min(kTailRows, chunk_) : chunk_;
  pass_rows_ = stages_remember_ ? std::min(most_rows(), o.capacity * o.sequences) : chunk_;
}

Status MemoryStepper::load() {
  const Options& o = options();
  size_passes();
  if (stages_remember_ && o.first_wanted > 0)
    tail_rows_ =
        std::max(tail_rows_, std::min(rows_with_tail(o.first_rows, o.first_wanted), most_tail_rows()));
  stage_context_->rows = pass_rows_, stage_context_->tail_rows = tail_rows_;
  if (shares_pages_)
    for (const auto& stage : pipeline_->stages()) stage->share_pages();
  INVAR_CHECK_OK(pipeline_->load());
  INVAR_CHECK_OK(reserve());
  return find_pages();
}

static Error steps_in_flight() {
  return {Code::internal, "the session has steps in flight"};
}

Status MemoryStepper::resize() {
  if (in_flight()) return steps_in_flight();
  size_passes();
  INVAR_CHECK_OK(reserve());
  return find_pages();
}

Status MemoryStepper::find_pages() {
  std::vector<StatePages*> all;
  for (const auto& stage : pipeline_->stages())
    if (StatePages* const pages = stage->pages()) all.push_back(pages);
  pages_.reset();
  if (!shares_pages_ || all.empty()) return {};
  INVAR_TRY(pages_, SharedPages::of(std::move(all), options().state_memory, options().capacity,
                                    pipeline_->preparing()));
  return {};
}

// In all stages before any of them computes: too little memory in one changes none.
Status MemoryStepper::take_pages(std::span<const StagePass> through) {
  if (!pages_) return {};
  for (const StagePass& pass : through)
    for (const ops::Sequence& s : pass.sequences) {
      if (in_flight() && pages_->copies(s.slot, s.past)) pipeline_->rest();  // by the stages' queues
      INVAR_CHECK_OK(pages_->take(s.slot, s.past, s.past + pass.rows()));
    }
  return {};
}

// A pass of several sequences has as many rows as one of a long prompt, where there is the memory.
Status MemoryStepper::reserve() {
  if (tail_rows_ > kTailRows && stages_remember_) {
    if (reserve(pass_rows_, tail_rows_)) return {};
    tail_rows_ = std::min(kTailRows, chunk_);
  }
  const Status reserved = reserve(pass_rows_, tail_rows_);
  if (reserved || pass_rows_ == chunk_) return reserved;
  pass_rows_ = chunk_;
  return reserve(pass_rows_, tail_rows_);
}

// Memory for passes of up to so many rows with logits, where there is enough of it. Otherwise there
// are more passes.
void MemoryStepper::reserve_tails(int64_t rows) {
  const int64_t most = most_tail_rows();
  if (rows <= tail_rows_ || tail_rows_ == most) return;
  state_.finish_overlapped();  // it may read what is replaced
  rows = std::clamp(rows, std::min(2 * tail_rows_, most), most);
  tails_fit_ = static_cast<bool>(reserve(pass_rows_, rows));
  if (tails_fit_) tail_rows_ = rows;
}

// The most memory for the logits of one pass bounds its rows.
int64_t MemoryStepper::most_tail_rows() const {
  return std::clamp(kTailBytes / (state_.vocab * static_cast<int64_t>(sizeof(float))), tail_rows_, chunk_);
}

Status MemoryStepper::run(std::span<const StagePass> through, const Pipeline::Take& take) {
  if (in_flight()) return steps_in_flight();
  INVAR_CHECK_OK(check_states(through));
  INVAR_CHECK_OK(take_pages(through));
  state_.hidden.clear();
  size_t with_hidden = 0;  // passes
  Status ran = pipeline_->run(
      through, [this] { state_.finish_overlapped(); },
      [&](size_t pass, size_t before, std::span<const float> logits) {
        if (const auto rows = pipeline_->stages()[0]->hidden(); pass >= with_hidden)
          keep_hidden(rows, through[pass].rows()), with_hidden = pass + 1;
        state_.taking = pipeline_->overlaps() && !state_.context.device;
        take(pass, before, logits);
        state_.taking = false;
      });
  move_states(through, static_cast<bool>(ran));
  return ran;
}

// Those of the last positions, whose number is bounded.
void MemoryStepper::keep_hidden(std::span<const float> rows, int64_t count) {
  std::vector<float>& kept = state_.hidden;
  const size_t most = rows.size() / static_cast<size_t>(count) * Session::kHiddenRows;
  kept.insert(kept.end(), rows.begin(), rows.end());
  if (kept.size() > 2 * most) kept.erase(kept.begin(), kept.end() - static_cast<int64_t>(most));
}

// Keys that a failed step wrote are written again; a state of fixed size that it moved is gone.
Status MemoryStepper::check_states(std::span<const StagePass> through) {
  if (!has_fixed_states_) return {};
  std::vector<bool> begins(snapshots_.size());
  for (const StagePass& pass : through)
    for (const ops::Sequence& s : pass.sequences) {
      const auto slot = static_cast<size_t>(s.slot);
      if (s.past == 0) begins[slot] = true;
      if (!begins[slot] && snapshots_[slot].lost())
        return bad_input("an earlier step of sequence " + std::to_string(s.slot) +
                         " failed, and its states are lost: reset it");
    }
  return {};
}

void MemoryStepper::move_states(std::span<const StagePass> through, bool good) {
  if (!has_fixed_states_) return;
  for (const StagePass& pass : through)
    for (const ops::Sequence& s : pass.sequences) {
      SnapshotPositions& one = snapshots_[static_cast<size_t>(s.slot)];
      if (!good)
        one.lose();
      else  // only a session of one sequence makes copies
        one.ended(s.past + pass.rows(), snapshots_.size() == 1 ? pass.rows() : 1);
    }
}

int64_t MemoryStepper::forget(int64_t sequence, int64_t keep) {
  SnapshotPositions* const states = has_fixed_states_ ? &snapshots_[static_cast<size_t>(sequence)] : nullptr;
  if (states) keep = states->last(keep);
  rest_unless_shared();
  bool good = true;
  {
    const std::unique_lock alone(pipeline_->preparing());
    for (const auto& stage : pipeline_->stages()) good &= static_cast<bool>(stage->forget(sequence, keep));
  }
  if (!states) return keep;
  if (!good && keep > 0) return forget(sequence, 0);
  states->go_back(keep);
  return keep;
}

Status MemoryStepper::append_many(std::span<const NewTokens> all) {
  const PromptPasses prompts(all, state_.position, pass_rows_, !has_fixed_states_);
  int64_t done = 0;
  return run(prompts.passes(), [&](size_t p, size_t, std::span<const float>) {
    done += prompts.tokens(p);
    if (options().progress && prompts.passes().size() > 1) options().progress(done, prompts.tokens());
  });
}

size_t MemoryStepper::groups(size_t sequences) const {
  return std::clamp<size_t>(sequences / kPassSequences, 1, pipeline_->groups());
}

Result<Allocation> MemoryStepper::make_logits(size_t rows) const {
  const size_t bytes = rows * static_cast<size_t>(state_.vocab) * sizeof(float);
  return state_.context.device ? Allocation::make_pinned(bytes, "logits", state_.context.device)
                               : Allocation::make(bytes, "logits");
}

Result<std::span<const float>> MemoryStepper::step_many(std::span<const NextToken> next) {
  batch_.clear(), batch_tokens_.clear(), passes_.clear();
  for (const NextToken& n : next) {
    batch_.push_back({n.sequence, state_.position[n.sequence]});
    batch_tokens_.push_back(n.token);
  }
  // Several passes overlap in the lanes.
  const size_t count = groups(next.size());
  const size_t row = static_cast<size_t>(state_.vocab);
  // Their logits lie together. Those of the step before may still be read.
  Allocation& all = batch_logits_[batch_turn_ ^= 1];
  if (count > 1 && all.size() < next.size() * row * sizeof(float)) {
    INVAR_TRY(all, make_logits(next.size()));
  }
  for (size_t p = 0; p < count; ++p) {
    const size_t begin = p * next.size() / count, size = (p + 1) * next.size() / count - begin;
    passes_.push_back(
        {std::span(batch_tokens_).subspan(begin, size), std::span(batch_).subspan(begin, size)});
    if (count > 1) passes_.back().logits = all.data() + begin * row * sizeof(float);
  }
  std::span<const float> found;
  INVAR_CHECK_OK(run(passes_, [&](size_t, size_t, std::span<const float> logits) { found = logits; }));
  return count > 1 ? std::span(reinterpret_cast<const float*>(all.data()), next.size() * row) : found;
}

Status MemoryStepper::start_many(std::span<const NextToken> next) {
  if (pipeline_->groups() == 1 || pipeline_->in_flight() == pipeline_->groups()) return steps_in_flight();
  Flight& f = flight(pipeline_->in_flight());
  f.sequences.clear(), f.tokens.clear();
  for (const NextToken& n : next) {
    f.sequences.push_back({n.sequence, state_.position[n.sequence]});
    f.tokens.push_back(n.token);
  }
  const size_t bytes = next.size() * static_cast<size_t>(state_.vocab) * sizeof(float);
  if (f.logits.size() < bytes) {
    INVAR_TRY(f.logits, make_logits(next.size()));
  }
  f.pass = {f.tokens, f.sequences};
  f.pass.logits = f.logits.data();
  INVAR_CHECK_OK(check_states({&f.pass, 1}));
  INVAR_CHECK_OK(take_pages({&f.pass, 1}));
  pipeline_->start(f.pass);
  state_.taking = !state_.context.device;
  return {};
}

Result<std::span<const float>> MemoryStepper::take_many() {
  state_.finish_overlapped();
  const size_t flying = pipeline_->in_flight();
  if (flying == 0) return Stepper::take_many();
  const Status taken = pipeline_->take();
  state_.taking = in_flight() && !state_.context.device;
  for (size_t i = 0; i < (taken ? 1 : flying); ++i)
    move_states({&flight(i).pass, 1}, static_cast<bool>(taken));
  INVAR_CHECK_OK(taken);
  const Flight& f = flight(0);
  ++taken_;
  return std::span(reinterpret_cast<const float*>(f.logits.data()),
                   f.tokens.size() * static_cast<size_t>(state_.vocab));
}

size_t MemoryStepper::bytes() const {
  size_t bytes = pipeline_->bytes() + batch_logits_[0].size() + batch_logits_[1].size();
  for (const Flight& f : flights_) bytes += f.logits.size();
  return bytes;
}

int64_t MemoryStepper::in_one_pass() const {
  if (!tails_fit_) return kTailRows;  // it is not asked for in every step
  return one_pass_rows(state_.context.device != nullptr, state_.placement.empty(), options().sequences);
}

// The rows of logits that a step computes: at least the wanted ones. Without memory all rows must
// run as one step. A GPU computes the logits of more rows in less time than a second pass over the
// weights takes.
int64_t MemoryStepper::rows_with_tail(int64_t size, int64_t wanted) const {
  if (!stages_remember_ || (wanted == 1 && size <= kTailRows)) return size;
  if (wanted == 1 && size <= std::min(in_one_pass(), most_tail_rows())) return size;
  const bool in_one =
      state_.context.device && wanted > kTailRows && size <= 4 * wanted && size <= most_tail_rows();
  return in_one ? size : wanted;
}

Status MemoryStepper::step_rows(const NewTokens& next, int64_t wanted, const TakeRows& take) {
  return step_from(next.tokens, next.sequence, state_.position[next.sequence],
                   static_cast<int64_t>(next.tokens.size()), wanted, take);
}

Status MemoryStepper::step_from(std::span<const int32_t> tokens, int64_t sequence, int64_t past,
                                int64_t count, int64_t wanted, const TakeRows& take) {
  // Rows whose logits nobody wants run without tail.
  const int64_t size = static_cast<int64_t>(tokens.size()), first_wanted = size - wanted;
  int64_t with_tail = rows_with_tail(size, wanted);
  reserve_tails(wanted == 1 && with_tail > kTailRows ? in_one_pass() : with_tail);
  if (wanted == 1 && with_tail > tail_rows_) with_tail = 1;  // there is no memory for it
  passes_.clear(), pass_sequences_.clear();
  for (int64_t begin = 0, end; begin < size; begin = end) {
    const bool tail = begin >= size - with_tail;
    end = std::min(begin + (tail ? std::min(chunk_, tail_rows_) : chunk_), tail ? size : size - with_tail);
    passes_.push_back({tokens.subspan(begin, end - begin), {}, tail});
    const size_t row = state_.fed_hidden.size() / tokens.size();
    passes_.back().hidden = std::span(state_.fed_hidden).subspan(begin * row, (end - begin) * row);
    pass_sequences_.push_back({sequence, past + begin});
  }
  for (size_t p = 0; p < passes_.size(); ++p) {
    passes_[p].sequences = {&pass_sequences_[p], 1};
    const int64_t begin = pass_sequences_[p].past - past,
                  unwanted = std::clamp(first_wanted - begin, int64_t{0}, passes_[p].rows() - 1);
    passes_[p].unwanted = static_cast<size_t>(unwanted * state_.vocab) * sizeof(float);
  }
  int64_t done = 0;
  return run(passes_, [&](size_t p, size_t before, std::span<const float> logits) {
    const bool first = before * sizeof(float) <= passes_[p].unwanted;
    if (first) done += passes_[p].rows();
    if (options().progress && first && size > chunk_) options().progress(done, size);
    const int64_t begin = pass_sequences_[p].past - past + static_cast<int64_t>(before) / state_.vocab,
                  unwanted = std::max(first_wanted - begin, int64_t{0});
    if (unwanted * state_.vocab < static_cast<int64_t>(logits.size()))
      take(begin + unwanted - (size - count), logits.subspan(static_cast<size_t>(unwanted * state_.vocab)));
  });
}

}  // namespace invar::run
