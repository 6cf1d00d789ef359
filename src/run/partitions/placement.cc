// The places of a decoder's stages, see placement.h.
#include "run/partitions/placement.h"

#include <algorithm>
#include <climits>
#include <map>
#include <numeric>
#include <set>

#include "device/peers.h"

#ifndef __wasi__
#include "run/partitions/workers/remote_stage.h"
#endif

namespace invar::run {
namespace {

constexpr int kMostJoined = 8;  // ops::kMaxJoinedRanks

// The whole plan as its only stage.
plan::Stage only_stage(const plan::Plan& p, int hidden) {
  plan::Stage stage;
  if (hidden >= 0) stage.feeding_outputs.push_back(hidden);
  stage.segment.plan = p;
  stage.segment.values.resize(p.values.size());
  std::iota(stage.segment.values.begin(), stage.segment.values.end(), 0);
  return stage;
}

// Each device has a partition, or a rank of one, where no number is given.
int partitions_of(const Options& o, size_t devices) {
  if (o.partitions > 0) return o.partitions;
  return std::max(static_cast<int>(devices) / std::max(o.ranks, 1), 1);
}

// Whether other processes have stages.
#ifdef __wasi__  // which has one process
bool has_workers() {
  return false;
}
#else
bool has_workers() {
  return Transport::current() != nullptr;
}
#endif

Status check_partitions(const plan::Plan& p, const Options& o, size_t devices) {
  if (o.partitions < 0) return bad_input("partitions: " + std::to_string(o.partitions) + " is below 1");
  if (o.ranks < 1) return bad_input("tensor-parallel: " + std::to_string(o.ranks) + " is below 1");
  const int count = partitions_of(o, devices) * o.ranks;
  if (static_cast<size_t>(count) < devices)
    return bad_input(std::to_string(devices) + " devices are named for " +
                     std::to_string(partitions_of(o, devices)) + " partition" +
                     (count == o.ranks ? "" : "s") +
                     (o.ranks == 1 ? "" : " of " + std::to_string(o.ranks) + " ranks") +
                     ": name no more devices than " + (o.ranks == 1 ? "partitions" : "ranks"));
  if (count > 1 && p.operation_set == OperationSet::deterministic && has_workers())
    return not_covered(
        "workers: what a deterministic program computes may depend on each process's machine; use the "
        "operation set reproducible");
  if (count > 1 && o.observe)
    return not_covered(
        "the results of single operations are observed in one partition: leave partitions out");
  return {};
}

// Keeps the first stages of a lane in memory, as many as fit beside the largest of the others: that
// which runs, and on a GPU that which is loaded meanwhile.
Status limit_weights(std::span<LocalStage* const> stages, uint64_t limit) {
  std::vector<uint64_t> bytes;
  for (LocalStage* s : stages) {
    INVAR_TRY(const uint64_t mine, s->weight_bytes());
    bytes.push_back(mine);
  }
  std::vector<uint64_t> largest(bytes.size() + 1);  // of the stages from here on
  for (size_t s = bytes.size(); s-- > 0;) largest[s] = std::max(largest[s + 1], bytes[s]);
  const uint64_t total = std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
  if (total <= limit) return {};
  const uint64_t at_once = stages[0]->device() ? 2 : 1;
  if (at_once * largest[0] > limit)
    return bad_input("weights-memory: " + std::to_string(limit) + " bytes are less than the " +
                     std::to_string(at_once * largest[0]) + " that the largest layer needs" +
                     (at_once == 2 ? ", beside the one that is loaded meanwhile" : ""));
  size_t resident = 0;
  for (uint64_t used = 0; used + bytes[resident] + at_once * largest[resident + 1] <= limit; ++resident)
    used += bytes[resident];
  const auto streaming = std::make_shared<LocalStage::Streaming>();
  for (size_t s = resident; s < stages.size(); ++s)
    stages[s]->stream(stages[s + 1 < stages.size() ? s + 1 : resident], streaming);
  return {};
}

// Of each device what fits there.
Status limit_weights_of_lanes(std::span<LocalStage* const> stages, uint64_t limit) {
  std::map<std::string, std::vector<LocalStage*>> lanes;
  for (LocalStage* s : stages) lanes[s->lane()].push_back(s);
  for (const auto& [lane, of_lane] : lanes) INVAR_CHECK_OK(limit_weights(of_lane, limit));
  return {};
}

// "3" or "0-5": the layers of a partition, whose stages may have some of them each.
std::string layers_of(const std::vector<plan::Stage>& parts, int partition) {
  int first = INT_MAX, end = 0;
  for (const plan::Stage& s : parts)
    if (s.partition == partition)
      first = std::min(first, s.first_layer), end = std::max(end, s.first_layer + s.layers);
  return std::to_string(first) + (end == first + 1 ? "" : "-" + std::to_string(end - 1));
}

// Makes the stages: in this process, or with workers the first ones here and the others there.
struct Placing {
  const plan::Plan& whole;
  const std::vector<std::string>& names;
  const int count, ranks;  // partitions times ranks; ranks
  const DecoderPorts& ports;
  const StageContext& context;
  PlacedDecoder& placed;
  std::map<std::string, std::shared_ptr<Device>> devices{};
  bool on_host = false;
  std::vector<std::string> wheres{};  // per partition and rank
  std::set<int> checking{};           // processes, one stage of which checks whole weights

