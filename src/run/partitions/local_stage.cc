// A stage in this process, see local_stage.h.
#include "run/partitions/local_stage.h"

#include <algorithm>
#include <cstring>

#include "num/env.h"
#include "run/prompt_tail.h"
#include "run/thread_setup.h"

namespace invar::run {

constexpr int kPrefetchThreads = 4;

LocalStage::LocalStage(plan::Stage stage, const DecoderPorts& ports, std::shared_ptr<Device> device,
                       const StageContext& context)
    : stage_(std::move(stage)), context_(context), device_(std::move(device)) {
  lane_ = device_ ? "cuda:" + std::to_string(device_->info().index) : "cpu";
  const plan::Segment& s = stage_.segment;
  for (size_t v = 0; v < s.values.size(); ++v) own_[s.values[v]] = static_cast<int>(v);
  ids_ = own(ports.ids), positions_ = own(ports.positions), logits_ = own(ports.logits);
  lengths_ = own(ports.lengths);
  hidden_in_ = own(ports.hidden), hidden_out_ = own(context_.options.hidden);
}

LocalStage::~LocalStage() {
  if (prefetched_.valid()) prefetched_.wait();
}

int LocalStage::own(int v) const {
  const auto at = own_.find(v);
  return at == own_.end() ? -1 : at->second;
}

Result<std::shared_ptr<const Executable>> prepare_stage(const plan::Stage& stage, const Target& target,
                                                        const PassObserver& observer) {
  const plan::Segment& segment = stage.segment;
  const std::span<const int> values = stage.value_numbers.empty() ? segment.values : stage.value_numbers;
  return run::prepare(segment.plan, target,
                      {segment.node_numbers, values, stage.feeding_outputs, stage.joins}, observer);
}

Result<std::unique_ptr<LocalStage>> LocalStage::prepare(plan::Stage stage, const DecoderPorts& ports,
                                                        std::shared_ptr<Device> device,
                                                        const StageContext& context) {
  std::unique_ptr<LocalStage> s(new LocalStage(std::move(stage), ports, std::move(device), context));
  const Options& o = context.options;
  const Target target{o.isa, s->device_, static_cast<bool>(o.observe)};
  INVAR_TRY(s->executable_, prepare_stage(s->stage_, target, run::explain(o.explain)));
  s->has_memory_ = s->executable_->has_memory;
  if (s->plan().states.empty() && s->stage_.layers > 0)  // then it has memory unless a node lacks its state
    s->has_memory_ = std::none_of(s->executable_->nodes.begin(), s->executable_->nodes.end(),
                                  [](const PreparedNode& n) { return n.contract->stateful; });
  return s;
}

Result<uint64_t> LocalStage::weight_bytes() const {
  return Weights::needed(plan(), context_.folder, executable_->weight_uses(), device_ != nullptr);
}

void LocalStage::stream(LocalStage* next, std::shared_ptr<Streaming> streaming) {
  streamed_ = true, streaming_ = std::move(streaming);
  next_ = device_ && next != this ? next : nullptr;  // on the host the stage that runs needs all threads
}

Result<Weights> LocalStage::loaded(bool check, Pool& pool, const ByteProgress& progress,
                                   Weights::OnAllocated allocated) const {
  const Options& o = context_.options;
  return Weights::load(plan(), context_.folder, executable_->weight_uses(), pool,
                       {check, o.hashed, progress, o.computed, std::move(allocated)}, device_, queues_.get());
}

void LocalStage::make_executor() {
  const Options& o = context_.options;
  executor_ = Executor::make(executable_, *context_.pool, device_);
  if (arena_) executor_->share_arena(arena_);
  if (joins_) executor_->join_with(joins_, stage_.rank);
  executor_->share_threads(turn_);
  std::vector<int> inputs, outputs;  // the others are handed over where they lie
  for (int v : {ids_, positions_, lengths_, hidden_in_})
    if (v >= 0) inputs.push_back(v);
  for (int v : {leaves_logits_ ? -1 : logits_, hidden_out_})
    if (v >= 0) outputs.push_back(v);
  executor_->select_inputs(std::move(inputs)), executor_->select_outputs(std::move(outputs));
  executor_->download_whole(kTailRows);
  executor_->observe(o.observe);
  executor_->go_back_often(o.goes_back);
  executor_->keep_pages_whole(!shares_pages_ || streamed_);  // pages leave the room of weights to come
}

// While weights are on their way to a GPU: its memory for steps, and the code of their kernels.
void LocalStage::preload(const Weights& weights) {
  const num::ArithmeticEnv env;
  const Options& o = context_.options;
  const int64_t tail_rows = context_.tail_rows;
  if (!executor_->attach(weights) || !executor_->reserve(context_.rows, tail_rows, o.capacity, o.sequences))
    return;
  struct Step {
    int64_t rows, sequences;
    bool tail;
  };
  std::vector<ops::Sequence> all;
  for (int64_t i = 0; i < o.sequences; ++i) all.push_back({i, 0});
  std::vector<Step> steps = {{std::min(context_.rows, o.capacity), 1, false}, {1, 1, true}};
  if (tail_rows > kTailRows) steps = {{tail_rows, 1, true}};  // all steps of a verification
  if (o.sequences > 1) steps.push_back({1, o.sequences, true});
  for (const auto& [rows, sequences, tail] : steps)
    executor_->preload(rows, {all.data(), static_cast<size_t>(sequences)}, tail);
}

Status LocalStage::load() {
  const Options& o = context_.options;
  INVAR_CHECK_OK(validate(*executable_, o.sequences));
  make_executor();
  if (checks_ && o.check_weights) {
    INVAR_TRY(checked_, Weights::load(*checks_, context_.folder, {}, *context_.pool,
                                      {true, o.hashed, o.load_progress}));
  }
  const bool checked = o.check_weights && checks_own_;
  if (streamed_) {
    INVAR_TRY(weights_, Weights::load(plan(), context_.folder, {}, *context_.pool,
                                      {checked, o.hashed, o.load_progress}));
    return {};
  }
  const bool preloads = device_ && !arena_ && context_.rows > 0;  // the only stage
  Result<Weights> weights =
      loaded(checked, *context_.pool, o.load_progress,
             preloads ? [this](const Weights& w) { preload(w); } : Weights::OnAllocated());
  if (!weights && preloads && weights.error().code == Code::bad_input) {
    make_executor();  // there may be too little memory for steps beside weights on their way
    weights = loaded(checked, *context_.pool, o.load_progress);
  }
  INVAR_TRY(weights_, std::move(weights));
  queues_.reset();
  return executor_->attach(weights_);
}

Status LocalStage::reserve(int64_t rows, int64_t tail_rows, int64_t capacity) {
  const int64_t sequences = context_.options.sequences;
  if (!streamed_) return executor_->reserve(rows, tail_rows, capacity, sequences);
  INVAR_TRY(const Weights weights, loaded(false, *context_.pool));  // kernels size their memory by them
  streamed_bytes_ = weights.bytes();
  INVAR_CHECK_OK(executor_->attach(weights));
  return executor_->reserve(rows, tail_rows, capacity, sequences);
}

// By threads of the lane's own: those of the session may compute on another lane.
void LocalStage::start_loading() {
  if (prefetched_.valid()) return;
  prefetched_ = std::async(std::launch::async, [this]() -> Result<Weights> {
    const num::ArithmeticEnv env;
    const std::lock_guard lock(streaming_->loading);
    if (!streaming_->pool) {
      INVAR_TRY(streaming_->pool, start_pool(std::min(kPrefetchThreads, context_.pool->threads())));
    }
    return loaded(false, *streaming_->pool);
  });
}

// Weights of two stages are in memory at most: of this one, and of one that runs later. With
// several passes on their way that may be another one than the next.
Result<Weights> LocalStage::take_weights() {
  if (!device_) return loaded(false, *context_.pool);
  start_loading();
  Result<Weights> weights = prefetched_.get();
  if (streaming_->ahead == this) streaming_->ahead = nullptr;
  if (next_ && !streaming_->ahead) {
    streaming_->ahead = next_;
    next_->start_loading();
  }
  return weights;
}

Status LocalStage::begin(const StagePass& pass) {
  tail_ = pass.tail;
  const int64_t rows = pass.rows();
  if (context_.sources) {
    INVAR_CHECK_OK(context_.sources->prepare(pass.sequences));
    INVAR_CHECK_OK(executor_->set_source(context_.sources->longest()));
  }
  INVAR_CHECK_OK(executor_->bind(rows, pass.sequences));
  if (ids_ >= 0) std::copy(pass.tokens.begin(), pass.tokens.end(), executor_->port(ids_).as<int64_t>());
  if (context_.sources) {
    INVAR_CHECK_OK(feed_sources());
    if (lengths_ >= 0)
      std::ranges::transform(pass.sequences, executor_->port(lengths_).as<int64_t>(),
                             [&](const ops::Sequence& s) { return context_.sources->length(s.slot); });
  }
  if (hidden_in_ >= 0) {
    const ops::View rows_in = executor_->port(hidden_in_);
    if (pass.hidden.size_bytes() != bytes_of(rows_in))
      return Error{Code::internal, "a step without its hidden states"};
    std::copy(pass.hidden.begin(), pass.hidden.end(), rows_in.as<float>());
  }
  if (positions_ < 0) return {};
  int64_t* at = executor_->port(positions_).as<int64_t>();
  for (const ops::Sequence& s : pass.sequences)
    for (int64_t i = 0; i < rows; ++i) *at++ = s.past + i;
  return {};
}

Status LocalStage::feed_sources() {
  const std::vector<EncodedSources::Input>& inputs = context_.sources->inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::span<std::byte> bytes = context_.sources->of_step(i);
    INVAR_CHECK_OK(device_ ? executor_->feed_in_place(own(inputs[i].value), bytes.data())
                           : executor_->feed(own(inputs[i].value), bytes));
  }
  return {};
}

