// The cases, vectors and digests of the rooms, from the source tree or embedded in this program.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/opset.h"
#include "conformance/case.h"
#include "conformance/runner.h"

namespace invar::conformance {

struct RoomText {
  std::string_view room, cases, vectors, golden;  // its folder and the three files
};
// All rooms of this build (embedded by cmake/conformance.cmake).
std::span<const RoomText> embedded_rooms();

struct Room {  // of one operation
  std::string op;
  std::vector<Case> cases, vectors, golden;
};
// Reads FOLDER/ROOM/tests/{cases,vectors,golden}.txt, or the embedded texts if the folder is "".
// Fails if a text is not a list of cases, or has none for the operation.
Result<Room> read_room(const OpInfo&, const std::string& folder = "");

Result<std::vector<Bytes>> inputs_of(const Case&);
// The outputs that a line of vectors.txt promises.
Result<std::vector<Bytes>> outputs_of(const Case&);

// Compares the result of execute(): "" or what is wrong. `expected` null: only the case's digest is
// checked, if it has one.
std::string judge(const Case&, const Result<std::vector<Bytes>>& found, const std::vector<Bytes>* expected);

}  // namespace invar::conformance
