// A worker process, see worker.h. remote_stage.cc writes what is read here.
#include "run/partitions/workers/worker.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "base/file/file.h"
#include "base/file/temporary_file.h"
#include "num/env.h"
#include "run/partitions/local_stage.h"
#include "run/thread_setup.h"

namespace invar::run {
namespace {

namespace fs = std::filesystem;

// A stage with all that it refers to.
struct Held {
  std::map<std::string, std::string> files;  // of weights: name in the plan -> path here
  std::optional<TemporaryFolder> sent;       // what the run sent of them
  StageContext context;
  std::optional<plan::Plan> checks;  // the plan whose weights it checks
  std::unique_ptr<LocalStage> stage;
  std::vector<int> outputs, feeding;  // values of the whole plan
  std::map<int, Handover> memory;     // of inputs and outputs
};

class Worker {
 public:
  explicit Worker(std::string model) : model_(std::move(model)) {}
  Result<Packet> find(Packet& p);
  Result<Packet> keep(Held& h, Packet& p);
  Result<Packet> open(Packet& p);
  Result<Packet> load(Held& h);
  Result<Packet> reserve(Held& h, Packet& p);
  Result<Packet> forget(Held& h, Packet& p);
  Result<Packet> pass(Held& h, Packet& p);
  Result<Packet> handle(Kind kind, Packet& p);

 private:
  // What stages of a device share, as those of a lane in the run's own process do.
  struct Shared {
    std::shared_ptr<Device> device;
    std::shared_ptr<Allocation> arena = std::make_shared<Allocation>();
    std::shared_ptr<UploadQueues> queues = std::make_shared<UploadQueues>();
  };
  Result<Shared*> shared(const std::string& device);

