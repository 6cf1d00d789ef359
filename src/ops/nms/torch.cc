// Spells non-maximum suppression in torch: a helper in torch.py.
#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

Result<std::string> nms(const TorchCall& c) {
  return cat("rooms.nms.nms(", python::join(c.from(0)), ", k=", torch_text(c.type.shape[2]),
             c.i("center_point_box") ? ", centred=True" : "", ")");
}

}  // namespace

void spell_nms(TorchSpellings& spellings) {
  spellings.add("nms", nms);
}

}  // namespace invar::compiler
