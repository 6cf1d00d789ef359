// A stage in a worker process, see remote_stage.h. worker.cc reads what is written here.
#include "run/partitions/workers/remote_stage.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/file/file.h"
#include "weights/weight_file.h"

namespace invar::run {

// Invar writes these; all others are the checkpoint's, and each host has its own.
static bool is_compiled(const std::string& file) {
  return file.ends_with(".constants") || weights::is_index(file);
}

Packet RemoteStage::message() const {
  Packet p;
  p.put(int64_t{id_});
  return p;
}

Status RemoteStage::name_files(const plan::Plan& plan, const std::string& folder) {
  std::vector<std::string> names, paths, missing;
  std::error_code ec;
  for (const plan::Weight& w : plan.weights) {
    if (std::find(names.begin(), names.end(), w.file) != names.end()) continue;
    const auto path = std::filesystem::canonical(folder + "/" + w.file, ec);
    if (ec) return bad_input("cannot open '" + folder + "/" + w.file + "': " + ec.message());
    names.push_back(w.file), paths.push_back(path.string());
    if (!weights::is_index(w.file)) continue;
    // An index is of this folder alone, and the files that it names lie beside it.
    INVAR_TRY(const auto index, weights::WeightFile::open(path.string()));
    for (const std::string& source : index.sources()) {
      if (std::find(names.begin(), names.end(), source) != names.end()) continue;
      const auto target = std::filesystem::canonical(folder + "/" + source, ec);
      if (ec) return bad_input("cannot open '" + folder + "/" + source + "': " + ec.message());
      names.push_back(source), paths.push_back(target.string());
    }
  }
  Packet p = message();
  p.put(names), p.put(paths);
  INVAR_TRY(Packet answer, transport_.call(rank_, Kind::find, p));
  missing = answer.texts();
  for (size_t i = 0; i < names.size(); ++i) {
    const bool is_missing = std::find(missing.begin(), missing.end(), names[i]) != missing.end();
    if (is_compiled(names[i]) && (is_missing || transport_.is_elsewhere(rank_))) {
      INVAR_TRY(const MappedFile file, MappedFile::open(paths[i]));
      Packet content = message();
      content.put(std::string_view(names[i])), content.put(file.bytes());
      INVAR_CHECK_OK(transport_.call(rank_, Kind::keep, content));
    } else if (is_missing) {
      return bad_input(transport_.name_of(rank_) + " has no file " + paths[i] +
                       ": the checkpoint must lie there on each host, or in the folder that --worker-model "
                       "names");
    }
  }
  return {};
}

Result<std::unique_ptr<RemoteStage>> RemoteStage::open(Transport& transport, int rank, int id,
                                                       plan::Stage stage, const DecoderPorts& ports,
                                                       const std::string& device, const StageContext& context,
                                                       const Checks& checks) {
  std::unique_ptr<RemoteStage> s(new RemoteStage(transport, rank, id));
  s->lane_ = "worker " + std::to_string(rank);
  const plan::Segment& segment = stage.segment;
  const Options& o = context.options;
  INVAR_CHECK_OK(s->name_files(checks.whole ? *checks.whole : segment.plan, context.folder));
  Packet p = s->message();
  p.put(std::string_view(plan::print(segment.plan)));
  const Digest digest = plan::digest(segment.plan);
  p.put(std::as_bytes(std::span(digest)));
  p.put(segment.inputs), p.put(segment.outputs), p.put(segment.node_numbers);
  std::vector<int> feeding;
  for (int v : stage.feeding_outputs) feeding.push_back(segment.values[v]);
  p.put(feeding);
  p.put(int64_t{stage.first_layer}), p.put(int64_t{stage.layers});
  p.put(int64_t{ports.ids}), p.put(int64_t{ports.positions}), p.put(int64_t{ports.logits});
  p.put(std::string_view(device)), p.put(std::string_view(o.isa));
  p.put(int64_t{o.threads}), p.put(o.capacity), p.put(o.sequences), p.put(int64_t{o.check_weights});
  p.put(int64_t{o.goes_back}), p.put(int64_t{checks.own});
  p.put(std::string_view(checks.whole ? plan::print(*checks.whole) : ""));
  INVAR_TRY(Packet answer, transport.call(rank, Kind::open, p));
  s->has_memory_ = answer.number() != 0, s->has_fixed_states_ = answer.number() != 0;
  for (int v : answer.numbers()) s->mixed_.insert(v);
  s->kernels_ = answer.texts(), s->libraries_ = answer.texts();
  s->device_name_ = answer.text();
  if (!answer.ok()) return Error{Code::internal, transport.name_of(rank) + ": an answer that ends too soon"};
  return s;
}

RemoteStage::~RemoteStage() {
  // A worker that does not answer any more is of no interest now.
  (void)static_cast<bool>(transport_.call(rank_, Kind::close, message()));
}

Status RemoteStage::start_load() {
  return transport_.send(rank_, Kind::load, message());
}

Status RemoteStage::load() {
  INVAR_CHECK_OK(transport_.answer(rank_));
  return {};
}

Status RemoteStage::reserve(int64_t rows, int64_t tail_rows, int64_t capacity) {
  Packet p = message();
  p.put(rows), p.put(tail_rows), p.put(capacity);
  INVAR_TRY(Packet answer, transport_.call(rank_, Kind::reserve, p));
  bytes_ = static_cast<size_t>(answer.number());
  return {};
}

// Pages stay, which nothing reads before they are written again.
Status RemoteStage::forget(int64_t sequence, int64_t keep) {
  if (!has_fixed_states_) return {};
  Packet p = message();
  p.put(sequence), p.put(keep);
  INVAR_CHECK_OK(transport_.call(rank_, Kind::forget, p));
  return {};
}

Status RemoteStage::begin(const StagePass& pass) {
  pass_ = message(), inputs_.clear();
  pass_.put(std::span<const int>(pass.tokens));
  pass_.put(static_cast<int64_t>(pass.sequences.size()));
  for (const ops::Sequence& s : pass.sequences) pass_.put(int64_t{s.slot}), pass_.put(int64_t{s.past});
  pass_.put(int64_t{pass.tail});
  return {};
}

Status RemoteStage::hand_in(int v, const Handover& h) {
  inputs_[v] = &h;
  return {};
}

Status RemoteStage::run(const std::function<void()>&) {
  pass_.put(static_cast<int64_t>(inputs_.size()));
  for (const auto& [v, h] : inputs_) {
    pass_.put(int64_t{v});
    pass_.put(std::span<const std::byte>(h->memory.data(), h->bytes));
  }
  INVAR_TRY(results_, transport_.call(rank_, Kind::pass, pass_));
  outputs_.clear();
  for (int64_t i = 0, n = results_.number(); i < n && results_.ok(); ++i) {
    const int v = static_cast<int>(results_.number());
    outputs_[v] = results_.data();
  }
  if (!results_.ok())
    return Error{Code::failed, transport_.name_of(rank_) + " sent a result that ends too soon"};
  return {};
}

Status RemoteStage::hand_out(int v, Handover& h) {
  const auto found = outputs_.find(v);
  if (found == outputs_.end() || h.device)
    return Error{Code::failed, transport_.name_of(rank_) + " did not send what the next stage reads"};
  h.bytes = found->second.size();
  if (!h.elsewhere && h.memory.size() < h.bytes) {
    INVAR_TRY(h.memory, Allocation::make(h.bytes, "activations between stages"));
  }
  if (h.bytes) std::memcpy(h.data(), found->second.data(), h.bytes);
  return {};
}

Status RemoteStage::read_output(int v, size_t begin,
                                const std::function<void(std::span<const std::byte>)>& take) {
  take(std::span<const std::byte>(outputs_[v]).subspan(begin));
  return {};
}

Status RemoteStage::weights_unchanged() {
  INVAR_CHECK_OK(transport_.call(rank_, Kind::unchanged, message()));
  return {};
}

}  // namespace invar::run
