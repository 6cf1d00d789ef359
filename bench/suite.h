// Measurements: lines of the rooms' bench.txt. The grammar of a line is that of cases.txt
// (tests/conformance/README.md); after `|` a line may also have
//   flops=EXPR   floating-point operations of a call, where arithmetic rather than memory bounds it
//   bytes=EXPR   bytes that a call must move, where that is not every operand and result once
//   past=EXPR    operations with memory: this many leading positions are there before the call
// A line [NAME] begins a suite, [NAME cuda] one of calls that are measured on a GPU; there an
// operation without any has those of the CPU.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/case.h"

namespace invar::bench {

struct SuiteText {
  std::string_view op, text;
};
std::span<const SuiteText>
embedded_texts();  // of every room that has a bench.txt, in the order of spec/opset.toml

struct Item {
  std::string suite, op, device = "cpu";
  conformance::Case call;
  int64_t flops = 0, past = 0, bytes = 0;
  std::string shape() const;  // "1x4096 · bf16 4096x4096", for people
};

// All items of one text; `file` names it in errors. Refuses what no memory could hold.
Result<std::vector<Item>> items_of(const std::string& op, std::string_view text, const std::string& file);

// The embedded items for a device ("cpu" or "cuda") of the named suites ("all": every one) and of
// `op` if it is not empty. An error where a suite is unknown or nothing is left.
Result<std::vector<Item>> choose(const std::vector<std::string>& suites, const std::string& op,
                                 const std::string& device);

}  // namespace invar::bench
