#include "doctor/evidence.h"

#include <map>

#include "base/hash/sha256.h"
#include "base/opset.h"
#include "base/text/json.h"
#include "conformance/rooms.h"
#include "plan/plan.h"
#include "receipt/seal.h"

namespace invar::cli {
namespace {

using json::Value;

constexpr std::string_view kSignedEvidence = "invar-evidence-signature 1\n";

// The digests of the known answers by room: vectors.txt and golden.txt, one after the other.
std::map<std::string_view, std::string> answers_by_room() {
  std::map<std::string_view, std::string> answers;
  for (const conformance::RoomText& room : conformance::embedded_rooms())
    answers[room.room] = to_hex(sha256(std::string(room.vectors) + std::string(room.golden)));
  return answers;
}

// Operation -> the digest of its answers, and for each instruction set [checks, wrong].
Value kernels_of(const conformance::MachineReport& report) {
  const auto answers = answers_by_room();
  Value kernels = Value::object;
  for (const ops::KernelRef k : report.rows) {
    const std::string op(k.op());
    if (const OpInfo* info = op_info(op)) kernels[op]["answers"] = answers.at(info->room);
    kernels[op]["isas"][std::string(k.isa())] =
        json::list({report.examination.checks.at(k), report.examination.wrong(k)});
  }
  return kernels;
}

// What was asked, as one digest: equal questions have equal receipts on every machine.
Value model_of(const receipt::Receipt& r) {
  const auto isa = r.execution.find("isa"), device = r.execution.find("device");
  return {{"name", r.model_name},
          {"weights", to_hex(r.weights)},
          {"program", to_hex(r.program)},
          {"numerics", r.numerics},
          {"profile", r.profile},
          {"prompt", to_hex(sha256(r.prompt))},
          {"seed", std::to_string(r.sampling.seed)},
          {"tokens", r.tokens.size()},
          {"device", device == r.execution.end() ? "" : device->second},
          {"isa", isa == r.execution.end() ? "" : isa->second},
          {"receipt", to_hex(receipt::receipt_hash(r))}};
}

}  // namespace

Result<std::string> evidence_text(const conformance::MachineReport& report,
                                  const std::vector<receipt::Receipt>& receipts,
                                  const std::vector<signature::PrivateKey>& keys) {
  Value models = Value::array;
  for (const receipt::Receipt& r : receipts) models.add(model_of(r));
  Value evidence = json::sorted(Value{{"schema", "invar-evidence 1"},
                                      {"version", INVAR_VERSION},
                                      {"numerics", plan::kNumerics},
                                      {"compiler", conformance::kCompiler},
                                      {"machine", report.machine},
                                      {"processor", report.cpu},
                                      {"cores", report.cores},
                                      {"gpu", report.has_gpu ? Value(report.gpu) : Value()},
                                      {"isas", report.isas},
                                      {"kernels", kernels_of(report)},
                                      {"models", std::move(models)}});
  const std::string hash = to_hex(sha256(json::dump(evidence)));
  evidence["hash"] = hash;
  Value signatures = Value::array;
  for (const signature::PrivateKey& key : keys) {
    INVAR_TRY(const signature::Signature made, signature::sign(key, std::string(kSignedEvidence) + hash));
    signatures.add({{"key", to_hex(key.public_key)}, {"signature", signature::to_hex(made)}});
  }
  if (!keys.empty()) evidence["signatures"] = std::move(signatures);
  return json::dump(evidence, {.indent = 1}) + "\n";
}

}  // namespace invar::cli
