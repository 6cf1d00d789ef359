#include "generate/settings/sampling_json.h"

#include <type_traits>

#include "base/text/decimal.h"
#include "generate/settings/settings_table.h"

namespace invar::generate {

json::Value sampling_json(const receipt::Receipt& r) {
  json::Value sampling = {{"do_sample", r.sampling.do_sample},
                          {"temperature", shortest_decimal(r.sampling.temperature)},
                          {"top_k", r.sampling.top_k},
                          {"top_p", shortest_decimal(r.sampling.top_p)},
                          {"seed", r.sampling.seed}};
  const sample::Params off;
  const auto json_of_setting = [](const auto& value) -> json::Value {
    if constexpr (std::is_same_v<decltype(value), const float&>) {
      return shortest_decimal(value);
    } else if constexpr (std::is_same_v<decltype(value), const std::vector<sample::LogitBias>&>) {
      json::Value object(json::Value::object);
      for (const auto& [token, bias] : value) object[std::to_string(token)] = shortest_decimal(bias);
      return object;
    } else {
      return value;
    }
  };
  for_each_setting([&](const SettingRow& row, auto, auto member) {
    const auto add = [&](const auto& of, const auto& neutral) {
      if constexpr (requires { of.*member; })
        if (of.*member != neutral.*member) sampling[row.name] = json_of_setting(of.*member);
    };
    add(r.sampling, off), add(r.sampling.processors, off.processors);
  });
  if (!r.stop_token_ids.empty()) sampling["stop_token_ids"] = r.stop_token_ids;
  if (r.ignore_eos) sampling["ignore_eos"] = true;
  if (!r.stop_strings.empty()) sampling["stop_strings"] = r.stop_strings;
  if (r.stop_in_answer) sampling["stop_in_answer"] = true;
  if (r.sampling.stream > 0) sampling["stream"] = r.sampling.stream;
  return sampling;
}

}  // namespace invar::generate
