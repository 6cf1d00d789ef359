#include "seal.h"

#include <sys/utsname.h>

#include <algorithm>

#include "machine.h"

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
  r.operation_set = name_of(plan.operation_set);
  r.unicode = prompt::unicode_version();
  return r;
}

namespace {

std::string joined(const std::vector<std::string>& list) {
  std::string s;
  for (const std::string& one : list) s += (s.empty() ? "" : ", ") + one;
  return s.empty() ? "none" : s;
}

std::string machine() {
  utsname host{};
  uname(&host);
  return host.machine;
}

}  // namespace

std::map<std::string, std::string> describe_kind(const run::Session& s) {
  return {{"isa", std::string(s.isa())},
          {"kernels", joined(s.kernels())},
          {"libraries", joined(s.libraries())},
          {"machine", machine()},
          {"processor", s.gpu() ? describe(*s.gpu()) : exact_processor()},
          {"version", INVAR_VERSION}};
}

std::map<std::string, std::string> describe_execution(const run::Session& s, const std::string& model_path,
                                                      OperationSet set, const ExecutionOptions& o) {
  std::map<std::string, std::string> fields = {{"device", std::string(s.device())},
                                               {"isa", std::string(s.isa())},
                                               {"machine", machine()},
                                               {"threads", std::to_string(s.threads())},
                                               {"version", INVAR_VERSION}};
  if (!model_path.empty()) fields["model_path"] = model_path;
  if (set == OperationSet::reproducible) return fields;
  fields.merge(describe_kind(s));
  fields["kv_cache"] = o.no_kv_cache ? "no" : "yes";
  fields["prefill_chunk"] = std::to_string(s.chunk());
  return fields;
}

}  // namespace invar::cli
