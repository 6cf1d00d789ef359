// Spells random numbers of the counter-based generator in torch: helpers in torch.py.
#include "compiler/room_api.h"

namespace invar::compiler {

void spell_random(TorchSpellings& spellings) {
  spellings.add("random_bits", "rooms.random.bits({0}, {1}, {shape})");
  spellings.add("random_uniform", "rooms.random.uniform({0}, {1}, {shape})");
  spellings.add("random_dropout", "rooms.random.dropout({0}, {1}, {2}, ratio={ratio})");
}

}  // namespace invar::compiler
