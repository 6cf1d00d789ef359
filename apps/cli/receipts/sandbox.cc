#include "receipts/sandbox.h"

#include <filesystem>

#include "base/confinement/confinement.h"
#include "base/file/file.h"
#include "base/file/temporary_file.h"
#include "console.h"
#include "generate/cache/task_cache.h"
#include "hub/environment.h"
#include "progress/display.h"

namespace invar::cli {
namespace {

void say(const std::string& what) {
  if (display().verbose) Console(false).note("confined", what);
}

void confine_and_say(Confinement wanted) {
  if (const auto temporary = temporary_root()) wanted.writable.push_back(*temporary);
  const Confined made = confine(wanted);
  std::string what = made.files.empty() ? "writes into caches and temporary folders alone, starts no program"
                                        : "files are not: " + made.files;
  what += made.network.empty() ? "; no network" : "; the network is not: " + made.network;
  say(what);
}

}  // namespace

void confine_reader() {
  confine_and_say({});
}

void confine_reader(const generate::ModelOptions& model, const generate::ExecutionOptions& execution,
                    const std::string& output) {
  if (execution.device != "cpu" || !execution.workers.empty()) {
    return say("neither files nor network: a GPU or workers are used");
  }
  std::error_code none;
  const bool named = !model.model_name.empty() && !std::filesystem::exists(model.model_name, none);
  Confinement wanted{{generate::cache_folder(), output}, named && !model.offline};
  if (wanted.network) wanted.writable.push_back(hub::cache_folder());
  confine_and_say(std::move(wanted));
}

}  // namespace invar::cli
