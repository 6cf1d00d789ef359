#include "conformance/machine.h"

#include <sys/utsname.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "base/opset.h"
#include "base/thread_pool.h"
#include "device/machine.h"
#include "kernels/vendor/vendor_kernel.h"
#include "num/env.h"

namespace invar::conformance {

Result<MachineReport> examine_machine(const MachineOptions& c) {
  const auto start = std::chrono::steady_clock::now();
  MachineReport r;
  utsname host{};
  uname(&host);
  r.machine = host.machine;
  r.cpu = processor();
  r.cores = available_cores();
  r.environment_was_good = c.environment_was_good;
  std::set<std::string> missing;
  for (const OpInfo& info : opset())
    for (const ops::KernelRef k : ops::runnable_kernels(info.op, bool(gpu()))) r.rows.push_back(k);
  for (const ops::CpuKernel* k : ops::cpu_kernels())
    if (!ops::find_cpu_kernel(k->op, k->isa)) missing.emplace(k->isa);
  if (!gpu() && !ops::gpu_kernels().empty()) missing.emplace(ops::kCuda);
  r.missing.assign(missing.begin(), missing.end());
  for (std::string_view i : ops::isas()) r.isas.emplace_back(i);
  if (const auto device = gpu()) {
    r.gpu = describe((*device)->info()), r.has_gpu = true;
    r.isas.insert(r.isas.end() - 1, std::string(ops::kCuda));
  } else {
    r.gpu = "none: " + device.error().message;
  }
  std::vector<Room> rooms;
  for (const OpInfo& info : opset()) {
    INVAR_TRY(Room room, read_room(info, c.rooms));
    rooms.push_back(std::move(room));
  }
  Pool pool(c.threads ? c.threads : std::min(r.cores, 64), [](const std::function<void()>& work) {
    const num::ArithmeticEnv env;
    work();
  });
  do {
    r.examination.add(examine(r.rows, rooms, pool, c.progress));
    r.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  } while (r.seconds < c.soak);
  // After the examination: loading one runs its code.
  std::set<std::string> libraries;
  for (const ops::VendorRow* row : ops::vendor_rows())
    if (const std::string& version = row->library->version(); !version.empty())
      libraries.insert(std::string(row->library->name) + " " + version);
  r.libraries.assign(libraries.begin(), libraries.end());
  return r;
}

}  // namespace invar::conformance
