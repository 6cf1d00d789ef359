// Sessions of a decoder, see session.h: binds steps of one or many sequences, splits prompts into
// chunks.
#include <algorithm>
#include <cstring>
#include <utility>

#include "num/env.h"
#include "run/partitions/decoder_ports.h"
#include "run/partitions/placement.h"
#include "run/partitions/prompt_passes.h"
#include "run/segments/prefix_executor.h"
#include "run/session.h"
#include "run/thread_setup.h"

namespace invar::run {
namespace {

constexpr int64_t kDefaultChunk = 256, kDeviceChunk = 2048;
// The most memory for the logits of one pass.
constexpr int64_t kTailBytes = int64_t{512} << 20;
// At least so many sequences are worth a pass of their own through all weights.
constexpr size_t kPassSequences = 8;
constexpr int64_t kMaxCapacity = int64_t{1} << 31;
constexpr int64_t kMaxSequences = 1 << 16;

void add_new(const std::vector<std::string>& names, std::vector<std::string>& all) {
  for (const std::string& name : names)
    if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
}

}  // namespace

struct Session::Impl {
  plan::Plan plan;
  ExecutionContext context;
  StageContext stage_context;
  // Runs the plan step by step, or null: `prefix` runs it over the whole sequence.
  std::unique_ptr<Pipeline> pipeline;
  std::unique_ptr<PrefixExecutor> prefix;
  std::string isa, device_name = "cpu", placement;
  int64_t vocab = 0, chunk = 0, tail_rows = 0;
  int64_t pass_rows = 0;  // of a pass of several sequences
  std::vector<DecoderInput> inputs;
  DecoderPorts ports;
  bool recompute = false;            // only the tokens are remembered
  std::vector<int64_t> position;     // per sequence
  std::vector<int32_t> history;      // the tokens, with `recompute`
  std::vector<float> all_logits;     // what step() returned with `all`
  std::vector<ops::Sequence> batch;  // of step_many()
  std::vector<int32_t> batch_tokens;
  std::vector<ops::Sequence> pass_sequences;  // of step()
  std::vector<StagePass> passes;
  std::function<void()> overlapped;  // runs during the next step
  bool taking = false;               // in a `take`, while stages may use the pool

  const Options& options() const { return context.options; }
  bool has_memory() const;
  Status open();
  Status check_options() const;
  Status open_decoder();
  Status check_sequences() const;
  Status check_append(int64_t sequence, std::span<const int32_t> tokens) const;
  Status check_appends(std::span<const NewTokens> all) const;
  void parallel_for(int count, const std::function<void(int)>& f);
  void finish_overlapped();
  Status run(std::span<const StagePass> through, const Pipeline::Take& take) {
    return pipeline->run(
        through, [this] { finish_overlapped(); },
        [&](size_t pass, size_t before, std::span<const float> logits) {
          taking = pipeline->overlaps();
          take(pass, before, logits);
          taking = false;
        });
  }
  void size_passes();
  Status resize(int64_t capacity);
  int64_t most_rows() const;
  Status reserve();
  void reserve_tails(int64_t rows);
  int64_t most_tail_rows() const {
    return std::clamp(kTailBytes / (vocab * static_cast<int64_t>(sizeof(float))), tail_rows, chunk);
  }
  int64_t rows_with_tail(int64_t size, int64_t wanted) const;
  Status step_rows(std::span<const int32_t> tokens, int64_t wanted, int64_t sequence, const TakeRows& take);
  Result<std::span<const float>> step(std::span<const int32_t> tokens, bool all, int64_t sequence);
  Status run_prefixes(size_t wanted, const std::function<void(std::span<const float>)>& take);
  Status append_many(std::span<const NewTokens> all);
  Result<std::span<const float>> step_many(std::span<const NextToken> next);
  // of(executable or stage) -> names; each of them once.
  std::vector<std::string> names_of(const auto& of) const {
    std::vector<std::string> all;
    if (prefix) prefix->block().add_names(of, all);
    for (size_t s = 0; pipeline && s < pipeline->stages().size(); ++s)
      add_new(of(*pipeline->stages()[s]), all);
    return all;
  }
};

bool Session::Impl::has_memory() const {
  return pipeline && std::all_of(pipeline->stages().begin(), pipeline->stages().end(),
                                 [](const auto& stage) { return stage->has_memory(); });
}

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
  INVAR_TRY(inputs, decoder_inputs(plan));
  if (takes_whole_sequence(inputs) && !plan.states.empty())
    return not_covered(
        "the plan remembers tokens, and takes a mask or past keys and values beside: compile with "
        "--stateless");
  ports = find_ports(plan, inputs);
  INVAR_CHECK_OK(open_decoder());
  isa = context.device ? ops::kCuda : o.isa.empty() ? ops::isas().front() : o.isa;
  recompute = !o.use_cache || !has_memory();
  if (recompute && o.sequences > 1)
    return not_covered(
        "several sequences need " +
        std::string(o.use_cache ? "a plan with memory between steps" : "their memory between steps") +
        ": run one sequence at a time");
  size_passes();
  INVAR_TRY(vocab, check_ports(plan, ports, takes_whole_sequence(inputs)));
  INVAR_CHECK_OK(check_sequences());
  if (recompute) history.reserve(o.capacity);
  if (!pipeline) {
    INVAR_TRY(prefix, PrefixExecutor::open(plan, inputs, ports.logits, context));
    return {};
  }
  if (has_memory() && o.first_wanted > 0)
    tail_rows = std::max(tail_rows, std::min(rows_with_tail(o.first_rows, o.first_wanted), most_tail_rows()));
  stage_context.rows = pass_rows, stage_context.tail_rows = tail_rows;
  INVAR_CHECK_OK(pipeline->load());
  return reserve();
}

