// The table of settings (src/generate/options.toml): how tokens are chosen, by the names that
// transformers, generation_config.json, receipts and `invar run --json` have for it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "generate/options.h"
#include "sample/sample.h"

namespace invar::generate {

struct SettingRow {
  const char* name;
  bool in_checkpoint;  // generation_config.json may say it
  int64_t least;       // of whole numbers
};

// Calls each(SettingRow, member of GenerationSettings, member of sample::Params or Processors that
// it becomes, or nullptr) for every row, in the order of the table.
template <class F>
void for_each_setting(F each) {
#include "options/settings_table.inc"
}

template <class T>
T each_once(T value) {
  return value;
}
template <class T>
std::vector<T> each_once(std::vector<T> list) {  // ascending
  std::ranges::sort(list);
  list.erase(std::ranges::unique(list).begin(), list.end());
  return list;
}

// Sets the members of sample::Params or Processors that somebody says.
template <class Into>
void set_given(Into& into, const GenerationSettings& s) {
  for_each_setting([&](const SettingRow&, auto member, auto target) {
    if constexpr (requires { into.*target; })
      if (s.*member) into.*target = each_once(*(s.*member));
  });
}

}  // namespace invar::generate
