// The parts of a program with an encoder, see encoder_part.h. A node belongs to the encoder if it
// follows from the source alone. One that follows from weights alone belongs to whoever reads it.
#include "plan/encoder_part.h"

#include <algorithm>
#include <string>

#include "plan/analysis/segment_builder.h"

namespace invar::plan {
namespace {

enum class FollowsFrom { weights, source, step };

std::vector<FollowsFrom> origins_of(const Plan& p) {
  std::vector<FollowsFrom> origins(p.values.size(), FollowsFrom::weights);
  for (const Port& i : p.inputs) origins[i.value] = is_source(i) ? FollowsFrom::source : FollowsFrom::step;
  for (const Node& n : p.nodes) {
    FollowsFrom made = n.state >= 0 ? FollowsFrom::step : FollowsFrom::weights;
    for (const Operand& o : n.in)
      if (o.kind == Operand::value) made = std::max(made, origins[o.index]);
    for (const int v : n.out) origins[v] = made;
  }
  return origins;
}

// Marks what the nodes of a part need: nodes of this origin, and those of weights that they read.
std::vector<bool> nodes_of(const Plan& p, const std::vector<FollowsFrom>& origins, FollowsFrom part) {
  std::vector<bool> chosen(p.nodes.size()), needed(p.values.size());
  for (size_t n = p.nodes.size(); n-- > 0;) {
    const Node& node = p.nodes[n];
    const FollowsFrom made = origins[node.out[0]];
    const bool wanted = std::ranges::any_of(node.out, [&](int v) { return needed[v]; });
    chosen[n] = made == part || (made == FollowsFrom::weights && wanted);
    for (const Operand& o : node.in)
      if (chosen[n] && o.kind == Operand::value) needed[o.index] = true;
  }
  return chosen;
}

void name_ports(const Plan& whole, const std::vector<int>& values, std::vector<Port>& ports) {
  for (size_t i = 0; i < ports.size(); ++i) {
    ports[i].name = kFromEncoder + std::to_string(values[i]);
    for (const auto* named : {&whole.inputs, &whole.outputs})
      for (const Port& port : *named)
        if (port.value == values[i]) ports[i].name = port.name;
  }
}

}  // namespace

bool is_source(const Port& input) {
  return input.name == kSourceIds || input.name == kSourceFeatures;
}

bool has_encoder(const Plan& p) {
  return std::ranges::any_of(p.inputs, is_source);
}

Result<EncoderSplit> split_encoder(const Plan& p) {
  if (!p.bodies.empty() || !p.bindings.empty())
    return not_covered("a program with an encoder has neither control flow nor sizes that values decide");
  const SymbolUses uses(p);
  const std::vector<FollowsFrom> origins = origins_of(p);
  std::vector<int> made_at(p.values.size(), -1);
  for (const Node& n : p.nodes)
    for (const int v : n.out) made_at[v] = origins[v] == FollowsFrom::step ? 1 : 0;
  const std::vector<bool> in_encoder = nodes_of(p, origins, FollowsFrom::source),
                          in_decoder = nodes_of(p, origins, FollowsFrom::step);
  SegmentBuilder encoder(p, uses, made_at, 0), decoder(p, uses, made_at, 1);
  for (size_t n = 0; n < p.nodes.size(); ++n) {
    const int number = static_cast<int>(n);
    if (in_encoder[n]) encoder.add(p.nodes[n], number);
    if (in_decoder[n]) decoder.add(p.nodes[n], number);
  }
  for (const Port& o : p.outputs) {
    if (origins[o.value] != FollowsFrom::step)
      return bad_input("the output '" + o.name +
                       "' of a program with an encoder does not follow from tokens");
    decoder.keep(o.value);
  }
  EncoderSplit split;
  split.decoder = std::move(decoder).finish();
  for (const int v : split.decoder.inputs)
    if (made_at[v] == 0) encoder.keep(v);
  split.encoder = std::move(encoder).finish();
  if (split.encoder.outputs.empty()) return bad_input("nothing that follows from the source is read");
  for (Segment* s : {&split.encoder, &split.decoder}) {
    name_ports(p, s->inputs, s->plan.inputs);
    name_ports(p, s->outputs, s->plan.outputs);
  }
  return split;
}

}  // namespace invar::plan
