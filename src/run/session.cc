// Sessions of a decoder, see session.h: binds steps of one or many sequences, splits prompts into
// chunks.
#include <algorithm>
#include <cstring>
#include <utility>

#include "num/env.h"
#include "run/execute/executor.h"
#include "run/prepare/prepare.h"
#include "run/segments/prefix_executor.h"
#include "run/session.h"
#include "run/thread_setup.h"

namespace invar::run {
namespace {

constexpr int64_t kDefaultChunk = 256, kDeviceChunk = 2048;
// Up to this many rows a step computes the logits of all and returns the last. This is cheaper than
// a second pass over the weights for the last row alone.
constexpr int64_t kTailRows = 8;
constexpr int64_t kMaxCapacity = int64_t{1} << 31;
constexpr int64_t kMaxSequences = 1 << 16;

}  // namespace

struct Session::Impl {
  plan::Plan plan;
  ExecutionContext context;
  // Runs the plan step by step, or null: `prefix` runs it over the whole sequence.
  std::shared_ptr<const Executable> executable;
  std::unique_ptr<Executor> executor;
  std::unique_ptr<PrefixExecutor> prefix;
  Weights weights;  // of `executor`
  std::string isa, device_name = "cpu";
  int64_t vocab = 0, chunk = 0, tail_rows = 0;
  std::vector<DecoderInput> inputs;
  int ids = -1, positions = -1, logits = -1;  // values of the plan
  bool recompute = false;                     // only the tokens are remembered
  std::vector<int64_t> position;              // per sequence
  std::vector<int32_t> history;               // the tokens, with `recompute`
  std::vector<float> all_logits;              // what step() returned with `all`
  std::vector<ops::Sequence> batch;           // of step_many()
  std::function<void()> overlapped;           // runs during the next step

