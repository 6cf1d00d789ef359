// Tables of positions (spec/decoder.md decoder.10).
#include "checkpoint/recipes/blocks/decoder_graph_builder.h"
#include "checkpoint/recipes/seq2seq/sinusoids.h"

namespace invar::checkpoint {

// The sum of x and of the rows of the positions.
std::string DecoderGraph::with_positions(const std::string& x) {
  const std::string table = prefix_ + d_.names.positions;
  std::string ids = "position_ids", rows;
  if (d_.sinusoidal_positions) {
    const int64_t first = d_.position_offset, count = d_.max_positions;
    rows = b_.node("Reshape", table + ".table",
                   {b_.constant("sinusoids", sinusoids_of_binary32(first, count, d_.hidden_size)),
                    b_.constant("sinusoids.shape", std::vector{count, d_.hidden_size})});
  } else {
    if (d_.position_offset != 0)
      ids = b_.node("Add", "position_ids.moved",
                    {ids, b_.constant("position_offset", std::vector{d_.position_offset})});
    rows = b_.weight(table + ".weight", {d_.max_positions + d_.position_offset, d_.hidden_size});
  }
  return b_.node("Add", table + ".added", {x, b_.node("Gather", table, {rows, ids}, {{"axis", int64_t{0}}})});
}

}  // namespace invar::checkpoint
