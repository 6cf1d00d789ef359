// The pipeline of stages, see pipeline_executor.h.
#include "run/partitions/pipeline_executor.h"

#include <algorithm>
#include <map>
#include <utility>

#include "num/env.h"
#include "run/execute/joins/stay_awake.h"

namespace invar::run {

Pipeline::Pipeline(std::vector<std::unique_ptr<Stage>> stages) : stages_(std::move(stages)) {
  std::map<std::string, size_t> lanes;
  for (const auto& s : stages_) lane_of_.push_back(lanes.emplace(s->lane(), lanes.size()).first->second);
  lanes_ = std::max<size_t>(lanes.size(), 1);
  stages_of_.resize(lanes_);
  for (size_t s = stages_.size(); s-- > 0;) stages_of_[lane_of_[s]].push_back(s);
  done_.resize(stages_.size()), busy_.resize(lanes_);
  on_gpus_ = std::ranges::all_of(stages_, [](const auto& s) { return s->device() != nullptr; });
}

Result<std::unique_ptr<Pipeline>> Pipeline::make(std::vector<std::unique_ptr<Stage>> stages,
                                                 const std::vector<plan::Stage>& parts,
                                                 const DecoderPorts& ports,
                                                 std::vector<std::shared_ptr<Allocation>> arenas) {
  std::unique_ptr<Pipeline> p(new Pipeline(std::move(stages)));
  p->arenas_ = std::move(arenas);
  INVAR_CHECK_OK(p->connect(parts, ports));
  if (p->lanes_ > 1) p->start_lanes();
  return p;
}

Pipeline::~Pipeline() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    notify();
  }
  for (std::thread& t : threads_) t.join();
}

Status Pipeline::connect(const std::vector<plan::Stage>& parts, const DecoderPorts& ports) {
  std::map<int, size_t> maker;      // value -> stage
  std::map<int, bool> feeds_later;  // value -> whether states of later stages depend on it
  logits_ = ports.logits, last_ = parts.size() - 1;
  int ranks = 1;
  for (const plan::Stage& s : parts) ranks = std::max(ranks, s.rank + 1);
  groups_ = std::max<size_t>(lanes_ / static_cast<size_t>(ranks), 1);
  // One pass in each lane, and one on its way between two. Groups find the same slots again, whose
  // addresses recorded steps have.
  slots_ = lanes_ == 1 ? 1 : (lanes_ + groups_) / groups_ * groups_;
  feeds_.assign(parts.size(), false);
  edges_to_.resize(parts.size()), edges_from_.resize(parts.size()), before_.resize(parts.size());
  for (size_t s = 0; s < parts.size(); ++s) {
    const plan::Segment& segment = parts[s].segment;
    feeds_[s] = !segment.plan.states.empty() || !parts[s].feeding_outputs.empty();
    if (parts.size() == 1) break;
    for (size_t o = 0; o < segment.outputs.size(); ++o) {
      const int v = segment.outputs[o];
      maker[v] = s;
      feeds_later[v] = std::count(parts[s].feeding_outputs.begin(), parts[s].feeding_outputs.end(),
                                  segment.plan.outputs[o].value) > 0;
      if (v == logits_) last_ = s;
    }
    for (int v : segment.inputs) {
      const auto from = maker.find(v);
      if (from != maker.end()) connect(from->second, s, v, feeds_later[v]);  // else an input of the decoder
    }
  }
  for (size_t s = 0; s < parts.size(); ++s) {
    std::vector<size_t>& before = before_[s];
    for (size_t e : edges_to_[s]) before.push_back(edges_[e].from);
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
  }
  results_.resize(lanes_ > 1 ? slots_ + 1 : 0);  // one more: that of the last call
  if (lanes_ > 1) stages_[last_]->leave_logits();
  return {};
}

void Pipeline::connect(size_t from, size_t to, int value, bool feeds) {
  const auto source = stages_[from]->device(), target = stages_[to]->device();
  const auto device = source ? target : nullptr;
  size_t e = 0;
  for (; e < edges_from_[from].size(); ++e) {
    const Edge& known = edges_[edges_from_[from][e]];
    if (known.value == value && known.memory[0].device == device) break;
  }
  if (e == edges_from_[from].size()) {
    edges_from_[from].push_back(edges_.size());
    Edge& edge = edges_.emplace_back(Edge{from, {}, value, feeds, std::vector<Handover>(slots_)});
    for (Handover& h : edge.memory) h.device = device;
  }
  edges_[edges_from_[from][e]].to.push_back(to);
  edges_to_[to].push_back(edges_from_[from][e]);
}

