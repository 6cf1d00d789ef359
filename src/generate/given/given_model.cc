// Which model a receipt is checked against where nothing can be searched, downloaded or compiled:
// the folder that a person gave, with the plan in it.
// Compiled for WebAssembly alone, in the place of model/find_model.cc and cache/task_cache.cc.
#ifdef __wasi__
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/file/file.h"
#include "base/file/listing.h"
#include "base/text/size_text.h"
#include "generate/execution.h"
#include "generate/model/find_model.h"
#include "generate/task_cache.h"
#include "plan/outline.h"

namespace invar::generate {
namespace {

// What a module can address, less what is not weights.
constexpr uint64_t kMostWeights = (uint64_t{4} << 30) - (uint64_t{512} << 20);

constexpr char kCompile[] =
    "`invar run --model-name FOLDER --prompt-text x --max-new-tokens 1 --task-dir PLAN` makes it in the "
    "folder PLAN: give that folder, too";

// Lines of `verifier outline` of plans that whoever made the page compiled.
constexpr char kKnownPlans[] = "/known-plans";

// What is known of a plan that somebody gave. Code failed: its program's plan is known, and is
// another one.
Result<std::string> origin_of(const plan::Plan& plan, const std::string& name) {
  const std::string given =
      "as it was given, this page did not compile it: trust it if you made it with `invar` yourself";
  if (!plan.source) return std::string(given);
  const auto known = read_file(kKnownPlans);
  const std::string program = to_hex(plan.source->program) + " ";
  const size_t at = known ? known->find(program) : std::string::npos;
  if (at == std::string::npos) return given;
  INVAR_TRY(const Digest outline, plan::outline(plan));
  if (known->substr(at + program.size(), 64) == to_hex(outline))
    return std::string("the one that invar " INVAR_VERSION " compiles from this program");
  return Error{Code::failed, name +
                                 ": it is not the plan that invar " INVAR_VERSION
                                 " compiles from this program: it was changed, or another version made it"};
}

// The SHA-256 of a part of a file, which is read piece by piece.
Result<Digest> digest_of(const std::string& path, uint64_t offset, uint64_t length) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  std::string piece(size_t{1} << 20, '\0');
  Sha256 hash;
  bool good = file && ::fseeko(file.get(), static_cast<off_t>(offset), SEEK_SET) == 0;
  while (good && length > 0) {
    const size_t n = std::fread(piece.data(), 1, std::min<uint64_t>(piece.size(), length), file.get());
    hash.update(piece.data(), n);
    length -= n, good = n > 0;
  }
  if (!good) return bad_input("cannot read '" + path + "': it is shorter than the plan says, or was changed");
  return hash.finish();
}

// A plan says which bytes the tensors of its program have; here they are those of the files.
Status hash_tensors(plan::Plan& plan, const std::string& folder, Observer& observer) {
  const auto phase = observer.phase("hash");
  for (plan::Weight& tensor : plan.source->tensors)
    for (const plan::Weight& w : plan.weights) {
      if (w.name != tensor.name || w.dtype != tensor.dtype || w.shape != tensor.shape) continue;
      INVAR_TRY(tensor.sha256, digest_of(folder + "/" + w.file, w.offset, w.length));
      break;
    }
  return {};
}

// Weights are in memory twice: as they are stored, and as the kernels read them.
Status check_size(const plan::Plan& plan) {
  uint64_t bytes = 0;
  for (const plan::Weight& w : plan.weights) bytes += w.length;
  if (2 * bytes <= kMostWeights) return {};
  return not_covered("the model is too large for a page: its weights need 2 x " + size_text(bytes) +
                     " of memory, and WebAssembly addresses 4 GiB: use `invar verify`");
}

}  // namespace

Result<FoundModel> find_model(const ModelOptions& wanted, const receipt::Receipt&, Observer&) {
  const std::string& folder = wanted.model_name;
  if (folder.empty())
    return bad_input("no model is given: give the folder of the checkpoint, with config.json in it");
  return FoundModel{{std::filesystem::path(folder).filename().string(), "", folder}, "given here"};
}

NameCheck check_name(const ModelLocation&, const receipt::Receipt& claimed) {
  return {{},
          "\"" + claimed.model_name + "\"" +
              (claimed.revision.empty() ? "" : ", revision " + claimed.revision) +
              " in the receipt: not checked"};
}

Result<CompiledModel> prepare(const ModelLocation&, const ModelOptions& options, Observer& observer,
                              CachePolicy) {
  if (!exists(options.plan))
    return bad_input(std::string("plan.invar is missing, the compiled model: a page has no compiler; ") +
                     kCompile);
  INVAR_TRY(plan::Plan plan, plan::load(options.plan));
  const std::string folder = std::filesystem::path(options.plan).parent_path().string();
  for (const plan::Weight& w : plan.weights)
    if (!exists(folder + "/" + w.file))
      return bad_input(w.file + " is missing, which holds the weight " + w.name +
                       (w.file.ends_with(".constants") ? std::string(": ") + kCompile : ""));
  INVAR_CHECK_OK(plan::check_tensors(plan));
  INVAR_CHECK_OK(check_size(plan));
  INVAR_TRY(const std::string origin,
            origin_of(plan, std::filesystem::path(options.plan).filename().string()));
  observer.note("plan", origin);
  if (plan.source) {
    INVAR_CHECK_OK(hash_tensors(plan, folder, observer));
  }
  return CompiledModel{std::move(plan), folder};
}

run::Options session_options(const ExecutionOptions& o, int64_t capacity, int64_t sequences) {
  run::Options options;
  options.threads = 1;
  options.capacity = capacity, options.sequences = sequences;
  options.chunk = o.prefill_chunk;
  options.use_cache = !o.no_kv_cache;
  return options;
}

void report_threads(int, const ExecutionOptions&, Observer&) {}

std::map<std::string, std::string> describe_kind(const run::Session& s) {
  return {{"isa", std::string(s.isa())}, {"machine", "wasm32"}, {"processor", "a browser"}};
}

}  // namespace invar::generate
#endif