  const std::string model_;
  std::shared_ptr<Pool> pool_;
  std::map<std::string, Shared> shared_;  // by the device's name
  std::map<int64_t, Held> held_;
};

Result<Worker::Shared*> Worker::shared(const std::string& device) {
  const auto known = shared_.find(device);
  if (known != shared_.end()) return &known->second;
  Shared made;
  INVAR_TRY(made.device, Device::named(device));
  return &shared_.emplace(device, std::move(made)).first->second;
}

// Weights of these files, by their paths from the root on: the folder is "".
Status place_weights(plan::Plan& plan, const std::map<std::string, std::string>& files) {
  for (plan::Weight& w : plan.weights) {
    const auto known = files.find(w.file);
    if (known == files.end()) return Error{Code::internal, w.file + ", which was not looked for"};
    w.file = known->second.substr(1);
  }
  return {};
}

// The text of a plan gives values numbers of its own, so those of the whole plan are known of the
// stage's inputs and outputs alone.
bool number_ports(plan::Stage& stage, const std::vector<int>& feeding) {
  plan::Segment& s = stage.segment;
  if (s.inputs.size() != s.plan.inputs.size() || s.outputs.size() != s.plan.outputs.size()) return false;
  s.values.assign(s.plan.values.size(), -2);  // -1: what the decoder does not have
  for (size_t i = 0; i < s.inputs.size(); ++i) s.values[s.plan.inputs[i].value] = s.inputs[i];
  for (size_t o = 0; o < s.outputs.size(); ++o) {
    s.values[s.plan.outputs[o].value] = s.outputs[o];
    if (std::count(feeding.begin(), feeding.end(), s.outputs[o]))
      stage.feeding_outputs.push_back(s.plan.outputs[o].value);
  }
  return true;
}

// Begins a stage: looks for the files of its weights, and answers which are not here.
Result<Packet> Worker::find(Packet& p) {
  const int64_t id = p.number();
  held_.erase(id);
  Held& h = held_[id];
  const std::vector<std::string> names = p.texts(), paths = p.texts();
  if (!p.ok() || names.size() != paths.size()) return Error{Code::internal, "files that cannot be read"};
  std::vector<std::string> missing;
  for (size_t i = 0; i < names.size(); ++i) {
    std::error_code ec;
    const std::string own = model_ + "/" + names[i];
    const std::string& path = !model_.empty() && fs::exists(own, ec) ? own : paths[i];
    if (fs::exists(path, ec))
      h.files[names[i]] = fs::absolute(path, ec).string();
    else
      missing.push_back(names[i]);
  }
  Packet answer;
  answer.put(missing);
  return answer;
}

// A file that the run sends.
Result<Packet> Worker::keep(Held& h, Packet& p) {
  const std::string name = fs::path(p.text()).filename();
  const auto content = p.data();
  if (!p.ok() || name.empty()) return Error{Code::internal, "a file that cannot be read"};
  if (!h.sent) {
    INVAR_TRY(h.sent, TemporaryFolder::make());
  }
  const std::string path = h.sent->path() + "/" + name;
  INVAR_CHECK_OK(write_file(path, {reinterpret_cast<const char*>(content.data()), content.size()}));
  h.files[name] = fs::absolute(path);
  return Packet();
}

Result<Packet> Worker::open(Packet& p) {
  const int64_t id = p.number();
  plan::Stage stage;
  INVAR_TRY(stage.segment.plan, plan::parse(p.text(), "a stage of the plan"));
  const auto said = p.data();
  const Digest found = plan::digest(stage.segment.plan);
  if (!std::equal(said.begin(), said.end(), std::as_bytes(std::span(found)).begin(),
                  std::as_bytes(std::span(found)).end()))
    return Error{Code::failed,
                 "the plan has digest " + to_hex(found) + " here, which the run does not give it"};
  Held& h = held_[id];
  INVAR_CHECK_OK(place_weights(stage.segment.plan, h.files));
  stage.segment.inputs = p.numbers(), stage.segment.outputs = p.numbers();
  stage.segment.node_numbers = p.numbers();
  const std::vector<int> feeding = p.numbers();
  stage.first_layer = static_cast<int>(p.number()), stage.layers = static_cast<int>(p.number());
  DecoderPorts ports;
  ports.ids = static_cast<int>(p.number()), ports.positions = static_cast<int>(p.number());
  ports.logits = static_cast<int>(p.number());
  const std::string device_name = p.text();
  Options& o = h.context.options;
  o.isa = p.text(), o.threads = static_cast<int>(p.number());
  o.capacity = p.number(), o.sequences = p.number(), o.check_weights = p.number() != 0;
  o.goes_back = p.number() != 0;
  const bool checks_own = p.number() != 0;
  const std::string whole = p.text();
  if (!p.ok() || !number_ports(stage, feeding)) return Error{Code::internal, "a stage that cannot be read"};
  if (!pool_) {
    INVAR_TRY(pool_, start_pool(o.threads));
  }
  h.context.pool = pool_.get();
  INVAR_TRY(const Shared* const place, shared(device_name));
  const std::shared_ptr<Device>& device = place->device;
  h.outputs = stage.segment.outputs;
  h.feeding = feeding;
  std::vector<int> mixed;
  INVAR_TRY(h.stage, LocalStage::prepare(std::move(stage), ports, device, h.context));
  h.stage->share(place->arena, place->queues);
  if (!whole.empty()) {
    INVAR_TRY(h.checks, plan::parse(whole, "the plan"));
    INVAR_CHECK_OK(place_weights(*h.checks, h.files));
  }
  if (!checks_own) h.stage->check_instead(h.checks ? &*h.checks : nullptr);
  for (int v : {ports.ids, ports.positions})
    if (v >= 0 && !h.stage->has_leading_sequences(v)) mixed.push_back(v);
  Packet answer;
  answer.put(int64_t{h.stage->has_memory()}), answer.put(int64_t{h.stage->has_fixed_states()});
  answer.put(mixed);
  answer.put(h.stage->kernels()), answer.put(h.stage->libraries());
  answer.put(std::string_view(device ? device->info().name : "cpu"));
  return answer;
}

Result<Packet> Worker::load(Held& h) {
  INVAR_CHECK_OK(h.stage->load());
  return Packet();
}

Result<Packet> Worker::reserve(Held& h, Packet& p) {
  const int64_t rows = p.number(), tail_rows = p.number(), capacity = p.number();
  INVAR_CHECK_OK(h.stage->reserve(rows, tail_rows, capacity));
  Packet answer;
  answer.put(static_cast<int64_t>(h.stage->bytes()));
  return answer;
}

Result<Packet> Worker::forget(Held& h, Packet& p) {
  const int64_t sequence = p.number(), keep = p.number();
  if (!p.ok()) return Error{Code::internal, "a sequence that cannot be read"};
  INVAR_CHECK_OK(h.stage->forget(sequence, keep));
  return Packet();
}

Result<Packet> Worker::pass(Held& h, Packet& p) {
  const std::vector<int> tokens = p.numbers();
  std::vector<ops::Sequence> sequences;
  for (int64_t i = 0, n = p.number(); i < n && p.ok(); ++i) {
    const int64_t slot = p.number(), past = p.number();
    sequences.push_back({slot, past});
  }
  const bool tail = p.number() != 0;
  if (!p.ok() || sequences.empty()) return Error{Code::internal, "a pass that cannot be read"};
  INVAR_CHECK_OK(h.stage->begin({tokens, sequences, tail}));
  for (int64_t i = 0, n = p.number(); i < n && p.ok(); ++i) {
    const int v = static_cast<int>(p.number());
    const auto data = p.data();
    Handover& in = h.memory[v];
    in.bytes = data.size();
    if (in.memory.size() < in.bytes) {
      INVAR_TRY(in.memory, Allocation::make(in.bytes, "activations between stages"));
    }
    std::copy(data.begin(), data.end(), in.memory.data());
    INVAR_CHECK_OK(h.stage->hand_in(v, in));
  }
  if (!p.ok()) return Error{Code::internal, "a pass that cannot be read"};
  INVAR_CHECK_OK(h.stage->run({}));
  Packet answer;
  const std::vector<int>& outputs = tail ? h.outputs : h.feeding;
  answer.put(static_cast<int64_t>(outputs.size()));
  for (int v : outputs) {
    Handover& out = h.memory[v];
    INVAR_CHECK_OK(h.stage->hand_out(v, out));
    INVAR_CHECK_OK(h.stage->handed_out());
    answer.put(int64_t{v});
    answer.put(std::span<const std::byte>(out.memory.data(), out.bytes));
  }
  return answer;
}

Result<Packet> Worker::handle(Kind kind, Packet& p) {
  if (kind == Kind::find) return find(p);
  if (kind == Kind::open) return open(p);
  const int64_t id = p.number();
  const auto found = held_.find(id);
  if (kind == Kind::close) {
    held_.erase(id);
    return Packet();
  }
  if (found != held_.end() && kind == Kind::keep) return keep(found->second, p);
  if (found == held_.end() || !found->second.stage)
    return Error{Code::internal, "a stage that was not opened"};
  Held& h = found->second;
  switch (kind) {
    case Kind::load: return load(h);
    case Kind::reserve: return reserve(h, p);
    case Kind::forget: return forget(h, p);
    case Kind::pass: return pass(h, p);
    case Kind::unchanged: INVAR_CHECK_OK(h.stage->weights_unchanged()); return Packet();
    default: return Error{Code::internal, "a message that a worker does not expect"};
  }
}

}  // namespace

char own_version[] = "\0" INVAR_VERSION;  // the zero marks where it begins

Status work_for(Transport& transport, const std::string& model) {
  const num::ArithmeticEnv env;
  INVAR_CHECK_OK(transport.say_hello());
  Worker worker(model);
  for (;;) {
    Kind kind{};
    INVAR_TRY(Packet packet, transport.next(kind));
    if (kind == Kind::quit) return {};
    const Result<Packet> result =
        num::arithmetic_env_ok() ? worker.handle(kind, packet) : Result<Packet>(wrong_arithmetic());
    INVAR_CHECK_OK(transport.reply(result));
  }
}

}  // namespace invar::run