Status Pipeline::load() {
  for (const auto& s : stages_) INVAR_CHECK_OK(s->start_load());
  Status first;  // every stage is waited for: it may have begun
  for (const auto& s : stages_)
    if (Status loaded = s->load(); first && !loaded) first = std::move(loaded);
  return first;
}

Status Pipeline::reserve(int64_t rows, int64_t tail_rows, int64_t capacity) {
  for (const auto& s : stages_) INVAR_CHECK_OK(s->reserve(rows, tail_rows, capacity));
  return {};
}

size_t Pipeline::bytes() const {
  size_t bytes = 0;
  for (const auto& s : stages_) bytes += s->bytes();
  for (const auto& a : arenas_) bytes += a->size();
  for (const Edge& e : edges_)
    for (const Handover& h : e.memory) bytes += h.memory.size();
  for (const Handover& h : results_) bytes += h.memory.size();
  return bytes;
}

// `logits`: what hands them out; null: nothing does.
Status Pipeline::run_stage(size_t stage, const StagePass& pass, size_t slot,
                           const std::function<void()>& overlapped, Handover* logits) {
  if (is_skipped(stage, pass)) return {};
  Stage& s = *stages_[stage];
  {
    const std::shared_lock<std::shared_mutex> prepares(preparing_);
    INVAR_CHECK_OK(s.begin(pass));
  }
  for (size_t i : edges_to_[stage])
    if (Edge& e = edges_[i]; pass.tail || e.feeds) {
      INVAR_CHECK_OK(s.hand_in(e.value, e.memory[slot]));
    }
  Status status;
  bool done = false;
  const auto hand_out = [&] {
    for (size_t i : edges_from_[stage])
      if (Edge& e = edges_[i]; status && (pass.tail || e.feeds)) status = s.hand_out(e.value, e.memory[slot]);
    if (status && logits) status = s.hand_out(logits_, *logits);
    done = true;
  };
  INVAR_CHECK_OK(s.run([&] {  // a GPU queues it behind the nodes, and waits for all
    hand_out();
    if (overlapped) overlapped();
  }));
  if (done) return status;
  hand_out();
  INVAR_CHECK_OK(status);
  return s.handed_out();
}

