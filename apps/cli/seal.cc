#include "seal.h"

#include <sys/utsname.h>

#include <algorithm>

namespace invar::cli {

receipt::Receipt describe(const Model& m, const plan::Plan& plan) {
  receipt::Receipt r;
  r.model_name = m.name;
  r.revision = m.revision;
  r.config = m.config;
  r.tokenizer = m.tokenizer_digest;
  r.chat_template = m.chat_template;
  for (const plan::Weight& w : plan.weights)
    r.tensors.push_back({w.name, std::string(name_of(w.dtype)), w.shape, w.sha256});
  std::sort(r.tensors.begin(), r.tensors.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  r.weights = plan::weights_digest(plan);
  r.program = plan::digest(plan);
  r.numerics = plan.numerics;
  r.operation_set = plan.operation_set;
  r.unicode = prompt::unicode_version();
  return r;
}

std::map<std::string, std::string> describe_execution(const run::Session& s, const std::string& model_path) {
  utsname host{};
  uname(&host);
  return {{"device", std::string(s.device())},
          {"isa", std::string(s.isa())},
          {"machine", host.machine},
          {"model_path", model_path},
          {"threads", std::to_string(s.threads())},
          {"version", INVAR_VERSION}};
}

}  // namespace invar::cli