  // Describes the first stage of every rank of a partition.
  void describe(size_t s, const std::string& where, const std::string& device) {
    if (placed.devices.find(device) == std::string::npos)
      placed.devices += (placed.devices.empty() ? "" : ", ") + device;
    if (count == 1) return;
    const plan::Stage& part = placed.parts[s];
    const size_t known = static_cast<size_t>(part.partition * ranks + part.rank);
    wheres.resize(static_cast<size_t>(count));
    if (wheres[known].empty()) wheres[known] = where;
  }
  std::string placement() const {
    std::string text;
    for (int p = 0; p * ranks < count && count > 1; ++p) {
      text += (p ? "; " : "layers ") + layers_of(placed.parts, p) + " on ";
      for (int r = 0; r < ranks; ++r) text += (r ? " + " : "") + wheres[static_cast<size_t>(p * ranks + r)];
    }
    return text;
  }
  int place_of(size_t s) const {
    return count == 1 ? 0 : placed.parts[s].partition * ranks + placed.parts[s].rank;
  }
  size_t number_of(int place) const {  // in the list of devices
    return static_cast<size_t>(place) * names.size() / static_cast<size_t>(count);
  }
  const std::string& name_of(int place) const { return names[number_of(place)]; }
  Result<std::shared_ptr<Device>> device(const std::string& name) {
    auto known = devices.find(name);
    if (known == devices.end()) {
      INVAR_TRY(auto opened, Device::named(name));
      known = devices.emplace(name, std::move(opened)).first;
    }
    return known->second;
  }
  // Whether ranks can join within their steps: each is on a GPU of its own, and reaches the memory
  // of the others of its partition. Ranks on hosts can, too.
  Result<bool> can_join_in_step() {
    std::set<int> gpus;
    bool reached = true, on_hosts = true;
    for (int place = 0; place < count; ++place) {
      INVAR_TRY(const auto here, device(name_of(place)));
      on_hosts &= !here;
      if (!here) continue;
      gpus.insert(here->info().index);
      for (int other = place / ranks * ranks; other < place; ++other) {
        INVAR_TRY(const auto there, device(name_of(other)));
        reached = reached && there && reach_memory(*here, *there) && reach_memory(*there, *here);
      }
    }
    return on_hosts || (reached && gpus.size() == static_cast<size_t>(count) && ranks <= kMostJoined);
  }
  Result<LocalStage*> place_here(size_t s, const std::string& name) {
    INVAR_TRY(const auto own, device(name));
    const Device* const d = own.get();
    describe(s, name, d ? "cuda:" + std::to_string(d->info().index) + " " + d->info().name : "cpu");
    on_host |= !d, placed.device = own;
    INVAR_TRY(auto stage, LocalStage::prepare(placed.parts[s], ports, own, context));
    LocalStage* const made = stage.get();
    placed.stages.push_back(std::move(stage));
    return made;
  }
  // Workers have the stages after the first ones. False: this stage is in this process.
#ifdef __wasi__  // which has one process
  Result<bool> place_there(size_t, const std::string&) {
    return false;
  }
#else
  Result<bool> place_there(size_t s, const std::string& name) {
    Transport* const workers = count > 1 ? Transport::current() : nullptr;
    const int process = workers ? place_of(s) * workers->size() / count : 0;
    if (process == 0) return false;
    const plan::Plan* const checks = ranks > 1 && checking.insert(process).second ? &whole : nullptr;
    INVAR_TRY(auto stage, RemoteStage::open(*workers, process, static_cast<int>(s), placed.parts[s], ports,
                                            name, context, {ranks == 1, checks}));
    describe(s, name + " of " + workers->name_of(process), stage->device_name());
    on_host = true;
    placed.stages.push_back(std::move(stage));
    return true;
  }
#endif
  Result<std::vector<LocalStage*>> stages() {
    std::vector<LocalStage*> local;
    for (size_t s = 0; s < placed.parts.size(); ++s) {
      const std::string& name = name_of(place_of(s));
      INVAR_TRY(const bool there, place_there(s, name));
      if (there) continue;
      INVAR_TRY(LocalStage* const stage, place_here(s, name));
      local.push_back(stage);
    }
    if (on_host) placed.device = nullptr;
    placed.placement = placement();
    return local;
  }
};

}  // namespace

Result<std::vector<std::string>> device_list(const std::string& text) {
  std::vector<std::string> names;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    names.push_back(text.substr(begin, end - begin));
    if (names.back().empty() || names.back().find(' ') != std::string::npos)
      return bad_input("device '" + text + "': names, comma separated, such as cuda:0,cuda:1");
    begin = end + 1;
  }
  return names;
}

