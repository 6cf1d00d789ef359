// Sessions of a decoder, see session.h: check what is asked and keep positions; a stepper computes.
#include <algorithm>
#include <optional>
#include <utility>

#include "num/env.h"
#include "plan/encoder_part.h"
#include "run/function.h"
#include "run/partitions/decoder_ports.h"
#include "run/session.h"
#include "run/steppers/stepper.h"
#include "run/thread_setup.h"

namespace invar::run {
namespace {

constexpr int64_t kMaxCapacity = int64_t{1} << 31;
constexpr int64_t kMaxSequences = 1 << 16;

}  // namespace

struct Session::Impl : SessionState {
  std::unique_ptr<Stepper> stepper;
  std::optional<Function> encoder;
  std::vector<int64_t> source_shape;  // of features; empty: the source is tokens
  std::string isa;
  std::vector<std::vector<int64_t>> in_flight;  // sequences, per step

  Status open();
  Status open_encoder();
  Result<TensorView> view_of(const Source& source, std::vector<int64_t>& ids,
                             std::vector<int64_t>& shape) const;
  Status encode(const Source& source, int64_t sequence);
  Status resize(int64_t capacity);
  Status check_options() const;
  Status check_sequences() const;
  Status check_append(int64_t sequence, std::span<const int32_t> tokens) const;
  Status check_appends(std::span<const NewTokens> all) const;
  Status check_next(std::span<const NextToken> next) const;
  void parallel_for(int count, const std::function<void(int)>& f);
  Status step_rows(std::span<const int32_t> tokens, int64_t wanted, int64_t sequence, const TakeRows& take);
  Result<std::span<const float>> step(std::span<const int32_t> tokens, bool all, int64_t sequence);
  Status append_many(std::span<const NewTokens> all);
  Result<std::span<const float>> step_many(std::span<const NextToken> next);
  Status start_many(std::span<const NextToken> next);
  Result<std::span<const float>> take_many();
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

static bool in_one_part(const Options& o) {
  return o.partitions <= 1 && o.ranks <= 1 && !o.weights_memory && o.device.find(',') == std::string::npos;
}

// f32 [batch, constants]
static Result<std::vector<int64_t>> feature_shape(const plan::Value& v) {
  std::vector<int64_t> shape;
  for (size_t i = 1; i < v.shape.size(); ++i)
    if (v.shape[i].symbol < 0 && v.shape[i].value > 0) shape.push_back(v.shape[i].value);
  if (v.dtype == DType::f32 && !shape.empty() && shape.size() + 1 == v.shape.size() && v.shape[0].symbol >= 0)
    return shape;
  return not_covered("the plan's input 'source_features' is not f32 [batch, constants]");
}

// Takes the encoder out of the plan, which is the decoder's from then on.
Status Session::Impl::open_encoder() {
  Options& o = context.options;
  if (!in_one_part(o))
    return not_covered(
        "a model with an encoder runs in one partition, with all of its weights in memory: leave partitions, "
        "ranks, further devices and the weights' memory out");
  INVAR_TRY(plan::EncoderSplit split, plan::split_encoder(plan));
  Options of_encoder = o;
  of_encoder.observe = {}, of_encoder.progress = {};
  if (o.observe)
    o.observe = [report = o.observe, numbers = split.decoder.node_numbers](NodeResults r) {
      r.node = static_cast<size_t>(numbers[r.node]);
      report(r);
    };
  for (const plan::Port& i : plan.inputs)
    if (i.name == plan::kSourceFeatures) {
      INVAR_TRY(source_shape, feature_shape(plan.values[i.value]));
    }
  std::vector<EncodedSources::Input> from_encoder;
  for (const plan::Port& given : split.encoder.plan.outputs) {
    const plan::Port& port = *std::ranges::find(split.decoder.plan.inputs, given.name, &plan::Port::name);
    const plan::Value& v = split.decoder.plan.values[port.value];
    const auto is = [&](size_t axis, const char* name) {
      const int symbol = axis < v.shape.size() ? v.shape[axis].symbol : -1;
      return symbol >= 0 && split.decoder.plan.symbols[symbol] == DimExpr::symbol(name);
    };
    const bool fixed = !source_shape.empty();  // the source has one length, a position of its own
    size_t row = size_of(v.dtype);
    for (size_t i = fixed ? 1 : 2; i < v.shape.size(); ++i)
      row *= v.shape[i].symbol < 0 ? static_cast<size_t>(v.shape[i].value) : 0;
    if (!is(0, "batch") || (!fixed && !is(1, "source")) || row == 0)
      return not_covered("the encoder's result " + given.name + " is not [batch, source, constants]");
    from_encoder.push_back({port.value, row});
  }
  sources = std::make_unique<EncodedSources>(std::move(from_encoder), o.sequences);
  INVAR_TRY(encoder, Function::open(std::move(split.encoder.plan), context.folder, std::move(of_encoder)));
  plan = std::move(split.decoder.plan);
  return {};
}

// The source as the encoder's input; `ids` and `shape` hold what the view is of.
Result<TensorView> Session::Impl::view_of(const Source& source, std::vector<int64_t>& ids,
                                          std::vector<int64_t>& shape) const {
  if (source_shape.empty()) {
    if (source.tokens.empty()) return bad_input("a source needs at least one token");
    ids.assign(source.tokens.begin(), source.tokens.end());
    shape = {1, static_cast<int64_t>(ids.size())};
    return TensorView{DType::i64, shape, std::as_bytes(std::span(ids))};
  }
  shape = source_shape, shape.insert(shape.begin(), 1);
  size_t count = 1;
  for (const int64_t d : source_shape) count *= static_cast<size_t>(d);
  if (source.features.size() != count)
    return bad_input("the encoder takes a source of " + std::to_string(count) + " features, not of " +
                     std::to_string(source.features.size()));
  return TensorView{DType::f32, shape, std::as_bytes(source.features)};
}

Status Session::Impl::encode(const Source& source, int64_t sequence) {
  if (!encoder) return bad_input("the program has no encoder, and takes no source");
  if (sequence < 0 || sequence >= options().sequences)
    return bad_input("there is no sequence " + std::to_string(sequence));
  std::vector<int64_t> ids, shape;
  INVAR_TRY(const TensorView view, view_of(source, ids, shape));
  position[static_cast<size_t>(sequence)] = stepper->forget(sequence, 0);
  const char* const input = source_shape.empty() ? plan::kSourceIds : plan::kSourceFeatures;
  INVAR_TRY(const Function::NamedTensors results, encoder->run(Function::NamedViews{{input, view}}));
  const int64_t length = source_shape.empty() ? shape[1] : 1;
  std::vector<std::span<const std::byte>> bytes;
  for (size_t i = 0; i < results.size(); ++i) {
    bytes.emplace_back(results[i].second.bytes);
    if (bytes.back().size() != sources->inputs()[i].row_bytes * static_cast<size_t>(length))
      return Error{Code::internal, "the encoder's result " + results[i].first + " has another size"};
  }
  return sources->set(sequence, length, bytes, context.device);
}

Status Session::Impl::open() {
  INVAR_CHECK_OK(check_options());
  if (plan::has_encoder(plan)) {
    INVAR_CHECK_OK(open_encoder());
  }
  const Options& o = options();
  if (o.observe && (o.device != "cpu" || !plan.bodies.empty() || !plan.bindings.empty()))
    return not_covered(std::string("the results of single operations are observed ") +
                       (o.device != "cpu" ? "on the CPU alone: leave --device out"
                                          : "in a program without control flow and computed sizes alone"));
  position.assign(static_cast<size_t>(o.sequences), 0);
  INVAR_TRY(context.pool, start_pool(o.threads));
  const num::ArithmeticEnv env;
  if (o.hidden >= 0) {
    if (!in_one_part(o)) return not_covered("hidden states are handed out by a decoder in one part");
    plan.outputs.push_back({"hidden_states", o.hidden});
    plan::assign_slots(plan);
  }
  INVAR_TRY(inputs, decoder_inputs(plan));
  if (takes_whole_sequence(inputs) && !plan.states.empty())
    return not_covered(
        "the plan remembers tokens, and takes a mask or past keys and values beside: compile with "
        "--stateless");
  ports = find_ports(plan, inputs);
  INVAR_TRY(stepper, Stepper::make(*this));
  isa = context.device ? ops::kCuda : o.isa.empty() ? ops::isas().front() : o.isa;
  if (!stepper->has_memory() && o.sequences > 1)
    return not_covered(
        "several sequences need " +
        std::string(o.use_cache ? "a plan with memory between steps" : "their memory between steps") +
        ": run one sequence at a time");
  INVAR_TRY(vocab, check_ports(plan, ports, takes_whole_sequence(inputs)));
  INVAR_CHECK_OK(check_sequences());
  INVAR_CHECK_OK(stepper->load());
  if (o.state_memory && !stepper->pages())
    return not_covered(
        "--kv-cache-memory-bytes: this program remembers in states of fixed size, too, or nothing, or in "
        "other processes: leave it out");
  return {};
}

// The capacity stays as before where there is too little memory.
Status Session::Impl::resize(int64_t capacity) {
  const int64_t before = std::exchange(context.options.capacity, capacity);
  const auto resized = [this]() -> Status {
    INVAR_CHECK_OK(check_options());
    for (size_t i = 0; i < position.size(); ++i) stepper->forget(static_cast<int64_t>(i), position[i] = 0);
    return stepper->resize();
  };
  const Status good = resized();
  if (good) return good;
  context.options.capacity = before;
  INVAR_CHECK_OK(resized());
  return good;
}

Status Session::Impl::check_sequences() const {
  if (options().sequences == 1) return {};
  for (const plan::Port& i : plan.inputs)
    if (!stepper->has_leading_sequences(i.value))
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

Status Session::Impl::check_append(int64_t sequence, std::span<const int32_t> tokens) const {
  const int64_t count = static_cast<int64_t>(tokens.size());
  if (count == 0) return bad_input("a step needs at least one token");
  if (sequence < 0 || sequence >= options().sequences)
    return bad_input("there is no sequence " + std::to_string(sequence) + "; the session has " +
                     std::to_string(options().sequences));
  for (const std::vector<int64_t>& step : in_flight)
    if (std::ranges::find(step, sequence) != step.end())
      return bad_input("a step of sequence " + std::to_string(sequence) + " is in flight");
  if (sources && sources->length(sequence) == 0)
    return bad_input("the program has an encoder, and sequence " + std::to_string(sequence) +
                     " has no source yet");
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
  const num::ArithmeticEnv env;
  if (!num::arithmetic_env_ok()) return wrong_arithmetic();
  INVAR_CHECK_OK(stepper->append_many(all));
  for (const NewTokens& n : all) position[n.sequence] += static_cast<int64_t>(n.tokens.size());
  return {};
}

Status Session::Impl::check_next(std::span<const NextToken> next) const {
  std::vector<NewTokens> appended;
  for (const NextToken& n : next) appended.push_back({n.sequence, {&n.token, 1}});
  return check_appends(appended);
}

Result<std::span<const float>> Session::Impl::step_many(std::span<const NextToken> next) {
  INVAR_CHECK_OK(check_next(next));
  if (next.size() == 1) return step({&next[0].token, 1}, false, next[0].sequence);
  const num::ArithmeticEnv env;
  if (!num::arithmetic_env_ok()) return wrong_arithmetic();
  INVAR_TRY(const std::span<const float> logits, stepper->step_many(next));
  for (const NextToken& n : next) ++position[n.sequence];
  return logits;
}

Status Session::Impl::start_many(std::span<const NextToken> next) {
  INVAR_CHECK_OK(check_next(next));
  INVAR_CHECK_OK(stepper->start_many(next));
  for (std::vector<int64_t>& step = in_flight.emplace_back(); const NextToken& n : next)
    step.push_back(n.sequence);
  return {};
}

Result<std::span<const float>> Session::Impl::take_many() {
  const num::ArithmeticEnv env;
  if (!num::arithmetic_env_ok()) return wrong_arithmetic();
  auto logits = stepper->take_many();
  for (size_t i = 0; logits && i < in_flight[0].size(); ++i) ++position[static_cast<size_t>(in_flight[0][i])];
  in_flight.erase(in_flight.begin(), logits ? in_flight.begin() + 1 : in_flight.end());
  return logits;
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

Status Session::Impl::step_rows(std::span<const int32_t> tokens, int64_t wanted, int64_t sequence,
                                const TakeRows& take) {
  const int64_t count = static_cast<int64_t>(tokens.size());
  INVAR_CHECK_OK(check_append(sequence, tokens));
  if (wanted < 1 || wanted > count)
    return bad_input("a step of " + std::to_string(count) + " tokens has no logits of " +
                     std::to_string(wanted) + " of them");
  const num::ArithmeticEnv env;
  if (!num::arithmetic_env_ok()) return wrong_arithmetic();
  INVAR_CHECK_OK(stepper->step_rows({sequence, tokens}, wanted, take));
  position[sequence] += count;
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
  const size_t encoder = impl_->encoder ? impl_->encoder->peak_bytes() + impl_->sources->bytes() : size_t{0};
  return impl_->stepper->bytes() + impl_->all_logits.capacity() * sizeof(float) + encoder;
}

// With those of the encoder.
static std::vector<std::string> joined(std::vector<std::string> all, const std::vector<std::string>& more) {
  for (const std::string& name : more)
    if (std::ranges::find(all, name) == all.end()) all.push_back(name);
  return all;
}
std::vector<std::string> Session::kernels() const {
  const auto& encoder = impl_->encoder;
  return joined(impl_->stepper->kernels(), encoder ? encoder->kernels() : std::vector<std::string>());
}
std::vector<std::string> Session::libraries() const {
  const auto& encoder = impl_->encoder;
  return joined(impl_->stepper->libraries(), encoder ? encoder->libraries() : std::vector<std::string>());
}
bool Session::shares_pages() const {
  return impl_->stepper->pages() != nullptr;
}
int64_t Session::most_pages() const {
  return impl_->stepper->pages()->most();
}
bool Session::has_room(int64_t pages) {
  return impl_->stepper->pages()->has_room(pages);
}
int64_t Session::used_pages() const {
  return impl_->stepper->pages()->used();
}
size_t Session::page_bytes() const {
  return impl_->stepper->pages()->page_bytes();
}
int64_t Session::pages_of(int64_t sequence) const {
  return impl_->stepper->pages()->taken(sequence);
}
int64_t Session::keep_page(int64_t sequence, int64_t index) {
  return impl_->stepper->pages()->share(sequence, index);
}
void Session::drop_page(int64_t page) {
  impl_->stepper->pages()->drop(page);
}
int64_t Session::page_users(int64_t page) const {
  return impl_->stepper->pages()->users(page);
}
void Session::append_pages(int64_t sequence, std::span<const int64_t> pages) {
  reset(sequence, position(sequence));  // padding may have taken pages behind its end
  impl_->stepper->pages()->append(sequence, pages);
  impl_->position[static_cast<size_t>(sequence)] += static_cast<int64_t>(pages.size()) * ops::kPagePositions;
}
bool Session::has_encoder() const {
  return impl_->encoder.has_value();
}
std::vector<int64_t> Session::source_shape() const {
  return impl_->source_shape;
}
Status Session::encode(const Source& source, int64_t sequence) {
  impl_->finish_overlapped();
  return impl_->encode(source, sequence);
}
int64_t Session::chunk() const {
  return impl_->stepper->chunk();
}
Status Session::resize(int64_t capacity) {
  impl_->finish_overlapped();
  return impl_->resize(capacity);
}
// A place after a position in a memory is never read before it is written again.
int64_t Session::reset(int64_t sequence, int64_t keep) {
  int64_t& position = impl_->position.at(static_cast<size_t>(sequence));
  return position = impl_->stepper->forget(sequence, std::clamp<int64_t>(keep, 0, position));
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
size_t Session::groups(size_t sequences) const {
  return impl_->stepper->groups(sequences);
}
Status Session::start_many(std::span<const NextToken> next) {
  return impl_->start_many(next);
}
Result<std::span<const float>> Session::take_many() {
  return impl_->take_many();
}
std::span<const float> Session::hidden() const {
  return impl_->hidden;
}
void Session::feed_hidden(std::span<const float> rows) {
  impl_->fed_hidden.assign(rows.begin(), rows.end());
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
  if (impl_->encoder) {
    INVAR_CHECK_OK(impl_->encoder->weights_unchanged());
  }
  return impl_->stepper->weights_unchanged();
}

}  // namespace invar::run
