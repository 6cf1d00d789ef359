// Texts of one length share a step: no row of a result depends on the others, and no text is
// padded.
#include "generate/encoder/encoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

#include "generate/cache/task_cache.h"
#include "generate/encoder/inputs.h"
#include "generate/engine/execution.h"
#include "generate/requests/receipt_file.h"
#include "generate/tensors/tensor_function.h"
#include "num/env.h"
#include "num/reduce/reference.h"
#include "receipt/seal.h"

namespace invar::generate {

using run::Function;
using Tokens = EncoderInputs::Tokens;

struct EncoderModel::Impl {
  EncoderInputs inputs;
  CompiledModel compiled;
  LoadedFunction loaded;
  receipt::Receipt described;  // model and program of every receipt
  size_t batch_size;

  Result<Function::NamedTensors> step(const std::vector<const Tokens*>& batch) {
    return loaded.function.run(inputs.tensors(batch));
  }
  Status seal(const EncoderText&, const Tokens&, const Function::NamedTensors& row, EncoderOutput&,
              Observer&);
};

namespace {

// One row of each tensor, as the program gives it for that text alone.
Function::NamedTensors row_of(const Function::NamedTensors& outputs, size_t row) {
  Function::NamedTensors rows;
  for (const auto& [name, t] : outputs) {
    const size_t bytes = t.bytes.size() / static_cast<size_t>(t.shape[0]);
    run::Tensor one{t.dtype, t.shape, {}};
    one.shape[0] = 1;
    one.bytes.assign(t.bytes.begin() + static_cast<ptrdiff_t>(row * bytes),
                     t.bytes.begin() + static_cast<ptrdiff_t>((row + 1) * bytes));
    rows.emplace_back(name, std::move(one));
  }
  return rows;
}

// The last output: scores stand behind the logits that they are made of.
std::vector<float> values_of(const Function::NamedTensors& row) {
  const run::Tensor& t = row.back().second;
  std::vector<float> values(t.bytes.size() / sizeof(float));
  std::memcpy(values.data(), t.bytes.data(), t.bytes.size());
  return values;
}

}  // namespace

EncoderModel::EncoderModel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EncoderModel::EncoderModel(EncoderModel&&) noexcept = default;
EncoderModel::~EncoderModel() = default;

std::string EncoderModel::isa() const {
  return std::string(impl_->loaded.function.isa());
}

const receipt::Receipt& EncoderModel::described() const {
  return impl_->described;
}

int64_t EncoderModel::size() const {
  const plan::Plan& plan = impl_->compiled.plan;
  const std::vector<plan::DimRef>& shape = plan.values[static_cast<size_t>(plan.outputs.back().value)].shape;
  return shape.size() > 1 ? shape.back().value : 1;
}

int64_t EncoderModel::positions() const {
  return impl_->inputs.max_length();
}

Result<EncoderModel::Count> EncoderModel::count(const EncoderText& text) const {
  INVAR_TRY(const Tokens tokens, impl_->inputs.encode(text));
  return Count{static_cast<int64_t>(tokens.ids.size()), tokens.cut};
}

Status EncoderModel::check_dimensions(int64_t dimensions) const {
  if (dimensions == size() || (dimensions < size() && impl_->inputs.offers(dimensions))) return {};
  return bad_input("dimensions: vectors of this model have " + std::to_string(size()) + " numbers, and " +
                   std::to_string(dimensions) +
                   " are not declared (matryoshka_dimensions or is_matryoshka of config.json)");
}

Status EncoderModel::shorten(std::vector<EncoderOutput>& outputs, int64_t dimensions) const {
  INVAR_CHECK_OK(check_dimensions(dimensions));
  if (dimensions == size()) return {};
  const num::ArithmeticEnv env;
  for (EncoderOutput& out : outputs) {
    if (out.problem) continue;
    out.values.resize(static_cast<size_t>(dimensions));
    if (!impl_->inputs.normalizes()) continue;
    const float norm = std::sqrt(num::reference::row_sum_squares(out.values.data(), dimensions));  // reduce.7
    const float divisor = norm < 1e-12f ? 1e-12f : norm;
    for (float& value : out.values) value /= divisor;
  }
  return {};
}

std::vector<size_t> ranking(const std::vector<EncoderOutput>& outputs) {
  std::vector<size_t> order(outputs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::erase_if(order, [&](size_t i) { return outputs[i].problem.has_value(); });
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    const float x = outputs[a].values[0], y = outputs[b].values[0];
    return x > y || (x == x && y != y);
  });
  return order;
}

