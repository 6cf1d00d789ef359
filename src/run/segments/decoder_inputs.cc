#include "run/segments/decoder_inputs.h"

#include <algorithm>

#include "plan/encoder_part.h"

namespace invar::run {

using Kind = DecoderInput::Kind;

Result<std::vector<DecoderInput>> decoder_inputs(const plan::Plan& plan) {
  std::vector<DecoderInput> inputs;
  bool has_ids = false;
  for (const plan::Port& port : plan.inputs) {
    const std::string& name = port.name;
    const std::string where = "the plan's input '" + name + "'";
    const plan::Value& v = plan.values[port.value];
    const bool past = name.starts_with("past");
    if (name == "input_ids")
      inputs.push_back({port.value, Kind::ids}), has_ids = true;
    else if (name == "position_ids" || name == "cache_position")
      inputs.push_back({port.value, Kind::positions});
    else if (name == "attention_mask")
      inputs.push_back({port.value, Kind::mask});
    else if (name == "hidden_states" && v.dtype == DType::f32)
      inputs.push_back({port.value, Kind::hidden});
    else if (past && std::any_of(v.shape.begin(), v.shape.end(), [](auto& d) { return d.symbol >= 0; }))
      inputs.push_back({port.value, Kind::past});
    else if (name == plan::kSourceLengths)
      inputs.push_back({port.value, Kind::lengths});
    else if (name.starts_with(plan::kFromEncoder))
      inputs.push_back({port.value, Kind::source});
    else
      return not_covered(where + " cannot be fed" +
                         (past
                              ? ": its dimensions are fixed, so it holds tokens before the first"
                              : "; a session feeds input_ids, attention_mask, position_ids and past keys and "
                                "values"));
    const bool whole = v.dtype == DType::i64 || v.dtype == DType::i32;
    if (inputs.back().kind <= Kind::mask && (!whole || v.shape.empty() || v.shape.size() > 2))
      return bad_input(where + " is not i64 or i32 [batch, seq]");
  }
  if (!has_ids) return bad_input("the plan has no input 'input_ids'");
  return inputs;
}

bool takes_whole_sequence(const std::vector<DecoderInput>& inputs) {
  return std::any_of(inputs.begin(), inputs.end(),
                     [](const DecoderInput& i) { return i.kind == Kind::mask || i.kind == Kind::past; });
}

}  // namespace invar::run
