// Hunyuan with experts beside an MLP for all tokens.
#include "checkpoint/families/experts/read_experts.h"

namespace invar::checkpoint {

void describe_hunyuan_dense(ConfigReader&, Decoder&);

void describe_hunyuan_moe(ConfigReader& r, Decoder& d) {
  describe_hunyuan_dense(r, d);
  for (const char* key : {"num_experts", "moe_topk"})
    if (const auto* v = r.find(key); v && v->is_array())
      return r.refuse(onnx::quote(key) + " with a number for each layer is not covered");
  read_experts(r, d, {"num_experts", "moe_topk", nullptr, 1, 1});
  d.experts.names.router = "mlp.gate.wg";
  d.experts.names.shared = "mlp.shared_mlp.";
  d.experts.shared_intermediate_size = d.intermediate_size;
  d.experts.normalized = true;
}

}  // namespace invar::checkpoint