Result<EncoderModel> EncoderModel::open(const ModelOptions& model, const ExecutionOptions& execution,
                                        const EncoderOptions& options, Observer& observer) {
  INVAR_TRY(const ModelLocation location,
            obtain({model.model_name, model.revision, model.offline}, observer));
  INVAR_TRY(EncoderInputs inputs, EncoderInputs::open(location, options, observer));
  INVAR_TRY(CompiledModel compiled, prepare(location, model, observer));
  const auto loading = observer.phase("load");
  INVAR_TRY(receipt::Receipt described,
            describe_program(compiled.plan, model.name.empty() ? location.name : model.name));
  INVAR_TRY(LoadedFunction loaded,
            open_function(compiled.plan, compiled.folder, execution, compiled.hashed.get()));
  loading->done(std::to_string(described.tensors.size()) + " tensors");
  return EncoderModel(
      std::make_unique<Impl>(Impl{std::move(inputs), std::move(compiled), std::move(loaded),
                                  std::move(described), static_cast<size_t>(options.batch_size)}));
}

Status EncoderModel::Impl::seal(const EncoderText& text, const Tokens& tokens,
                                const Function::NamedTensors& row, EncoderOutput& out, Observer& observer) {
  if (text.receipt_path.empty() && !text.sealed) return {};
  receipt::Receipt sealed =
      receipt::seal(described, digests_of(inputs.tensors({&tokens})), digests_of(row),
                    describe_execution(loaded.function, loaded.device.get(), compiled.plan));
  if (!text.receipt_path.empty()) {
    INVAR_CHECK_OK(save_receipt(text.receipt_path, receipt::print(sealed), observer));
  }
  out.receipt_hash = to_hex(receipt::receipt_hash(sealed));
  if (text.sealed) out.receipt = std::move(sealed);
  return {};
}

Result<std::vector<EncoderOutput>> EncoderModel::compute(const std::vector<EncoderText>& texts,
                                                         Observer& observer) {
  const num::ArithmeticEnv env;
  std::vector<EncoderOutput> outputs(texts.size());
  std::vector<Tokens> tokens(texts.size());
  std::map<size_t, std::vector<size_t>> of_length;
  for (size_t i = 0; i < texts.size(); ++i) {
    auto encoded = impl_->inputs.encode(texts[i]);
    if (!encoded) {
      outputs[i].problem = encoded.error();
      continue;
    }
    tokens[i] = std::move(*encoded);
    outputs[i].tokens = static_cast<int64_t>(tokens[i].ids.size()), outputs[i].cut = tokens[i].cut;
    of_length[tokens[i].ids.size()].push_back(i);
  }
  std::vector<std::pair<size_t, Function::NamedTensors>> rows;
  const auto encoding = observer.phase("encode");
  const auto total = static_cast<int64_t>(texts.size());
  for (const auto& [length, members] : of_length)
    for (size_t begin = 0; begin < members.size(); begin += impl_->batch_size) {
      const size_t end = std::min(begin + impl_->batch_size, members.size());
      encoding->progress(static_cast<int64_t>(rows.size()), total, "texts");
      std::vector<const Tokens*> batch;
      for (size_t i = begin; i < end; ++i) batch.push_back(&tokens[members[i]]);
      if (const auto results = impl_->step(batch)) {
        for (size_t i = begin; i < end; ++i) rows.emplace_back(members[i], row_of(*results, i - begin));
        continue;
      }
      // One text may be the reason, such as by a token that the model's table lacks: each alone.
      for (size_t i = begin; i < end; ++i) {
        const auto alone = impl_->step({&tokens[members[i]]});
        if (alone)
          rows.emplace_back(members[i], row_of(*alone, 0));
        else
          outputs[members[i]].problem =
              Error{alone.error().code, texts[members[i]].name + ": " + alone.error().message};
      }
    }
  encoding->done(std::to_string(total) + " texts");
  INVAR_CHECK_OK(impl_->loaded.function.weights_unchanged());
  for (auto& [i, row] : rows) {
    outputs[i].values = values_of(row);
    INVAR_CHECK_OK(impl_->seal(texts[i], tokens[i], row, outputs[i], observer));
  }
  return outputs;
}

}  // namespace invar::generate
