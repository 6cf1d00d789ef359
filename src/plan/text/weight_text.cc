#include "plan/text/weight_text.h"

#include <utility>

#include "plan/text/field_checks.h"

namespace invar::plan {
namespace {

Digest read_sha256(Cursor& c) {
  c.expect(" sha256 ");
  const auto digest = digest_from_hex(c.until(' '));
  if (!digest) c.fail("a SHA-256 is 64 lower-case hexadecimal digits");
  c.expect_end();
  return digest.value_or(Digest{});
}

}  // namespace

DType read_dtype(Cursor& c) {
  const std::string_view name = c.until(' ');
  const auto t = dtype_from(name);
  if (!t) c.fail("there is no dtype " + brief(name));
  return t.value_or(DType::f32);
}

Weight read_weight_text(Cursor& c, uint64_t& bytes) {
  Weight w;
  w.name = c.string();
  c.expect(" ");
  w.dtype = read_dtype(c);
  c.expect(" [");
  ByteBound size{size_of(w.dtype)};
  while (c.ok() && !c.accept("]")) {
    if (!w.shape.empty()) c.expect(", ");
    w.shape.push_back(c.integer());
    if (c.ok() && (w.shape.size() > kMaxRank || !size.multiply(w.shape.back()))) c.fail("impossible shape");
  }
  w.sha256 = read_sha256(c);
  bytes = size.bytes();
  return w;
}

Source read_source(Cursor& c) {
  Source source;
  source.recipe = c.string();
  source.program = read_sha256(c);
  return source;
}

void read_source_tensor(Cursor& c, Source& source) {
  uint64_t bytes = 0;
  Weight w = read_weight_text(c, bytes);
  if (c.ok() && !source.tensors.empty() && w.name <= source.tensors.back().name)
    c.fail("tensors are not in ascending order of names");
  source.tensors.push_back(std::move(w));
}

}  // namespace invar::plan
