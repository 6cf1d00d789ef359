// The executor of a block of nodes, see block_executor.h.
#include "run/segments/block_executor.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "run/segments/control_flow_state.h"

namespace invar::run {

Status copy(const ExecutionContext& context, void* to, bool to_device, const TensorRef& from) {
  const size_t bytes = bytes_of(from.view);
  if (bytes == 0) return {};
  if (to_device)
    return from.on_device ? context.device->copy(to, from.view.data, bytes)
                          : context.device->upload(to, from.view.data, bytes);
  if (from.on_device) return context.device->download(to, from.view.data, bytes);
  std::memcpy(to, from.view.data, bytes);
  return {};
}

BlockExecutor::BlockExecutor(const plan::Plan& plan, const ExecutionContext& context, int body)
    : plan_(plan), context_(context), body_(body) {}
BlockExecutor::~BlockExecutor() = default;

Result<std::unique_ptr<BlockExecutor>> BlockExecutor::open(const plan::Plan& plan,
                                                           std::vector<plan::BlockPartition>& partition,
                                                           int body, const ExecutionContext& context) {
  std::unique_ptr<BlockExecutor> block(new BlockExecutor(plan, context, body));
  plan::BlockPartition& own = partition[static_cast<size_t>(body + 1)];
  block->own_symbols_ = std::move(own.own_symbols), block->node_numbers_ = std::move(own.node_numbers);
  std::vector<SegmentExecutor>& segments = block->segments_;
  bool may_skip = !plan.bodies.empty();  // an earlier segment or a condition may end the call
  for (plan::Segment& segment : own.segments) {
    may_skip |= !segment.bindings.empty();
    for (size_t i = 0; i < segment.outputs.size(); ++i)
      block->produced_[segment.outputs[i]] = {segments.size(), segment.plan.outputs[i].value};
    const std::vector<int> control_flow_nodes = segment.control_flow_nodes;
    const bool has_nodes = !segment.plan.nodes.empty();
    segments.emplace_back(std::move(segment));
    for (int at : control_flow_nodes) INVAR_CHECK_OK(block->open_control_flow(at, partition));
    if (has_nodes) {
      INVAR_CHECK_OK(segments.back().open(context, may_skip));
    }
  }
  for (const SegmentExecutor& segment : segments) {
    std::vector<Source>& sources = block->sources_.emplace_back();
    for (int v : segment.segment().inputs) {
      const auto produced = block->produced_.find(v);
      sources.push_back(produced == block->produced_.end() ? Source{&block->inputs_[v], {}}
                                                           : Source{nullptr, produced->second});
    }
  }
  block->shapes_decide_sizes_ = segments.size() == 1 && block->control_flow_.empty() &&
                                segments[0].segment().bindings.empty() &&
                                !segments[0].segment().plan.nodes.empty();
  return block;
}

TensorRef BlockExecutor::value(const Source& source, bool fetched) const {
  if (source.input) return *source.input;
  const Executor& executor = segments_[source.produced.segment].executor();
  const bool on_device = context_.device && !fetched;
  const int v = source.produced.value;
  return {on_device ? executor.device_view(v) : executor.port(v), on_device};
}
TensorRef BlockExecutor::value(int v, bool fetched) const {
  if (const auto at = inputs_.find(v); at != inputs_.end()) return at->second;
  const auto at = produced_.find(v);
  return at == produced_.end() ? TensorRef{} : value(Source{nullptr, at->second}, fetched);
}

bool BlockExecutor::is_constant(int v) const {
  std::set<int> constants;
  for (const plan::Node& n : plan_.bodies[static_cast<size_t>(body_)].nodes)
    if (n.bodies.empty() && std::all_of(n.in.begin(), n.in.end(), [&](const plan::Operand& o) {
          return o.kind == plan::Operand::weight || constants.contains(o.index);
        }))
      constants.insert(n.out.begin(), n.out.end());
  return constants.contains(v);
}

template <class T>
Result<T> BlockExecutor::read_element(int v, int64_t element) const {
  T x{};
  TensorRef one = value(v);
  one.view.rank = 0;
  one.view.data = static_cast<std::byte*>(one.view.data) + static_cast<int64_t>(sizeof x) * element;
  INVAR_CHECK_OK(copy(context_, &x, /*to_device=*/false, one));
  if (one.on_device) {
    INVAR_CHECK_OK(context_.device->wait());
  }
  return x;
}
template Result<int64_t> BlockExecutor::read_element(int, int64_t) const;
template Result<uint8_t> BlockExecutor::read_element(int, int64_t) const;

// ", for NODE": the first node with a result of this dimension.
std::string BlockExecutor::reader_of(int symbol) const {
  const auto& nodes = body_ < 0 ? plan_.nodes : plan_.bodies[static_cast<size_t>(body_)].nodes;
  for (const plan::Node& n : nodes)
    for (const int v : n.out)
      for (const plan::DimRef& d : plan_.values[static_cast<size_t>(v)].shape)
        if (d.symbol == symbol) return ", for " + plan::text_of(n.origin) + n.op;
  return "";
}

Status BlockExecutor::bind_symbols(const plan::Segment& segment, std::vector<int64_t>& sizes) const {
  for (int binding : segment.bindings) {
    const plan::Binding& b = plan_.bindings[static_cast<size_t>(binding)];
    INVAR_TRY(const int64_t size, read_element<int64_t>(b.value, b.element));
    sizes[b.symbol] = size;
    if (size < 0)
      return bad_input("the inputs lead to a dimension '" + plan_.symbols[b.symbol].text() +
                       "' = " + std::to_string(size) + ", which is none" + reader_of(b.symbol));
  }
  return {};
}

Status BlockExecutor::evaluate_symbols(const plan::Segment& segment, std::vector<int64_t>& sizes) const {
  for (int symbol : segment.known_symbols) {
    const auto i = static_cast<size_t>(symbol);
    const int64_t given = sizes[i];
    sizes[i] = context_.symbols.evaluate(symbol, sizes);
    if (sizes[i] < 0)
      return bad_input("the inputs are too small or too large: the plan's dimension '" +
                       plan_.symbols[i].text() + "' is none for their shapes" +
                       (plan_.bindings.empty() && plan_.bodies.empty() ? "" : " and values"));
    if (body_ < 0 && given >= 0 && given != sizes[i])
      return bad_input("an input has " + std::to_string(given) + " where the plan takes '" +
                       plan_.symbols[i].text() + "' = " + std::to_string(sizes[i]));
  }
  return {};
}

Status BlockExecutor::bind_dims(const std::vector<int>& values, const std::string& what,
                                std::vector<int64_t>& sizes) const {
  for (int v : values) {
    const ops::View view = value(v).view;
    const std::vector<plan::DimRef>& shape = plan_.values[v].shape;
    bool fits = view.rank == static_cast<int>(shape.size()) && view.dtype == plan_.values[v].dtype;
    for (size_t d = 0; fits && d < shape.size(); ++d) {
      const int s = shape[d].symbol;
      const bool is_own = std::binary_search(own_symbols_.begin(), own_symbols_.end(), s);
      if (s >= 0 && sizes[s] < 0 && is_own) sizes[s] = view.dim[d];
      const bool is_expression = s >= 0 && !context_.symbols.is_name(s);
      const int64_t known = s < 0 ? shape[d].value : context_.symbols.evaluate(s, sizes);
      // An expression that is not known yet is compared by the segment that reads the value.
      fits = view.dim[d] == known || (is_expression && known < 0);
    }
    if (!fits) return bad_input(what + ": a value has another shape than the plan says");
  }
  return {};
}

Status BlockExecutor::run_body(std::vector<int64_t>& sizes) {
  for (int s : own_symbols_) sizes[static_cast<size_t>(s)] = -1;
  INVAR_CHECK_OK(
      bind_dims(plan_.bodies[static_cast<size_t>(body_)].inputs, "body b" + std::to_string(body_), sizes));
  return run(sizes);
}

Status BlockExecutor::run(std::vector<int64_t>& sizes, const std::vector<int>& fetched) {
  for (SegmentExecutor& executor : segments_) {
    const plan::Segment& segment = executor.segment();
    INVAR_CHECK_OK(bind_symbols(segment, sizes));
    for (int at : segment.control_flow_nodes) INVAR_CHECK_OK(run_control_flow(at, sizes));
    INVAR_CHECK_OK(evaluate_symbols(segment, sizes));
    if (segment.plan.nodes.empty()) continue;
    INVAR_CHECK_OK(executor.resize(context_, sizes));
    std::vector<int> outputs;
    for (size_t i = 0; i < segment.outputs.size(); ++i)
      if (std::find(fetched.begin(), fetched.end(), segment.outputs[i]) != fetched.end())
        outputs.push_back(segment.plan.outputs[i].value);
    executor.executor().select_outputs(std::move(outputs));
    INVAR_CHECK_OK(run_segment(executor));
  }
  return {};
}

// On a GPU a segment reads the outputs of earlier ones in device memory; nothing is downloaded but
// what the host asks for.
Status BlockExecutor::run_segment(SegmentExecutor& sized) {
  Executor& executor = sized.executor();
  const plan::Segment& segment = sized.segment();
  const std::vector<Source>& sources = sources_[static_cast<size_t>(&sized - segments_.data())];
  for (size_t i = 0; i < segment.inputs.size(); ++i) {
    const auto [v, on_device] = value(sources[i]);
    const int port = segment.plan.inputs[i].value;
    const ops::View& expected = executor.device_view(port);
    if (v.rank != expected.rank || !std::equal(v.dim, v.dim + v.rank, expected.dim))
      return bad_input(
          plan::text_of(segment.plan.nodes[0].origin) + "operation " +
          std::to_string(segment.node_numbers[0]) +
          " of the plan, or one behind it, is given a value of another shape than the plan says");
    if (on_device) {
      INVAR_CHECK_OK(executor.feed_device(port, v.data));
    } else {
      INVAR_CHECK_OK(executor.feed(port, {static_cast<const std::byte*>(v.data), bytes_of(v)}));
    }
  }
  return executor.run(/*tail=*/true);
}

Status BlockExecutor::weights_unchanged() {
  for (SegmentExecutor& segment : segments_) INVAR_CHECK_OK(segment.weights_unchanged());
  for (auto& [at, state] : control_flow_) INVAR_CHECK_OK(state->weights_unchanged());
  return {};
}
size_t BlockExecutor::bytes() const {
  size_t bytes = 0;
  for (const SegmentExecutor& segment : segments_) bytes += segment.bytes();
  for (const auto& [at, state] : control_flow_) bytes += state->bytes();
  return bytes;
}

void BlockExecutor::add_names(std::vector<std::string> (*names_of)(const Executable&),
                              std::vector<std::string>& all) const {
  for (const SegmentExecutor& segment : segments_) {
    if (!segment.has_executor()) continue;
    for (const std::string& name : names_of(segment.executor().executable()))
      if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
  }
  for (const auto& [at, state] : control_flow_)
    for (const auto& body : state->bodies) body->add_names(names_of, all);
}

}  // namespace invar::run
