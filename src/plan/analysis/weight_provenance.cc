#include "plan/weight_provenance.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "base/file/temporary_file.h"
#include "plan/program_text.h"

namespace invar::plan {
namespace {

uint64_t bytes_of(const Weight& tensor) {
  uint64_t bytes = size_of(tensor.dtype);
  for (const int64_t d : tensor.shape) bytes *= static_cast<uint64_t>(d);
  return bytes;
}

// The compiler names a reshape or a slice of the weight X "X [2, 3]" or "X from 16 [2]", where 16
// is a number of bytes (plan.21). A claim, which says where to look.
struct Slice {
  std::string_view of;
  uint64_t offset = 0;
};
Slice slice_named(std::string_view name) {
  Slice part{name};
  while (part.of.ends_with(']')) {
    const size_t shape = part.of.rfind(" [");
    if (shape == part.of.npos) break;
    part.of = part.of.substr(0, shape);
    const size_t from = part.of.rfind(" from ");
    if (from == part.of.npos) continue;
    uint64_t offset = 0;
    const std::string_view digits = part.of.substr(from + 6);
    if (digits.empty() || digits.size() > 15 || digits.find_first_not_of("0123456789") != digits.npos)
      continue;
    for (const char c : digits) offset = offset * 10 + static_cast<uint64_t>(c - '0');
    part.of = part.of.substr(0, from), part.offset += offset;
  }
  return part;
}

// The compiler names what it computes from a graph by its content: "f32 2x3 HEX".
bool is_named_by_content(const Weight& w) {
  std::string begin = std::string(name_of(w.dtype)) + " ";
  for (size_t d = 0; d < w.shape.size(); ++d)
    begin += std::to_string(w.shape[d]) + (d + 1 < w.shape.size() ? "x" : " ");
  return w.name.starts_with(begin) && w.name.size() > begin.size() &&
         w.name.find_first_not_of("0123456789abcdef", begin.size()) == w.name.npos;
}

struct ByteRange {
  uint64_t begin, length;
};
// The digests of the first `length` bytes behind `begin` of a file, and of parts of them, from one
// reading. False: the file is shorter.
bool hash(const std::string& path, const ByteRange& whole, const std::vector<ByteRange>& parts,
          Digest& of_whole, std::vector<Digest>& of_parts) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file || ::fseeko(file.get(), static_cast<off_t>(whole.begin), SEEK_SET) != 0) return false;
  std::string piece(size_t{1} << 20, '\0');
  Sha256 all;
  std::vector<Sha256> each(parts.size());
  for (uint64_t at = 0; at < whole.length;) {
    const size_t n =
        std::fread(piece.data(), 1, std::min<uint64_t>(piece.size(), whole.length - at), file.get());
    if (n == 0) return false;
    all.update(piece.data(), n);
    for (size_t i = 0; i < parts.size(); ++i) {
      const uint64_t begin = std::max(at, parts[i].begin),
                     end = std::min(at + n, parts[i].begin + parts[i].length);
      if (begin < end) each[i].update(piece.data() + (begin - at), end - begin);
    }
    at += n;
  }
  of_whole = all.finish();
  of_parts.clear();
  for (Sha256& one : each) of_parts.push_back(one.finish());
  return true;
}

// Finds which bytes of the program's tensors the weights are.
class TensorCheck {
 public:
  TensorCheck(const Plan& plan, const std::string& path, std::set<Digest> computed)
      : plan_(plan), path_(path), computed_(std::move(computed)), read_(tensors().size()) {
    for (size_t t = 0; t < tensors().size(); ++t) {
      by_digest_[tensors()[t].sha256].push_back(t);
      by_name_[tensors()[t].name] = t;
    }
  }
  Status check() {
    for (const Weight& w : plan_.weights) INVAR_CHECK_OK(find(w));
    for (const auto& [place, weights] : parts_) INVAR_CHECK_OK(compare(weights));
    for (const Weight* w : constants_) INVAR_CHECK_OK(check_constant(*w));
    return {};
  }

 private:
  struct NamedSlice {
    const Weight* weight;
    Slice part;
  };
  const std::vector<Weight>& tensors() const { return plan_.source->tensors; }
  // Tensors of a graph are numbered (program.9), so their names say nothing.
  bool has_names() const { return plan_.source->recipe != kGraphRecipe; }
  Error refused(const std::string& why) const { return {Code::failed, path_ + ": " + why}; }
  Error other_bytes(const Weight& tensor) const {
    return refused("it computes with other bytes of the tensor " + tensor.name +
                   " than those of the program that it names: compile it again");
  }

  Status find(const Weight&);
  Status compare(const std::vector<NamedSlice>&);
  Status check_constant(const Weight&) const;
  uint64_t unread(size_t tensor) const;

