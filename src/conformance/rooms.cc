// Loads the rooms' cases and compares results with what they promise.
#include "conformance/rooms.h"

#include "base/file/file.h"

namespace invar::conformance {
namespace {

Result<std::vector<Case>> load(std::string_view text, const OpInfo& info, const char* file) {
  const std::string name = std::string(info.room) + "/" + file;
  INVAR_TRY(std::vector<Case> cases, parse(text, name, info.op));
  if (cases.empty()) return bad_input(name + " has no cases of " + std::string(info.op));
  return cases;
}

Result<Room> read_text(const OpInfo& info, const RoomText& text) {
  Room room{std::string(info.op), {}, {}, {}};
  INVAR_TRY(room.cases, load(text.cases, info, "cases.txt"));
  INVAR_TRY(room.vectors, load(text.vectors, info, "vectors.txt"));
  INVAR_TRY(room.golden, load(text.golden, info, "golden.txt"));
  for (const Case& c : room.golden)
    if (c.digest.empty()) return bad_input(std::string(info.room) + "/golden.txt: no digest: " + c.text);
  return room;
}

}  // namespace

Result<Room> read_room(const OpInfo& info, const std::string& folder) {
  if (folder.empty()) {
    for (const RoomText& text : embedded_rooms())
      if (text.room == info.room) return read_text(info, text);
    return Error{Code::internal, "this build has no room " + std::string(info.room)};
  }
  const std::string path = folder + "/" + std::string(info.room) + "/tests/";
  INVAR_TRY(const std::string cases, read_file(path + "cases.txt"));
  INVAR_TRY(const std::string vectors, read_file(path + "vectors.txt"));
  INVAR_TRY(const std::string golden, read_file(path + "golden.txt"));
  return read_text(info, {info.room, cases, vectors, golden});
}

Result<std::vector<Bytes>> inputs_of(const Case& c) {
  std::vector<Bytes> inputs;
  for (size_t i = 0; i < c.in.size(); ++i) {
    INVAR_TRY(Bytes bytes, materialise(c.in[i], c.seed, static_cast<int>(i)));
    inputs.push_back(std::move(bytes));
  }
  return inputs;
}

Result<std::vector<Bytes>> outputs_of(const Case& c) {
  std::vector<Bytes> outputs;
  for (const Tensor& t : c.out) {
    if (t.bits.empty() && t.elements()) return bad_input("no values: " + c.text);
    INVAR_TRY(Bytes bytes, materialise(t, 0, 0));
    outputs.push_back(std::move(bytes));
  }
  return outputs;
}

std::string judge(const Case& c, const Result<std::vector<Bytes>>& found,
                  const std::vector<Bytes>* expected) {
  if (!found) return found.error().message;
  std::string wrong = expected ? difference(c, *expected, *found) : "";
  if (wrong.empty() && !c.digest.empty())
    if (const std::string digest = digest_of(c, *found); digest != c.digest)
      wrong = "expected digest " + c.digest + ", found " + digest;
  return wrong;
}

}  // namespace invar::conformance