  const Options& options() const { return context.options; }
  bool has_memory() const { return executable && executable->has_memory; }
  Status open();
  Status check_options() const;
  Status open_executor();
  Status bind_ports();
  Status check_append(int64_t sequence, std::span<const int32_t> tokens) const;
  void parallel_for(int count, const std::function<void(int)>& f);
  void finish_overlapped();
  Status run(bool tail) {
    return executor->run(tail, [this] { finish_overlapped(); });
  }
  Status run_chunk(std::span<const int32_t> tokens, int64_t sequence, int64_t past, bool tail);
  Result<std::span<const float>> step(std::span<const int32_t> tokens, bool all, int64_t sequence);
  Result<std::span<const float>> run_prefixes(size_t count, bool all);
  Result<std::span<const float>> step_many(std::span<const NextToken> next);
  std::vector<std::string> names(std::vector<std::string> (*names_of)(const Executable&)) const;
};

Status Session::Impl::check_options() const {
  const Options& o = options();
  if (o.capacity < 1 || o.capacity > kMaxCapacity)
    return bad_input("capacity must be 1 to " + std::to_string(kMaxCapacity) + " positions, not " +
                     std::to_string(o.capacity));
  if (o.chunk < 0) return bad_input("chunk must not be negative");
  if (o.sequences < 1 || o.sequences > kMaxSequences)
    return bad_input("sequences must be 1 to " + std::to_string(kMaxSequences) + ", not " +
                     std::to_string(o.sequences));
  return {};
}

Status Session::Impl::open() {
  INVAR_CHECK_OK(check_options());
  const Options& o = options();
  if (o.observe && (o.device != "cpu" || !plan.bodies.empty() || !plan.bindings.empty()))
    return not_covered(std::string("the results of single operations are observed ") +
                       (o.device != "cpu" ? "on the CPU alone: leave --device out"
                                          : "in a program without control flow and computed sizes alone"));
  position.assign(static_cast<size_t>(o.sequences), 0);
  INVAR_TRY(context.pool, start_pool(o.threads));
  const num::ArithmeticEnv env;
  INVAR_TRY(context.device, Device::named(o.device));
  const Device* const device = context.device.get();
  INVAR_TRY(inputs, decoder_inputs(plan));
  if (takes_whole_sequence(inputs) && !plan.states.empty())
    return not_covered(
        "the plan remembers tokens, and takes a mask or past keys and values beside: compile with "
        "--stateless");
  if (plan.bodies.empty() && plan.bindings.empty() && !takes_whole_sequence(inputs)) {
    INVAR_TRY(executable,
              prepare(plan, {o.isa, context.device, static_cast<bool>(o.observe)}, {}, explain(o.explain)));
  }
  isa = device ? ops::kCuda : o.isa.empty() ? ops::isas().front() : o.isa;
  if (device) device_name = "cuda:" + std::to_string(device->info().index) + " " + device->info().name;
  recompute = !o.use_cache || !has_memory();
  if (recompute && o.sequences > 1)
    return not_covered(
        "several sequences need " +
        std::string(o.use_cache ? "a plan with memory between steps" : "their memory between steps") +
        ": run one sequence at a time");
  chunk = std::min(o.chunk ? o.chunk : device ? kDeviceChunk : kDefaultChunk, o.capacity);
  if (!has_memory()) chunk = o.capacity;  // all rows in one chunk
  tail_rows = has_memory() ? std::min(kTailRows, chunk) : chunk;
  INVAR_CHECK_OK(bind_ports());
  if (recompute) history.reserve(o.capacity);
  if (executable) return open_executor();
  INVAR_TRY(prefix, PrefixExecutor::open(plan, inputs, logits, context));
  return {};
}

Status Session::Impl::open_executor() {
  const Options& o = options();
  INVAR_CHECK_OK(validate(*executable, o.sequences));
  INVAR_TRY(weights, Weights::load(plan, context.folder, executable->weight_uses(), *context.pool,
                                   {o.check_weights, o.hashed, o.load_progress}, context.device));
  executor = Executor::make(executable, *context.pool, context.device);
  executor->attach(weights);
  executor->observe(o.observe);
  return executor->reserve(chunk, tail_rows, o.capacity, o.sequences);
}

// plan.9: finds the inputs and outputs that a session knows, and checks their shapes.
Status Session::Impl::bind_ports() {
  // Whether a row of a step has `row` elements of the value, for every number of rows.
  auto per_row = [&](int v, int64_t row) {
    const plan::Value& value = plan.values[v];
    int64_t constant = 1;
    int seq = 0;
    for (const plan::DimRef& d : value.shape) {
      if (d.symbol < 0) {
        if (d.value < 0 || __builtin_mul_overflow(constant, d.value, &constant)) return false;
      } else if (plan.symbols[d.symbol] == DimExpr::symbol("seq")) {
        ++seq;
      } else if (plan.symbols[d.symbol] != DimExpr::symbol("batch")) {
        return false;
      }
    }
    return seq == 1 && constant == row;
  };
  for (const DecoderInput& i : inputs) {
    if (i.kind == DecoderInput::Kind::ids) ids = i.value;
    if (i.kind == DecoderInput::Kind::positions) positions = i.value;
  }
  const bool whole = takes_whole_sequence(inputs);
  for (const plan::Port& i : plan.inputs) {
    if (whole) break;
    if (plan.values[i.value].dtype != DType::i64 || !per_row(i.value, 1))
      return bad_input("the plan's input '" + i.name + "' is not i64 [batch, seq]");
    if (options().sequences > 1 && executable->batch_of(i.value) != Executable::Batch::leading)
      return not_covered("the plan's input '" + i.name +
                         "' does not have sequences on its leading axis: run one sequence at a time");
  }
  for (const plan::Port& o : plan.outputs)
    if (o.name == "logits") logits = o.value;
  if (logits < 0) return bad_input("the plan has no output 'logits'");
  const plan::Value& out = plan.values[logits];
  if (!out.shape.empty() && out.shape.back().symbol < 0) vocab = out.shape.back().value;
  if (out.dtype != DType::f32 || vocab < 1 || vocab > INT32_MAX || (!whole && !per_row(logits, vocab)))
    return bad_input("the plan's output 'logits' is not f32 [batch, seq, vocabulary]");
  return {};
}

// One pass through the program.
Status Session::Impl::run_chunk(std::span<const int32_t> tokens, int64_t sequence, int64_t past, bool tail) {
  const ops::Sequence one{sequence, past};
  INVAR_CHECK_OK(executor->bind(static_cast<int64_t>(tokens.size()), {&one, 1}));
  std::copy(tokens.begin(), tokens.end(), executor->port(ids).as<int64_t>());
  if (positions >= 0)
    for (size_t i = 0; i < tokens.size(); ++i)
      executor->port(positions).as<int64_t>()[i] = past + static_cast<int64_t>(i);
  return run(tail);
}

void Session::Impl::parallel_for(int count, const std::function<void(int)>& f) {
  context.pool->run(count, [&f](int, int64_t begin, int64_t end) {
    for (; begin < end; ++begin) f(static_cast<int>(begin));
  });
}

void Session::Impl::finish_overlapped() {
  if (const auto f = std::exchange(overlapped, nullptr)) f();
}

Status Session::Impl::check_append(int64_t sequence, std::span<const int32_t> tokens) const {
  const int64_t count = static_cast<int64_t>(tokens.size());
  if (count == 0) return bad_input("a step needs at least one token");
  if (sequence < 0 || sequence >= options().sequences)
    return bad_input("there is no sequence " + std::to_string(sequence) + "; the session has " +
                     std::to_string(options().sequences));
  const std::string of = options().sequences > 1 ? " of sequence " + std::to_string(sequence) : "";
  const int64_t past = position[sequence];
  if (count > options().capacity - past)
    return bad_input("the memory" + of + " has " + std::to_string(options().capacity) + " positions, " +
                     std::to_string(past) + " in use; " + std::to_string(count) + " more do not fit");
  for (int64_t i = 0; i < count; ++i)
    if (tokens[i] < 0 || tokens[i] >= vocab)
      return bad_input("token " + std::to_string(tokens[i]) + " at position " + std::to_string(past + i) +
                       of + " is outside the vocabulary of " + std::to_string(vocab));
  return {};
}

Result<std::span<const float>> Session::Impl::step_many(std::span<const NextToken> next) {
  if (next.empty()) return bad_input("a step needs at least one token");
  batch.clear();
  std::vector<bool> used(position.size());
  for (const NextToken& n : next) {
    INVAR_CHECK_OK(check_append(n.sequence, {&n.token, 1}));
    if (used[n.sequence])
      return bad_input("sequence " + std::to_string(n.sequence) + " stands in one step twice");
    used[n.sequence] = true;
    batch.push_back({n.sequence, position[n.sequence]});
  }
  if (next.size() == 1) return step({&next[0].token, 1}, false, next[0].sequence);
  const num::ArithmeticEnv env;
  if (!num::arithmetic_env_ok()) return wrong_arithmetic();
  INVAR_CHECK_OK(executor->bind(1, batch));
  for (size_t i = 0; i < next.size(); ++i) {
    executor->port(ids).as<int64_t>()[i] = next[i].token;
    if (positions >= 0) executor->port(positions).as<int64_t>()[i] = batch[i].past;
  }
  INVAR_CHECK_OK(run(true));
  for (const NextToken& n : next) ++position[n.sequence];
  return std::span<const float>(executor->port(logits).as<float>(), next.size() * static_cast<size_t>(vocab));
}

Result<std::span<const float>> Session::Impl::step(std::span<const int32_t> tokens, bool all,
                                                   int64_t sequence) {
  const int64_t count = static_cast<int64_t>(tokens.size());
  INVAR_CHECK_OK(check_append(sequence, tokens));
  const num::ArithmeticEnv env;
  if (!num::arithmetic_env_ok()) return wrong_arithmetic();
  if (all && count > tail_rows && tail_rows < chunk) {
    INVAR_CHECK_OK(executor->reserve(chunk, chunk, options().capacity, options().sequences));
    tail_rows = chunk;
  }

  int64_t past = position[sequence];
  std::span<const int32_t> rest = tokens;
  if (recompute) {
    history.resize(past);  // a step that failed may have left tokens
    history.insert(history.end(), tokens.begin(), tokens.end());
    rest = history;
    past = 0;
  }
  if (prefix) {
    finish_overlapped();  // it may read logits that are computed over now
    INVAR_TRY(const std::span<const float> found, run_prefixes(tokens.size(), all));
    position[sequence] += count;
    return found;
  }
  // Rows whose logits nobody wants run without tail. Without memory all rows must run as one step.
  const int64_t size = static_cast<int64_t>(rest.size());
  int64_t wanted = all ? count : 1;
  if (!has_memory() || (!all && size <= kTailRows)) wanted = size;
  const size_t row = static_cast<size_t>(vocab);
  if (all) all_logits.resize(static_cast<size_t>(count) * row);
  std::span<const float> last;
  for (int64_t begin = 0; begin < size;) {
    const bool tail = begin >= size - wanted;
    const int64_t end =
        std::min(begin + (tail ? std::min(chunk, tail_rows) : chunk), tail ? size : size - wanted);
    INVAR_CHECK_OK(run_chunk(rest.subspan(begin, end - begin), sequence, past + begin, tail));
    if (tail) {
      const float* out = executor->port(logits).as<float>();
      last = {out + (end - begin - 1) * vocab, row};
      // Of the rows [begin, end) those that belong to `tokens`.
      const int64_t first = std::max(begin, size - count);
      if (all)
        std::memcpy(all_logits.data() + (first - (size - count)) * vocab, out + (first - begin) * vocab,
                    (end - first) * row * sizeof(float));
    }
    begin = end;
    if (options().progress && size > chunk) options().progress(begin, size);
  }
  position[sequence] += count;
  if (all) return std::span<const float>(all_logits);
  return last;
}

// The logits of the last token of the history, or of its last `count` with `all`.
Result<std::span<const float>> Session::Impl::run_prefixes(size_t count, bool all) {
  const std::span<const int32_t> tokens = history;
  if (!all) return prefix->run(tokens);
  all_logits.clear();
  for (size_t n = tokens.size() - count + 1; n <= tokens.size(); ++n) {
    INVAR_TRY(const std::span<const float> last, prefix->run(tokens.first(n)));
    all_logits.insert(all_logits.end(), last.begin(), last.end());
  }
  return std::span<const float>(all_logits);
}

std::vector<std::string> Session::Impl::names(std::vector<std::string> (*names_of)(const Executable&)) const {
  if (executable) return names_of(*executable);
  std::vector<std::string> all;
  prefix->block().add_names(names_of, all);
  return all;
}

Result<Session> Session::open(plan::Plan plan, const std::string& folder, Options options) {
  auto impl = std::make_unique<Impl>();
  impl->plan = std::move(plan);
  impl->context.options = std::move(options);
  impl->context.folder = folder.empty() ? "." : folder;
  INVAR_CHECK_OK(impl->open());
  return Session(std::move(impl));
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

int64_t Session::vocab() const {
  return impl_->vocab;
}
int64_t Session::sequences() const {
  return impl_->options().sequences;
}
int64_t Session::position(int64_t sequence) const {
  return impl_->position.at(static_cast<size_t>(sequence));
}
int Session::threads() const {
  return impl_->context.pool->threads();
}
std::string_view Session::device() const {
  return impl_->device_name;
}
const Device::Info* Session::gpu() const {
  return impl_->context.device ? &impl_->context.device->info() : nullptr;
}
std::string_view Session::isa() const {
  return impl_->isa;
}
size_t Session::peak_bytes() const {
  return (impl_->executor ? impl_->executor->bytes() + impl_->weights.bytes() : impl_->prefix->bytes()) +
         impl_->all_logits.capacity() * sizeof(float);
}
std::vector<std::string> Session::kernels() const {
  return impl_->names([](const Executable& e) { return e.kernels(); });
}
std::vector<std::string> Session::libraries() const {
  return impl_->names([](const Executable& e) { return e.libraries(); });
}
int64_t Session::chunk() const {
  return impl_->chunk;
}
// What lies behind a position in a memory is never read before it is written again.
void Session::reset(int64_t sequence, int64_t keep) {
  int64_t& position = impl_->position.at(static_cast<size_t>(sequence));
  position = std::clamp<int64_t>(keep, 0, position);
  if (impl_->recompute) impl_->history.resize(static_cast<size_t>(position));
}
Result<std::span<const float>> Session::step(std::span<const int32_t> tokens, bool all, int64_t sequence) {
  auto logits = impl_->step(tokens, all, sequence);
  impl_->finish_overlapped();
  return logits;
}
Result<std::span<const float>> Session::step_many(std::span<const NextToken> next) {
  auto logits = impl_->step_many(next);
  impl_->finish_overlapped();
  return logits;
}
void Session::parallel_for(int count, const std::function<void(int)>& f) {
  impl_->parallel_for(count, f);
}
void Session::parallel_for_overlapped(int count, std::function<void(int)> f) {
  if (!impl_->context.device) return impl_->parallel_for(count, f);
  impl_->finish_overlapped();
  impl_->overlapped = [impl = impl_.get(), count, f = std::move(f)] { impl->parallel_for(count, f); };
}
void Session::finish_overlapped() {
  impl_->finish_overlapped();
}
Status Session::weights_unchanged() {
  return impl_->prefix ? impl_->prefix->block().weights_unchanged() : impl_->weights.unchanged(impl_->plan);
}

}  // namespace invar::run