  const Plan& plan_;
  const std::string& path_;
  const std::set<Digest> computed_;  // of constants that the compiler makes of these tensors
  std::map<Digest, std::vector<size_t>> by_digest_;
  std::map<std::string_view, size_t> by_name_;
  std::vector<std::map<uint64_t, uint64_t>> read_;  // per tensor: begin -> end
  // The key is where the tensor begins of which the weight is a part.
  std::map<std::tuple<std::string, uint64_t, std::string_view>, std::vector<NamedSlice>> parts_;
  std::vector<const Weight*> constants_;
};

Status TensorCheck::find(const Weight& w) {
  const auto named = has_names() ? by_name_.find(w.name) : by_name_.end();
  if (named != by_name_.end() && tensors()[named->second].sha256 != w.sha256)
    return other_bytes(tensors()[named->second]);
  if (const auto known = by_digest_.find(w.sha256); known != by_digest_.end()) {
    for (const size_t t : known->second) read_[t][0] = bytes_of(tensors()[t]);
    return {};
  }
  if (computed_.contains(w.sha256)) return {};
  const Slice part = slice_named(w.name);
  if (!has_names() && part.of == w.name && !is_named_by_content(w))
    return refused("it computes with the weight " + w.name +
                   ", whose bytes are none of the tensors of the program that it names: compile it again");
  if (part.of == w.name || part.offset > w.offset)
    constants_.push_back(&w);
  else
    parts_[{w.file, w.offset - part.offset, part.of}].push_back({&w, part});
  return {};
}

// Weights that say they are parts of one tensor.
Status TensorCheck::compare(const std::vector<NamedSlice>& weights) {
  const Weight& first = *weights.front().weight;
  const uint64_t begin = first.offset - weights.front().part.offset;
  std::vector<ByteRange> ranges;
  uint64_t end = 0;
  for (const NamedSlice& p : weights) {
    ranges.push_back({p.part.offset, p.weight->length});
    end = std::max(end, p.part.offset + p.weight->length);
  }
  const auto named = has_names() ? by_name_.find(weights.front().part.of) : by_name_.end();
  std::set<uint64_t> lengths;  // of what may be the tensor
  for (size_t t = 0; t < tensors().size(); ++t)
    if (named == by_name_.end() ? tensors()[t].dtype == first.dtype : named->second == t)
      lengths.insert(bytes_of(tensors()[t]));
  for (const uint64_t length : lengths) {
    Digest whole;
    std::vector<Digest> digests;
    if (length < end || !hash(folder_of(path_) + "/" + first.file, {begin, length}, ranges, whole, digests))
      continue;
    const auto known = by_digest_.find(whole);
    if (known == by_digest_.end()) continue;
    for (size_t i = 0; i < weights.size(); ++i) {
      if (digests[i] != weights[i].weight->sha256) return other_bytes(tensors()[known->second.front()]);
      for (const size_t t : known->second) {
        uint64_t& to = read_[t][ranges[i].begin];
        to = std::max(to, ranges[i].begin + ranges[i].length);
      }
    }
    return {};
  }
  if (named != by_name_.end())
    return refused("the tensor " + tensors()[named->second].name +
                   " of the program that it names is not in " + first.file +
                   ": fetch the file again, or compile it again");
  for (const NamedSlice& p : weights) constants_.push_back(p.weight);
  return {};
}

// The bytes of a tensor that no weight has.
uint64_t TensorCheck::unread(size_t tensor) const {
  uint64_t bytes = bytes_of(tensors()[tensor]), at = 0;
  for (const auto& [begin, end] : read_[tensor])
    if (end > at) bytes -= end - std::max(begin, at), at = end;
  return bytes;
}

// A constant may follow from the parameters, and then no tensor is missing. A compiler may have
// computed it from tensors; then nobody can say so without computing it again.
Status TensorCheck::check_constant(const Weight& w) const {
  const char* const what_to_do = has_names() ? "compile it again with --opt 1, or leave the plan out"
                                             : "give the model in the place of the plan";
  for (size_t t = 0; t < tensors().size(); ++t)
    if (tensors()[t].dtype == w.dtype && unread(t) >= w.length && w.length > size_of(w.dtype))
      return not_covered(
          path_ + ": it computes with the constant " + w.name + ", and not with the tensor " +
          tensors()[t].name +
          " of the program that it names, so nothing shows that the one follows from the other: " +
          what_to_do);
  return {};
}

}  // namespace

Status check_weight_provenance(const Plan& plan, const std::string& path, const Plan* computed) {
  if (!plan.source) return {};
  std::set<Digest> constants;
  const auto same = [](const Weight& a, const Weight& b) {
    return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape && a.sha256 == b.sha256;
  };
  if (computed && computed->source && computed->source->program == plan.source->program &&
      std::ranges::equal(computed->source->tensors, plan.source->tensors, same))
    for (const Weight& w : computed->weights) constants.insert(w.sha256);
  return TensorCheck(plan, path, std::move(constants)).check();
}

}  // namespace invar::plan