void Session::Impl::size_passes() {
  const Options& o = options();
  chunk = has_memory() ? std::min(most_rows(), o.capacity) : o.capacity;  // without: all rows in one
  tail_rows = has_memory() ? std::min(kTailRows, chunk) : chunk;
  pass_rows = has_memory() ? std::min(most_rows(), o.capacity * o.sequences) : chunk;
}

// Where there is too little memory, the capacity is the one before again.
Status Session::Impl::resize(int64_t capacity) {
  const int64_t before = std::exchange(context.options.capacity, capacity);
  const auto resized = [this]() -> Status {
    INVAR_CHECK_OK(check_options());
    std::ranges::fill(position, 0);
    history.clear();
    size_passes();
    return pipeline ? reserve() : Status();
  };
  const Status good = resized();
  if (good) return good;
  context.options.capacity = before;
  INVAR_CHECK_OK(resized());
  return good;
}

// Of a pass.
int64_t Session::Impl::most_rows() const {
  if (options().chunk) return options().chunk;
  const int64_t groups = pipeline ? static_cast<int64_t>(pipeline->groups()) : 1;
  return context.device ? std::max(kDeviceChunk / groups, kDefaultChunk) : kDefaultChunk;
}

// A pass of several sequences has as many rows as one of a long prompt, where there is the memory.
Status Session::Impl::reserve() {
  if (tail_rows > kTailRows && has_memory()) {
    if (pipeline->reserve(pass_rows, tail_rows, options().capacity)) return {};
    tail_rows = std::min(kTailRows, chunk);
  }
  const Status reserved = pipeline->reserve(pass_rows, tail_rows, options().capacity);
  if (reserved || pass_rows == chunk) return reserved;
  pass_rows = chunk;
  return pipeline->reserve(pass_rows, tail_rows, options().capacity);
}

// Memory for passes of up to so many rows with logits, where there is enough of it. Otherwise there
// are more passes.
void Session::Impl::reserve_tails(int64_t rows) {
  const int64_t most = most_tail_rows();
  if (rows <= tail_rows || tail_rows == most) return;
  rows = std::clamp(rows, std::min(2 * tail_rows, most), most);
  if (pipeline->reserve(pass_rows, rows, options().capacity)) tail_rows = rows;
}

// The stages of the decoder, or the device on which its prefixes run.
Status Session::Impl::open_decoder() {
  const Options& o = options();
  if (!plan.bodies.empty() || !plan.bindings.empty() || takes_whole_sequence(inputs)) {
    if (o.partitions > 1 || o.ranks > 1 || o.weights_memory || o.device.find(',') != o.device.npos)
      return not_covered(
          "a program with control flow, computed sizes, or a mask is computed anew over each prefix, in one "
          "partition: leave partitions, further devices and the weights' memory out");
    INVAR_TRY(context.device, Device::named(o.device));
    if (const Device* const d = context.device.get())
      device_name = "cuda:" + std::to_string(d->info().index) + " " + d->info().name;
    return {};
  }
  stage_context = {context.folder, context.pool.get(), o};
  INVAR_TRY(PlacedDecoder placed, place(plan, ports, stage_context));
  pipeline = std::move(placed.pipeline), context.device = std::move(placed.device);
  device_name = std::move(placed.devices), placement = std::move(placed.placement);
  return {};
}

