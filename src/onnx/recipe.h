// How the exporter of a checkpoint tells the compiler which recipe made a model: name and
// parameters stand in the model's metadata (spec/program.md).
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace invar::onnx {

// The values that a recipe reads of a configuration: name -> value as program.4 spells it.
using Parameters = std::map<std::string, std::string>;
std::string parameter(bool);
std::string parameter(int64_t);
std::string parameter(float);   // 0x and the 8 digits of its binary32
std::string parameter(double);  // 0x and the 16 digits of its binary64

struct Recipe {
  std::string name;  // e.g. "llama-1"; "": the model has none
  Parameters parameters;
};
void add_recipe(const Recipe&, std::map<std::string, std::string>& metadata);
Recipe recipe_of(const std::map<std::string, std::string>& metadata);

// Metadata of invar.exporter, the exporter of the Python package: its name and the versions of all
// that made the graph, which programs bind (program.8), and how many nodes have states (onnx.37).
inline constexpr char kExporter[] = "invar.exporter", kExporterStates[] = "invar.states";

}  // namespace invar::onnx
