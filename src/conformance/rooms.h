// The rooms' cases, vectors and digests: from the source tree or from this program.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/opset.h"
#include "conformance/case.h"
#include "kernels/kernel.h"
#include "conformance/runner.h"

namespace invar::conformance {

struct RoomText {
  std::string_view room, cases, vectors, golden;  // its folder and the three files
};
// All rooms of this build (which embeds them, cmake/cases.cmake).
std::span<const RoomText> embedded_rooms();

struct Room {  // of one operation
  std::string op;
  std::vector<Case> cases, vectors, golden;
};
// From FOLDER/ROOM/{cases,vectors,golden}.txt; from this program where the folder is "". An error where a text is no
// list of cases, or has none for the operation.
Result<Room> read_room(const OpInfo&, const std::string& folder = "");

Result<std::vector<Bytes>> inputs_of(const Case&);
// The outputs that a line of vectors.txt promises.
Result<std::vector<Bytes>> outputs_of(const Case&);

// What execute() gave, compared: "" or what is wrong. `expected` null: only with the case's digest, if it has one.
std::string judge(const Case&, const Result<std::vector<Bytes>>& found, const std::vector<Bytes>* expected);

}  // namespace invar::conformance