// The parts of a decoder for partitions and ranks.
static Result<std::vector<plan::Stage>> split(const plan::Plan& p, int partitions, const Options& o,
                                              Placing& placing) {
  const bool may_join = o.ranks > 1 && o.joins != Options::Joins::between_stages && !has_workers();
  if (may_join && (o.joins == Options::Joins::within_steps || o.device.find("cuda") != std::string::npos)) {
    INVAR_TRY(const bool can, placing.can_join_in_step());
    if (auto parts = plan::split(p, partitions, o.ranks, can); parts || !can) return parts;
  }
  return plan::split(p, partitions, o.ranks);
}

// The same with a stage for every layer, or several where ranks join, since each is loaded alone.
static Result<std::vector<plan::Stage>> split_layers(const plan::Plan& p, int partitions, const Options& o) {
  if (has_workers())
    return not_covered("weights-memory: a limit for the devices of one process: leave --workers out");
  INVAR_TRY(const int layers, plan::layer_count(p));
  INVAR_TRY(const std::vector<plan::Stage> cut, plan::split_by_layers(p, partitions));
  INVAR_TRY(std::vector<plan::Stage> parts, plan::split(p, layers, o.ranks));
  for (plan::Stage& part : parts)
    for (const plan::Stage& c : cut)
      if (part.first_layer >= c.first_layer) part.partition = c.partition;
  return parts;
}

// Ranks of one partition that join within their steps know of each other.
static void join(std::span<LocalStage* const> stages, const std::vector<plan::Stage>& parts, int ranks) {
  std::shared_ptr<RankJoins> joins;
  for (size_t s = 0; s < stages.size() && !parts[s].joins.empty(); ++s) {
    if (s % static_cast<size_t>(ranks) == 0)
      joins = std::make_shared<RankJoins>(ranks, static_cast<uint32_t>(parts[s].joins.size()),
                                          stages[s]->device() != nullptr);
    stages[s]->join_with(joins);
  }
}

// On a host every rank that joins within its steps has a lane of its own, since it waits for others
// there, and every place where the list names the host several times. Weights that are loaded for
// each pass have the pool's threads to themselves.
static void divide_host(std::span<LocalStage* const> stages, const std::vector<plan::Stage>& parts,
                        const Placing& placing) {
  const auto turn = std::make_shared<std::mutex>();
  const bool several =
      std::ranges::count(placing.names, "cpu") > 1 && !placing.context.options.weights_memory;
  for (size_t s = 0; s < stages.size(); ++s) {
    if (stages[s]->device()) continue;
    if (!parts[s].joins.empty())
      stages[s]->have_lane(std::to_string(parts[s].partition) + "." + std::to_string(parts[s].rank), turn);
    else if (several)
      stages[s]->have_lane(std::to_string(placing.number_of(placing.place_of(s))), turn);
  }
}

Result<PlacedDecoder> place(const plan::Plan& p, const DecoderPorts& ports, const StageContext& context) {
  const Options& o = context.options;
  INVAR_TRY(const std::vector<std::string> names, device_list(o.device));
  INVAR_CHECK_OK(check_partitions(p, o, names.size()));
  const int partitions = partitions_of(o, names.size()), count = partitions * o.ranks;
  PlacedDecoder placed;
  Placing placing{p, names, count, o.ranks, ports, context, placed};
  if (o.weights_memory > 0) {
    INVAR_TRY(placed.parts, split_layers(p, partitions, o));
  } else if (count == 1) {
    placed.parts.push_back(only_stage(p, o.hidden));
  } else {
    INVAR_TRY(placed.parts, split(p, partitions, o, placing));
  }

  INVAR_TRY(const std::vector<LocalStage*> local, placing.stages());
  join(local, placed.parts, o.ranks);
  divide_host(local, placed.parts, placing);
  for (size_t s = 0; s < local.size() && o.ranks > 1; ++s) local[s]->check_instead(s == 0 ? &p : nullptr);
  std::map<std::string, std::pair<std::shared_ptr<Allocation>, std::shared_ptr<UploadQueues>>> shared;
  std::vector<std::shared_ptr<Allocation>> arenas;
  for (size_t s = 0; s < local.size() && local.size() > 1; ++s) {
    auto& [arena, queues] = shared[local[s]->lane()];
    if (!arena) {
      arenas.push_back(arena = std::make_shared<Allocation>());
      queues = std::make_shared<UploadQueues>();
    }
    local[s]->share(arena, queues);
  }
  if (o.weights_memory > 0) {
    INVAR_CHECK_OK(limit_weights_of_lanes(local, o.weights_memory));
  }
  INVAR_TRY(placed.pipeline, Pipeline::make(std::move(placed.stages), placed.parts, ports, arenas));
  return placed;
}

}  // namespace invar::run