static std::span<const float> floats(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

Status Pipeline::run_in_order(std::span<const StagePass> passes, const std::function<void()>& overlapped,
                              const Take& take) {
  for (size_t p = 0; p < passes.size(); ++p) {
    for (size_t s = 0; s < stages_.size(); ++s)
      INVAR_CHECK_OK(run_stage(s, passes[p], 0, overlapped, nullptr));
    if (!passes[p].tail) {
      take(p, 0, {});
      continue;
    }
    size_t before = passes[p].unwanted / sizeof(float);
    const auto hand_on = [&](std::span<const std::byte> piece) {
      take(p, before, floats(piece));
      before += floats(piece).size();
    };
    INVAR_CHECK_OK(stages_[last_]->read_output(logits_, passes[p].unwanted, hand_on));
  }
  return {};
}

void Pipeline::start_lanes() {
  for (size_t lane = 0; lane < lanes_; ++lane) threads_.emplace_back([this, lane] { work(lane); });
}

// Finds the first pass that is ready in the stages of a lane, the last stage first: a pass nearer
// to its end frees memory sooner.
bool Pipeline::next_job(size_t lane, size_t& stage, size_t& pass) const {
  if (!status_) return false;
  for (size_t s : stages_of_[lane]) {
    const size_t p = done_[s];
    if (p >= first_ + std::min(jobs_.size(), slots_)) continue;
    if (std::ranges::any_of(before_[s], [&](size_t b) { return done_[b] <= p; })) continue;
    stage = s, pass = p;
    return true;
  }
  return false;
}

// Under the lock.
void Pipeline::notify() {
  ++changes_;
  changed_.notify_all();
}

void Pipeline::wait_for_job(std::unique_lock<std::mutex>& lock, size_t lane, size_t& stage, size_t& pass) {
  while (!ends_ && !next_job(lane, stage, pass)) wait_for_change(lock);
}

// On GPUs passes and steps follow each other in less time than it takes to wake up.
void Pipeline::wait_for_change(std::unique_lock<std::mutex>& lock) {
  const uint64_t before = changes_;
  if (on_gpus_) {
    lock.unlock();
    stay_awake([&] { return changes_ != before; });
    lock.lock();
  }
  changed_.wait(lock, [&] { return changes_ != before; });
}

void Pipeline::work(size_t lane) {
  const num::ArithmeticEnv env;
  std::unique_lock lock(mutex_);
  for (;;) {
    size_t stage = 0, pass = 0;
    wait_for_job(lock, lane, stage, pass);
    if (ends_) return;
    busy_[lane] = true;
    const StagePass& p = jobs_[pass - first_].pass;  // stays where it is while others come and go
    lock.unlock();
    Handover* const logits = stage == last_ && p.tail ? &result(pass) : nullptr;
    if (logits) logits->elsewhere = p.logits;
    Status status = num::arithmetic_env_ok()
                        ? run_stage(stage, p, pass % slots_, {}, logits)
                        : Status(Error{Code::internal, "the arithmetic of a lane changed"});
    lock.lock();
    busy_[lane] = false;
    if (!status && status_) status_ = std::move(status);
    for (size_t s = 0; !status_ && s < stages_.size(); ++s) stages_[s]->give_up();
    ++done_[stage], --jobs_[pass - first_].left;
    notify();
  }
}

void Pipeline::add(std::span<const StagePass> passes) {
  if (jobs_.empty())
    for (const auto& s : stages_) s->restart();
  const std::lock_guard lock(mutex_);
  for (const StagePass& p : passes) jobs_.push_back({p, stages_.size()});
  notify();
}

Status Pipeline::wait_for_first(std::unique_lock<std::mutex>& lock) {
  while (status_ && jobs_.front().left > 0) wait_for_change(lock);
  return status_ ? Status() : end(lock);
}

void Pipeline::drop_first() {
  jobs_.pop_front(), ++first_;
  notify();
}

// No stage is in a pass any more, and nothing is in flight.
Status Pipeline::end(std::unique_lock<std::mutex>& lock) {
  while (is_busy()) wait_for_change(lock);
  first_ += jobs_.size();
  jobs_.clear(), std::ranges::fill(done_, first_);
  return std::exchange(status_, Status());
}

void Pipeline::start(const StagePass& pass) {
  add({&pass, 1});
}

Status Pipeline::take() {
  std::unique_lock lock(mutex_);
  INVAR_CHECK_OK(wait_for_first(lock));
  drop_first();
  return {};
}

void Pipeline::rest() {
  std::unique_lock lock(mutex_);
  const auto is_through = [](const Job& j) { return j.left == 0; };
  while (is_busy() || (status_ && !std::ranges::all_of(jobs_, is_through))) wait_for_change(lock);
}

void Pipeline::abandon() {
  rest();
  std::unique_lock lock(mutex_);
  (void)static_cast<bool>(end(lock));
}

Status Pipeline::run_overlapped(std::span<const StagePass> passes, const std::function<void()>& overlapped,
                                const Take& take) {
  const size_t first = first_;
  add(passes);
  if (overlapped)
    overlapped();  // the logits that it reads lie in the place before, or where `take` puts them
  std::unique_lock lock(mutex_);
  for (size_t p = 0; p < passes.size(); ++p) {
    INVAR_CHECK_OK(wait_for_first(lock));
    const Handover& h = result(first + p);
    lock.unlock();
    take(p, 0, passes[p].tail ? floats({h.data(), h.bytes}) : std::span<const float>());
    lock.lock();
    drop_first();
  }
  return end(lock);
}

Status Pipeline::run(std::span<const StagePass> passes, const std::function<void()>& overlapped,
                     const Take& take) {
  return lanes_ == 1 ? run_in_order(passes, overlapped, take) : run_overlapped(passes, overlapped, take);
}

}  // namespace invar::run
