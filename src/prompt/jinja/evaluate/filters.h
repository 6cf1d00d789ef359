// The tables of filters.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "prompt/jinja/evaluate/interpreter.h"

namespace invar::prompt::jinja {

struct Filter {
  std::string_view name, parameters;
  Function function;
};
std::span<const Filter> value_filters();     // filters.cc
std::span<const Filter> sequence_filters();  // sequence_filters.cc

// map, select, reject, selectattr, rejectattr: their arguments go to another filter or test.
Result<Value> choosing_filter(Interpreter&, const std::string& name, const Value& input, const Arguments&);

}  // namespace invar::prompt::jinja