Status Session::Impl::check_sequences() const {
  if (options().sequences == 1) return {};
  for (const plan::Port& i : plan.inputs)
    for (const auto& stage : pipeline->stages())
      if (!stage->has_leading_sequences(i.value))
        return not_covered("the plan's input '" + i.name +
                           "' does not have sequences on its leading axis: run one sequence at a time");
  return {};
}

void Session::Impl::parallel_for(int count, const std::function<void(int)>& f) {
  for (int i = 0; taking && i < count; ++i) f(i);
  if (taking) return;
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

Status Session::Impl::check_appends(std::span<const NewTokens> all) const {
  if (all.empty()) return bad_input("a step needs at least one token");
  std::vector<bool> used(position.size());
  for (const NewTokens& n : all) {
    INVAR_CHECK_OK(check_append(n.sequence, n.tokens));
    if (used[n.sequence])
      return bad_input("sequence " + std::to_string(n.sequence) + " stands in one step twice");
    used[n.sequence] = true;
  }
  return {};
}

Status Session::Impl::append_many(std::span<const NewTokens> all) {
  INVAR_CHECK_OK(check_appends(all));
  if (recompute) {
    const auto stepped = step(all[0].tokens, false, all[0].sequence);  // there is but one sequence
    return stepped ? Status() : stepped.error();
  }
  const num::ArithmeticEnv env;
  if (!num::arithmetic_env_ok()) return wrong_arithmetic();
  const PromptPasses prompts(all, position, pass_rows);
  int64_t done = 0;
  INVAR_CHECK_OK(run(prompts.passes(), [&](size_t p, size_t, std::span<const float>) {
    done += prompts.tokens(p);
    if (options().progress && prompts.passes().size() > 1) options().progress(done, prompts.tokens());
  }));
  for (const NewTokens& n : all) position[n.sequence] += static_cast<int64_t>(n.tokens.size());
  return {};
}

Result<std::span<const float>> Session::Impl::step_many(std::span<const NextToken> next) {
  std::vector<NewTokens> appended;
  for (const NextToken& n : next) appended.push_back({n.sequence, {&n.token, 1}});
  INVAR_CHECK_OK(check_appends(appended));
  batch.clear();
  for (const NextToken& n : next) batch.push_back({n.sequence, position[n.sequence]});
  if (next.size() == 1) return step({&next[0].token, 1}, false, next[0].sequence);
  const num::ArithmeticEnv env;
  if (!num::arithmetic_env_ok()) return wrong_arithmetic();
  batch_tokens.clear(), passes.clear();
  for (const NextToken& n : next) batch_tokens.push_back(n.token);
  // Several passes overlap in the lanes.
  const size_t count = std::clamp<size_t>(next.size() / kPassSequences, 1, pipeline->groups());
  const size_t row = static_cast<size_t>(vocab);
  for (size_t p = 0; p < count; ++p) {
    const size_t begin = p * next.size() / count, size = (p + 1) * next.size() / count - begin;
    passes.push_back({std::span(batch_tokens).subspan(begin, size), std::span(batch).subspan(begin, size)});
  }
  if (count > 1) all_logits.resize(next.size() * row);
  std::span<const float> found;
  INVAR_CHECK_OK(run(passes, [&](size_t p, size_t before, std::span<const float> logits) {
    found = logits;
    if (count > 1)
      std::copy(logits.begin(), logits.end(), all_logits.begin() + p * next.size() / count * row + before);
  }));
  for (const NextToken& n : next) ++position[n.sequence];
  return count > 1 ? std::span<const float>(all_logits) : found;
}

Result<std::span<const float>> Session::Impl::step(std::span<const int32_t> tokens, bool all,
                                                   int64_t sequence) {
  const size_t row = static_cast<size_t>(vocab), wanted = all ? tokens.size() : 1;
  std::span<const float> last;
  INVAR_CHECK_OK(step_rows(tokens, static_cast<int64_t>(wanted), sequence, [&](int64_t first, auto rows) {
    last = rows.last(row);
    if (!all) return;
    all_logits.resize(wanted * row);
    std::copy(rows.begin(), rows.end(), all_logits.begin() + first * vocab);
  }));
  return all ? std::span<const float>(all_logits) : last;
}

// Of a step: at least the wanted ones. Without memory all rows must run as one step. A GPU computes
// the logits of more rows in less time than a second pass over the weights takes.
int64_t Session::Impl::rows_with_tail(int64_t size, int64_t wanted) const {
  if (!has_memory() || (wanted == 1 && size <= kTailRows)) return size;
  const bool in_one = context.device && wanted > kTailRows && size <= 4 * wanted && size <= most_tail_rows();
  return in_one ? size : wanted;
}

Status Session::Impl::step_rows(std::span<const int32_t> tokens, int64_t wanted, int64_t sequence,
                                const TakeRows& take) {
  const int64_t count = static_cast<int64_t>(tokens.size());
  INVAR_CHECK_OK(check_append(sequence, tokens));
  if (wanted < 1 || wanted > count)
    return bad_input("a step of " + std::to_string(count) + " tokens has no logits of " +
                     std::to_string(wanted) + " of them");
  const num::ArithmeticEnv env;
  if (!num::arithmetic_env_ok()) return wrong_arithmetic();

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
    int64_t next = count - wanted;
    INVAR_CHECK_OK(
        run_prefixes(static_cast<size_t>(wanted), [&](std::span<const float> row) { take(next++, row); }));
    position[sequence] += count;
    return {};
  }
  // Rows whose logits nobody wants run without tail.
  const int64_t size = static_cast<int64_t>(rest.size()), first_wanted = size - wanted;
  const int64_t with_tail = rows_with_tail(size, wanted);
  reserve_tails(with_tail);
  passes.clear(), pass_sequences.clear();
  for (int64_t begin = 0, end; begin < size; begin = end) {
    const bool tail = begin >= size - with_tail;
    end = std::min(begin + (tail ? std::min(chunk, tail_rows) : chunk), tail ? size : size - with_tail);
    passes.push_back({rest.subspan(begin, end - begin), {}, tail});
    pass_sequences.push_back({sequence, past + begin});
  }
  for (size_t p = 0; p < passes.size(); ++p) {
    passes[p].sequences = {&pass_sequences[p], 1};
    const int64_t begin = pass_sequences[p].past - past,
                  unwanted = std::clamp(first_wanted - begin, int64_t{0}, passes[p].rows() - 1);
    passes[p].unwanted = static_cast<size_t>(unwanted * vocab) * sizeof(float);
  }
  int64_t done = 0;
  INVAR_CHECK_OK(run(passes, [&](size_t p, size_t before, std::span<const float> logits) {
    const bool first = before * sizeof(float) <= passes[p].unwanted;
    if (first) done += passes[p].rows();
    if (options().progress && first && size > chunk) options().progress(done, size);
    const int64_t begin = pass_sequences[p].past - past + static_cast<int64_t>(before) / vocab,
                  unwanted = std::max(first_wanted - begin, int64_t{0});
    if (unwanted * vocab < static_cast<int64_t>(logits.size()))
      take(begin + unwanted - (size - count), logits.subspan(static_cast<size_t>(unwanted * vocab)));
  }));
  position[sequence] += count;
  return {};
}

