// The same on a GPU: calls recorded as a graph that goes through as many copies of the operands as
// no cache holds, timed by the device's events.
#include <algorithm>
#include <optional>

#include "bench/peak/peak_device.h"
#include "bench/subject.h"
#include "bench/timing.h"

namespace invar::bench {
namespace {

constexpr int64_t kOutOfCache = int64_t{1} << 30, kMostCopies = 64, kMostCalls = 2048;

class Copies {
 public:
  static Result<Copies> make(const Item& item, const ops::GpuKernel& kernel,
                             const std::shared_ptr<Device>& device) {
    Copies c;
    c.device_ = device;
    INVAR_TRY(Subject first, Subject::make(item, &kernel, 1, device));
    const int64_t one = std::max<int64_t>(first.working_set(), 1);
    c.subjects_.push_back(std::move(first));
    for (int64_t i = 1; i < std::min(kMostCopies, (kOutOfCache + one - 1) / one); ++i) {
      INVAR_TRY(Subject more, Subject::make(item, &kernel, 1, device));
      c.subjects_.push_back(std::move(more));
    }
    return c;
  }
  const Subject& first() const { return subjects_.front(); }
  int count() const { return static_cast<int>(subjects_.size()); }
  // Seconds per call, after a graph that is not counted.
  Result<double> time(int64_t calls) {
    if (calls != calls_) {
      INVAR_CHECK_OK(device_->begin_capture());
      for (int64_t i = 0; i < calls; ++i)
        subjects_[static_cast<size_t>(i) % subjects_.size()].queue(device_->stream());
      INVAR_TRY(graph_, device_->end_capture());
      calls_ = calls;
    }
    INVAR_CHECK_OK(device_->replay(*graph_));
    INVAR_TRY(const double seconds, device_->time(*graph_));
    return seconds / static_cast<double>(calls);
  }

 private:
  std::shared_ptr<Device> device_;
  std::vector<Subject> subjects_;
  std::unique_ptr<Device::Graph> graph_;
  int64_t calls_ = 0;
};

Result<Row> measure_one(const Item& item, const std::shared_ptr<Device>& device, const DevicePeaks& peaks,
                        Peer* peer, double seconds) {
  const ops::GpuKernel* kernel = ops::find_gpu_kernel(item.op);
  if (!kernel) return not_covered(item.op + " has no kernel for a GPU");
  Row row = row_of(item, kernel->isa);
  INVAR_TRY(Copies copies, Copies::make(item, *kernel, device));
  row.bytes = static_cast<double>(copies.first().working_set());
  if (peer) {
    INVAR_TRY(row.peer, peer->prepare(item, 1, copies.count()));
  }
  INVAR_CHECK_OK(take_turns(
      row, [&](int64_t calls) { return copies.time(calls); }, row.peer.empty() ? nullptr : peer, seconds,
      kMostCalls, std::chrono::milliseconds(0)));
  const Bytes bytes(copies.first());
  bound(row, bytes, peaks.flops, peaks.copied, bytes.kind == Traffic::read ? peaks.read : peaks.copied);
  return row;
}

}  // namespace

Status measure_on_device(const Settings& s, const std::vector<Item>& items, Report& report,
                         const Progress& progress, const Keep& keep) {
  INVAR_TRY(const auto device, Device::named(s.device));
  if (!s.threads.empty() || !s.isas.empty())
    return bad_input("--threads and --isa are a CPU's: leave them out with --device " + s.device);
  const std::string name = s.device + " " + device->info().name;
  if (items.empty()) return report.begin(name, report.peer);
  std::optional<Peer> peer;
  if (!s.peer.empty()) {
    INVAR_TRY(Peer started, Peer::start(s.peer, s.python, source_root(), device->info().index));
    peer.emplace(std::move(started));
  }
  INVAR_CHECK_OK(report.begin(name, peer ? peer->version() : ""));
  device->make_current();
  progress(0, items.size(), "the device's peaks");
  INVAR_TRY(const DevicePeaks peaks, device_peaks(*device));
  report.limits = {{std::string(ops::kCuda), 0, peaks.flops, peaks.read, peaks.copied}};
  size_t done = 0;
  for (const Item& item : items) {
    progress(done++, items.size(), item.op + " " + item.shape());
    if (report.has(row_of(item, ops::kCuda))) continue;
    INVAR_TRY(Row row, measure_one(item, device, peaks, peer ? &*peer : nullptr, s.seconds));
    report.rows.push_back(std::move(row));
    INVAR_CHECK_OK(keep(report));
  }
  return {};
}

}  // namespace invar::bench
