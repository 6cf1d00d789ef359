// The rows of a part: an expert of many tokens computes those that have chosen it. They are
// gathered before its first node and spread behind its last one, where readers of the whole expect
// them.
#include <algorithm>
#include <cstring>

#include "run/execute/cpu_executor.h"

namespace invar::run {

static int64_t bytes_of_row(const ops::View& v) {
  return static_cast<int64_t>(bytes_of(v)) / v.dim[0];
}

// Whether each row of what the node makes follows from the same row of its operands that have rows.
bool CpuExecutor::add_node_of_part(size_t n, RowsOfPart& part) {
  const Executable& e = *executable_;
  const plan::Node& node = *e.nodes[n].node;
  const auto& tokens = e.plan->values[parts_[n].by].shape[0];
  uint64_t rows = 0;
  for (size_t i = 0; i < node.in.size(); ++i) {
    const int v = node.in[i].index;
    if (nodes_[n].in[i].pitch || i >= 64) return false;
    if (node.in[i].kind != plan::Operand::value || e.values[v].is_constant) continue;
    const auto& shape = e.plan->values[v].shape;
    if (is_made_in(part, v)) {
      rows |= uint64_t{1} << i;
    } else if (!shape.empty() && shape[0] == tokens) {
      if (nodes_[n].is_view) return false;
      rows |= uint64_t{1} << i;
      if (std::ranges::find(part.sources, v) == part.sources.end()) part.sources.push_back(v);
    }
  }
  for (size_t i = 0; i < node.out.size(); ++i) {
    const ops::View& out = nodes_[n].out[i];
    if (!out.rank || out.dim[0] != part.tokens || out.pitch) return false;
    if (last_reader_[node.out[i]] < part.end) continue;
    if (part.result >= 0) return false;
    part.result = node.out[i];
  }
  row_operands_[n] = rows;
  const auto independent = e.nodes[n].contract->batch_independent;
  return rows && independent && independent(nodes_[n].call, rows);
}

Status CpuExecutor::find_rows_of_parts() {
  const Executable& e = *executable_;
  rows_of_parts_.clear();
  std::ranges::fill(rows_of_part_, -1);
  size_t bytes = 0;
  for (size_t n = 0, end; n < nodes_.size(); n = end) {
    end = n + 1;
    const ChosenPart& chosen = parts_[n];
    if (chosen.by < 0) continue;
    while (end < nodes_.size() && (parts_[end] == chosen || e.nodes[end].is_constant)) ++end;
    const ops::View& by = values_[chosen.by];
    RowsOfPart part{n, end, by.rank ? by.dim[0] : 0};
    bool apart = part.tokens > 1 && chosen.behind <= n;
    for (size_t m = n; apart && m < end; ++m)
      if (parts_[m].by >= 0) apart = add_node_of_part(m, part);
    if (!apart || part.result < 0) continue;
    for (size_t m = n; m < end; ++m)
      if (parts_[m].by >= 0) rows_of_part_[m] = static_cast<int>(rows_of_parts_.size());
    size_t of_sources = 0;
    for (const int v : part.sources) of_sources += Allocation::round_up(bytes_of(values_[v]));
    bytes = std::max(bytes, of_sources);
    rows_of_parts_.push_back(std::move(part));
  }
  if (gathered_.size() < bytes) {
    INVAR_TRY(gathered_, Allocation::make(bytes, "rows of parts"));
  }
  return {};
}

// False: the memory of the workers was made for other shapes and is too small.
bool CpuExecutor::bind_rows(const RowsOfPart& part, int64_t count) {
  const Executable& e = *executable_;
  for (size_t n = part.begin; n < part.end; ++n) {
    if (parts_[n].by < 0) continue;
    BoundNode& node = nodes_[n];
    for (size_t i = 0; i < node.in.size(); ++i) {
      if (!(row_operands_[n] >> i & 1)) continue;
      node.in[i].dim[0] = count;
      std::byte* at = gathered_.data();
      for (const int v : part.sources) {
        if (v == e.nodes[n].node->in[i].index) node.in[i].data = count < part.tokens ? at : values_[v].data;
        at += Allocation::round_up(bytes_of(values_[v]));
      }
    }
    for (ops::View& out : node.out) out.dim[0] = count;
  }
  bool fits = true;
  for (size_t n = part.begin; n < part.end; n = e.group_end(n)) {
    if (parts_[n].by < 0 || nodes_[n].is_view) continue;
    BoundNode& node = nodes_[n];
    const ops::CpuKernel& k = *e.nodes[n].kernel.cpu;
    for (int phase = 0; phase < k.phases; ++phase)
      node.units[phase] = std::max<int64_t>(k.units(node.call, phase), 0);
    if (e.nodes[n].on_rows) append_steps(n);
    fits &= (!k.scratch_bytes || k.scratch_bytes(node.call) <= scratch_[0].size()) &&
            (!k.shared_bytes || k.shared_bytes(node.call) <= node.shared_bytes);
  }
  return fits;
}

void CpuExecutor::begin_part(int number) {
  const RowsOfPart& part = rows_of_parts_[number];
  const ChosenPart& chosen = parts_[part.begin];
  find_rows(chosen, values_[chosen.by], chosen_rows_);
  auto count = static_cast<int64_t>(chosen_rows_.size());
  if (observe_ || count == 0) count = part.tokens;  // an observer sees all rows
  if (!bind_rows(part, count)) bind_rows(part, count = part.tokens);
  chosen_rows_.resize(static_cast<size_t>(count < part.tokens ? count : 0));
  std::byte* to = gathered_.data();
  for (const int v : part.sources) {
    const ops::View& from = values_[v];
    const int64_t row = bytes_of_row(from);
    for (size_t i = 0; i < chosen_rows_.size(); ++i)
      std::memcpy(to + static_cast<int64_t>(i) * row, from.as<const std::byte>() + chosen_rows_[i] * row,
                  static_cast<size_t>(row));
    to += Allocation::round_up(bytes_of(from));
  }
}

// From the last row on: each goes to its own place or one behind it.
void CpuExecutor::end_part(int number) {
  const ops::View& result = values_[rows_of_parts_[number].result];
  const int64_t row = bytes_of_row(result);
  for (size_t i = chosen_rows_.size(); i-- > 0;)
    if (const int64_t at = chosen_rows_[i]; at != static_cast<int64_t>(i))
      std::memcpy(result.as<std::byte>() + at * row, result.as<std::byte>() + static_cast<int64_t>(i) * row,
                  static_cast<size_t>(row));
}

}  // namespace invar::run