// The logits of the last `wanted` tokens of the history, one by one.
Status Session::Impl::run_prefixes(size_t wanted, const std::function<void(std::span<const float>)>& take) {
  const std::span<const int32_t> tokens = history;
  for (size_t n = tokens.size() - wanted + 1; n <= tokens.size(); ++n) {
    INVAR_TRY(const std::span<const float> row, prefix->run(tokens.first(n)));
    take(row);
  }
  return {};
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
int64_t Session::capacity() const {
  return impl_->options().capacity;
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
std::string_view Session::placement() const {
  return impl_->placement;
}
std::string_view Session::isa() const {
  return impl_->isa;
}
size_t Session::peak_bytes() const {
  return (impl_->pipeline ? impl_->pipeline->bytes() : impl_->prefix->bytes()) +
         impl_->all_logits.capacity() * sizeof(float);
}
std::vector<std::string> Session::kernels() const {
  return impl_->names_of([](const auto& part) { return part.kernels(); });
}
std::vector<std::string> Session::libraries() const {
  return impl_->names_of([](const auto& part) { return part.libraries(); });
}
int64_t Session::chunk() const {
  return impl_->chunk;
}
Status Session::resize(int64_t capacity) {
  impl_->finish_overlapped();
  return impl_->resize(capacity);
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
Status Session::step_rows(std::span<const int32_t> tokens, int64_t wanted, const TakeRows& take,
                          int64_t sequence) {
  const Status taken = impl_->step_rows(tokens, wanted, sequence, take);
  impl_->finish_overlapped();
  return taken;
}
Status Session::append_many(std::span<const NewTokens> all) {
  const Status appended = impl_->append_many(all);
  impl_->finish_overlapped();
  return appended;
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
  if (impl_->prefix) return impl_->prefix->block().weights_unchanged();
  for (const auto& stage : impl_->pipeline->stages()) INVAR_CHECK_OK(stage->weights_unchanged());
  return {};
}

}  // namespace invar::run
