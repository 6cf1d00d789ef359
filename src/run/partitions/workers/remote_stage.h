// A stage in a worker process.
#pragma once

#include <map>
#include <set>

#include "run/partitions/local_stage.h"
#include "run/partitions/workers/transport.h"

namespace invar::run {

class RemoteStage final : public Stage {
 public:
  // What load() checks: the stage's own weights, or those of a whole plan; null: neither.
  struct Checks {
    bool own = true;
    const plan::Plan* whole = nullptr;
  };
  // Opens it in the worker `rank`, on that host's `device`. `id`: its number in the session.
  static Result<std::unique_ptr<RemoteStage>> open(Transport& transport, int rank, int id, plan::Stage stage,
                                                   const DecoderPorts& ports, const std::string& device,
                                                   const StageContext& context, const Checks& checks);
  ~RemoteStage() override;

  const std::string& lane() const override { return lane_; }
  std::shared_ptr<Device> device() const override { return nullptr; }
  bool has_memory() const override { return has_memory_; }
  bool has_fixed_states() const override { return has_fixed_states_; }
  bool has_leading_sequences(int v) const override { return !mixed_.contains(v); }
  std::vector<std::string> kernels() const override { return kernels_; }
  std::vector<std::string> libraries() const override { return libraries_; }
  const std::string& device_name() const { return device_name_; }

  Status start_load() override;
  Status load() override;
  Status reserve(int64_t rows, int64_t tail_rows, int64_t capacity) override;
  Status forget(int64_t sequence, int64_t keep) override;
  Status begin(const StagePass&) override;
  Status hand_in(int v, const Handover&) override;
  Status run(const std::function<void()>& overlapped) override;
  Status hand_out(int v, Handover&) override;
  Status read_output(int v, size_t begin,
                     const std::function<void(std::span<const std::byte>)>& take) override;
  size_t bytes() const override { return bytes_; }
  Status weights_unchanged() override;

 private:
  RemoteStage(Transport& transport, int rank, int id) : transport_(transport), rank_(rank), id_(id) {}
  Packet message() const;
  // Tells the worker which files hold the weights, and sends those that a compiler made.
  Status name_files(const plan::Plan&, const std::string& folder);

  Transport& transport_;
  const int rank_, id_;
  std::string lane_, device_name_;
  bool has_memory_ = true, has_fixed_states_ = false;
  std::set<int> mixed_;  // inputs of the decoder without sequences on the leading axis alone
  std::vector<std::string> kernels_, libraries_;
  size_t bytes_ = 0;

  Packet pass_;                                        // what run() sends
  std::map<int, const Handover*> inputs_;              // of the pass
  Packet results_;                                     // of the last pass
  std::map<int, std::span<const std::byte>> outputs_;  // in results_
};

}  // namespace invar::run
