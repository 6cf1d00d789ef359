// The pipeline of stages, see pipeline.h.
#include "run/partitions/pipeline.h"

#include <algorithm>
#include <map>
#include <utility>

#include "num/env.h"
#include "run/execute/joins/stay_awake.h"

namespace invar::run {

// done[s]: how many passes stage s is through with. A stage takes the passes in their order, and a
// pass goes through a stage behind those that it reads from.
struct Pipeline::Jobs {
  std::span<const StagePass> passes;
  std::vector<size_t> done;
  std::vector<bool> busy;    // per lane
  std::vector<size_t> left;  // per pass: the stages that it has to go through
  size_t taken = 0;          // passes whose logits the caller has taken
  Status status;
  bool failed() const { return !status; }
};

Pipeline::Pipeline(std::vector<std::unique_ptr<Stage>> stages) : stages_(std::move(stages)) {
  std::map<std::string, size_t> lanes;
  for (const auto& s : stages_) lane_of_.push_back(lanes.emplace(s->lane(), lanes.size()).first->second);
  lanes_ = std::max<size_t>(lanes.size(), 1);
  stages_of_.resize(lanes_);
  for (size_t s = stages_.size(); s-- > 0;) stages_of_[lane_of_[s]].push_back(s);
  // One pass in each lane, and one on its way between two.
  slots_ = lanes_ == 1 ? 1 : lanes_ + 1;
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
  INVAR_CHECK_OK(s.begin(pass));
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
  if (!jobs_ || jobs_->failed()) return false;
  for (size_t s : stages_of_[lane]) {
    const size_t p = jobs_->done[s];
    if (p == jobs_->passes.size() || p >= jobs_->taken + slots_) continue;
    if (std::any_of(before_[s].begin(), before_[s].end(), [&](size_t b) { return jobs_->done[b] <= p; }))
      continue;
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
    Jobs& jobs = *jobs_;
    jobs.busy[lane] = true;
    lock.unlock();
    const StagePass& p = jobs.passes[pass];
    Handover* const logits = stage == last_ && p.tail ? &result(pass) : nullptr;
    if (logits) logits->elsewhere = p.logits;
    Status status = num::arithmetic_env_ok()
                        ? run_stage(stage, p, pass % slots_, {}, logits)
                        : Status(Error{Code::internal, "the arithmetic of a lane changed"});
    lock.lock();
    jobs.busy[lane] = false;
    if (!status && !jobs.failed()) jobs.status = std::move(status);
    for (size_t s = 0; jobs.failed() && s < stages_.size(); ++s) stages_[s]->give_up();
    ++jobs.done[stage], --jobs.left[pass];
    notify();
  }
}

Status Pipeline::run_overlapped(std::span<const StagePass> passes, const std::function<void()>& overlapped,
                                const Take& take) {
  Jobs jobs{passes,
            std::vector<size_t>(stages_.size()),
            std::vector<bool>(lanes_),
            std::vector<size_t>(passes.size(), stages_.size()),
            0,
            {}};
  std::unique_lock lock(mutex_);
  jobs_ = &jobs;
  notify();
  if (overlapped) {  // the logits that it reads lie in the place before, or where `take` puts them
    lock.unlock();
    overlapped();
    lock.lock();
  }
  for (; jobs.taken < passes.size() && !jobs.failed(); ++jobs.taken, notify()) {
    while (!jobs.failed() && jobs.left[jobs.taken] > 0) wait_for_change(lock);
    if (jobs.failed()) break;
    const Handover& h = result(jobs.taken);
    const bool tail = passes[jobs.taken].tail;
    lock.unlock();
    take(jobs.taken, 0, tail ? floats({h.data(), h.bytes}) : std::span<const float>());
    lock.lock();
  }
  while (std::count(jobs.busy.begin(), jobs.busy.end(), true) > 0) wait_for_change(lock);
  jobs_ = nullptr;
  first_result_ = (first_result_ + passes.size()) % results_.size();
  return jobs.status;
}

Status Pipeline::run(std::span<const StagePass> passes, const std::function<void()>& overlapped,
                     const Take& take) {
  if (lanes_ == 1) return run_in_order(passes, overlapped, take);
  for (const auto& s : stages_) s->restart();
  return run_overlapped(passes, overlapped, take);
}

}  // namespace invar::run
