// The normal form of a graph: what the program of an ONNX model is made of (spec/program.md
// program.8 to program.16). Names, order of nodes, dead nodes and where constants lie leave it
// alone.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/hash/sha256.h"
#include "onnx/onnx.h"

namespace invar::onnx {

// Nodes are numbered from 0 in the order of the graph; those of a body come behind the node that
// has it, before the next one.
using NodeNumber = size_t;
// Choices of the compiler to compute by an operation of its own (spec/choices.md): "gelu-erf-1".
using AppliedChoices = std::map<NodeNumber, std::set<std::string>>;
// The SHA-256 of a tensor's bytes, little-endian. Asked once or more for each tensor that the
// outputs depend on.
using TensorDigestOf = std::function<Digest(const TensorRef&)>;

struct NormalForm {
  struct Constant {
    std::string name;  // in the text, e.g. "v3"
    int32_t data_type = 0;
    std::vector<int64_t> shape;
    Digest sha256;
  };
  std::string text;  // the lines of program.9
  std::vector<Constant> constants;
};
// Nothing if the outputs depend on a node that no line describes: one with an attribute of a kind
// that AttrValue lacks.
std::optional<NormalForm> normal_form(const Graph&, const TensorDigestOf&, const AppliedChoices& = {});

}  // namespace invar::onnx