Status LocalStage::hand_in(int v, const Handover& h) {
  if (h.device) return executor_->feed_in_place(own(v), h.memory.data());
  return executor_->feed(own(v), {h.memory.data(), h.bytes});
}

Status LocalStage::execute(const std::function<void()>& overlapped) {
  INVAR_CHECK_OK(executor_->run(tail_, overlapped));
  if (hidden_out_ >= 0) {
    hidden_rows_.clear();
    INVAR_CHECK_OK(executor_->read_output(hidden_out_, 0, [this](std::span<const std::byte> piece) {
      const auto* const from = reinterpret_cast<const float*>(piece.data());
      hidden_rows_.insert(hidden_rows_.end(), from, from + piece.size() / sizeof(float));
    }));
  }
  return executor_->keep_snapshot();
}

Status LocalStage::run(const std::function<void()>& overlapped) {
  if (!streamed_) return execute(overlapped);
  INVAR_TRY(const Weights weights, take_weights());
  INVAR_CHECK_OK(executor_->attach(weights));
  return execute(overlapped);
}

// To another GPU by a copy between the two, to the host or from there through the host's memory.
Status LocalStage::hand_out(int v, Handover& h) {
  const ops::View& view = executor_->device_view(own(v));
  h.bytes = bytes_of(view);
  if (!h.elsewhere && h.memory.size() < h.bytes) {
    const char* const purpose = "activations between stages";
    INVAR_TRY(h.memory, device_ && !h.device ? Allocation::make_pinned(h.bytes, purpose, device_)
                                             : Allocation::make(h.bytes, purpose, h.device));
  }
  if (h.bytes == 0) return {};
  if (!device_) {
    std::memcpy(h.data(), view.data, h.bytes);
    return {};
  }
  return h.device ? device_->copy(h.data(), view.data, h.bytes)
                  : device_->download(h.data(), view.data, h.bytes);
}

size_t LocalStage::bytes() const {
  return executor_->bytes() + (streamed_ ? streamed_bytes_ : weights_.bytes());
}

}  // namespace invar::run
