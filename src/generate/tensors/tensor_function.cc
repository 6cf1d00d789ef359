#include "generate/tensors/tensor_function.h"

#include "base/endian.h"
#include "generate/engine/execution.h"
#include "plan/program_text.h"
#include "receipt/seal.h"

namespace invar::generate {

Result<LoadedFunction> open_function(const plan::Plan& plan, const std::string& folder,
                                     const ExecutionOptions& o, const DigestCache* hashed) {
  if (o.partitions > 1 || o.tensor_parallel > 1 || o.weights_memory)
    return not_covered(
        "partitions, ranks and weights-memory are for decoders: a function of tensors is in one part");
  run::Options options = run_options(o);
  options.hashed = hashed;
  INVAR_TRY(std::shared_ptr<Device> device, Device::named(options.device));
  INVAR_TRY(run::Function function, run::Function::open(plan, folder, options));
  return LoadedFunction{std::move(device), std::move(function)};
}

std::vector<receipt::TensorDigest> digests_of(const run::Function::NamedTensors& tensors) {
  std::vector<receipt::TensorDigest> digests;
  for (const auto& [name, t] : tensors) {
    std::string bytes(t.bytes.size(), '\0');
    copy_little_endian(bytes.data(), t.bytes.data(), bytes.size(), size_of(t.dtype));
    digests.push_back({name, std::string(name_of(t.dtype)), t.shape, sha256(bytes)});
  }
  return digests;
}

Result<receipt::Receipt> describe_program(const plan::Plan& plan, const std::string& model_name) {
  if (plan.source && plan.source->recipe != plan::kGraphRecipe)
    return bad_input("the plan says that it is the program of a checkpoint (" + plan.source->recipe +
                     "), and a receipt of tensors binds that of a graph: compile with --stateless");
  receipt::ModelIdentity identity{};
  identity.name = model_name;
  return receipt::describe(identity, plan, receipt::kTensorFormat);
}

}  // namespace invar::generate
