// The model that a receipt is checked against where nothing can be searched, downloaded or
// compiled: the folder that a person gave, with the plan in it. Compiled for WebAssembly alone, in
// the place of find_receipt_model.cc and cache/task_cache.cc.
#ifdef __wasi__
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>

#include "base/file/file.h"
#include "base/file/listing.h"
#include "base/text/size_text.h"
#include "generate/cache/task_cache.h"
#include "generate/engine/execution.h"
#include "generate/model/find_receipt_model.h"
#include "plan/outline.h"
#include "plan/stages.h"
#include "plan/weight_provenance.h"
#include "run/weights_needed.h"

namespace invar::generate {
namespace {

constexpr uint64_t kAddressed = uint64_t{4} << 30;  // bytes that a module can address
constexpr uint64_t kProgram = uint64_t{160} << 20;  // itself, the tokenizer, texts, and what no block fills
constexpr int64_t kPositionsPerStep = 256;          // of a prompt

constexpr char kCompile[] =
    "`invar run --model-name FOLDER --prompt-text x --max-new-tokens 1 --task-dir PLAN` makes it in the "
    "folder PLAN: give that folder, too";

// Lines of `verifier outline` of plans that whoever made the page compiled.
constexpr char kKnownPlans[] = "/known-plans";

// The origin of a plan that somebody gave.
struct Origin {
  std::string text;
  bool known = false;
};
// Code failed: its program's plan is known, and is another one.
Result<Origin> origin_of(const plan::Plan& plan, const std::string& name) {
  const std::string given =
      "as it was given, this page did not compile it: trust it if you made it with `invar` yourself";
  if (!plan.source) return Origin{given};
  const auto known = read_file(kKnownPlans);
  const std::string program = to_hex(plan.source->program) + " ";
  const size_t at = known ? known->find(program) : std::string::npos;
  if (at == std::string::npos) return Origin{given};
  INVAR_TRY(const Digest outline, plan::outline(plan));
  if (known->substr(at + program.size(), 64) == to_hex(outline))
    return Origin{"the one that invar " INVAR_VERSION " compiles from this program", true};
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

struct Needs {
  uint64_t weights = 0, states = 0, activations = 0;  // bytes
  uint64_t all() const { return weights + states + activations + kProgram; }
};

// The memory that the computation of so many positions takes. A program whose steps remember
// nothing loads its weights part by part: for it, what they take in their files counts.
Result<Needs> needs_of(const plan::Plan& plan, const std::string& folder, int64_t positions) {
  Needs n;
  std::map<std::string, int64_t> sizes;
  for (const DimExpr& symbol : plan.symbols)
    if (const std::string* name = symbol.as_symbol())
      sizes[*name] = *name == "batch" ? 1 : std::min(positions, kPositionsPerStep);
  INVAR_TRY(const plan::Footprint footprint, plan::footprint(plan, sizes));
  n.weights = static_cast<uint64_t>(footprint.weights);
  n.activations = static_cast<uint64_t>(footprint.buffers);
  auto parts = plan::split_by_layers(plan, 1);
  if (!parts) return n;
  INVAR_CHECK_OK(run::measure_states(*parts));
  const plan::StageCost& cost = parts->front().cost;
  n.states = cost.fixed_state + cost.state * static_cast<uint64_t>(positions);
  INVAR_TRY(n.weights, run::weights_needed(plan, folder));
  return n;
}

// Before anything of the weights is read.
Status check_size(const plan::Plan& plan, const std::string& folder, int64_t positions) {
  INVAR_TRY(const Needs n, needs_of(plan, folder, positions));
  if (n.all() <= kAddressed) return {};
  return not_covered("the model is too large for a page: it needs " + size_text(n.all()) + " of memory (" +
                     size_text(n.weights) + " for weights, " + size_text(n.states) +
                     " for keys and values of " + std::to_string(positions) + " positions, " +
                     size_text(n.activations + kProgram) + " for the rest), and WebAssembly addresses " +
                     size_text(kAddressed) + ": use `invar verify`");
}

std::string folder_of_plan(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

// The plan that was given, if it can be used with the files that were given.
Result<plan::Plan> usable_plan(const std::string& path) {
  if (!exists(path))
    return bad_input(std::string("plan.invar is missing, the compiled model: a page has no compiler; ") +
                     kCompile);
  INVAR_TRY(plan::Plan plan, plan::load(path));
  for (const plan::Weight& w : plan.weights)
    if (!exists(folder_of_plan(path) + "/" + w.file))
      return bad_input(w.file + " is missing, which holds the weight " + w.name +
                       (w.file.ends_with(".constants") ? std::string(": ") + kCompile : ""));
  return plan;
}

}  // namespace

Result<FoundModel> find_model(const ModelOptions& wanted, const receipt::Receipt& claimed, Observer&) {
  const std::string& folder = wanted.model_name;
  if (folder.empty())
    return bad_input("no model is given: give the folder of the checkpoint, with config.json in it");
  INVAR_TRY(const plan::Plan plan, usable_plan(wanted.plan));
  const size_t positions = claimed.continued().size() + claimed.tokens.size();
  INVAR_CHECK_OK(check_size(plan, folder_of_plan(wanted.plan), static_cast<int64_t>(positions)));
  return FoundModel{{std::filesystem::path(folder).filename().string(), "", folder}, "given here"};
}

Result<std::string> find_adapter(const ModelOptions&, const receipt::Receipt& claimed) {
  if (claimed.adapter == Digest{}) return std::string();
  return not_covered("the receipt's model has an adapter, which a page does not open: use `invar verify`");
}

NameCheck check_name(const ModelLocation&, const receipt::Receipt& claimed) {
  return {{},
          "\"" + claimed.model_name + "\"" +
              (claimed.revision.empty() ? "" : ", revision " + claimed.revision) +
              " in the receipt: not checked"};
}

Result<CompiledModel> prepare_prediction_head(const ModelLocation&, Profile, Observer&) {
  return not_covered("a page has no compiler, which makes the head for several tokens");
}

Result<CompiledModel> prepare(const ModelLocation&, const ModelOptions& options, Observer& observer,
                              CachePolicy, const TensorDigests*) {
  INVAR_TRY(plan::Plan plan, usable_plan(options.plan));
  INVAR_CHECK_OK(plan::check_weight_provenance(plan, options.plan));
  const std::string folder = folder_of_plan(options.plan);
  INVAR_TRY(const Origin origin, origin_of(plan, std::filesystem::path(options.plan).filename().string()));
  observer.note("plan", origin.text);
  if (plan.source) {
    INVAR_CHECK_OK(hash_tensors(plan, folder, observer));
  }
  CompiledModel model{std::move(plan), folder};
  model.given = !origin.known;
  return model;
}

run::Options session_options(const ExecutionOptions& o, int64_t capacity, int64_t sequences) {
  run::Options options;
  options.threads = 1;
  options.capacity = capacity, options.sequences = sequences;
  options.chunk = o.prefill_chunk;
  options.use_cache = !o.no_kv_cache;
  return options;
}

std::future<void> start(const ExecutionOptions&) {
  return {};
}

void report_threads(int, const ExecutionOptions&, Observer&) {}

std::map<std::string, std::string> describe_kind(const run::Session& s) {
  return {{"isa", std::string(s.isa())}, {"machine", "wasm32"}, {"processor", "a browser"}};
}

}  // namespace invar::generate
#endif
