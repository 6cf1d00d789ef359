// invar embed: texts -> vectors. invar rerank: a query and documents -> scores. Receipts in files.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>

#include "artifacts.h"
#include "base/file/temporary_file.h"
#include "base/text/decimal.h"
#include "base/text/display.h"
#include "commands.h"
#include "console.h"
#include "generate/cache/task_cache.h"
#include "generate/encoder/encoder.h"
#include "outputs/folders.h"
#include "run/npy.h"

namespace invar::cli {
namespace {

using generate::EncoderOutput;
using generate::EncoderText;
using json::Value;

// Texts of the command line, then those of the file. Several receipts are r.1.json, r.2.json, ...
Result<std::vector<EncoderText>> texts_of(const EncoderCommand& c, const char* key) {
  std::vector<EncoderText> texts;
  for (const std::string& text : c.texts)
    texts.push_back({text, {}, "", "text " + std::to_string(texts.size() + 1)});
  if (!c.text_file.empty()) {
    INVAR_TRY(std::vector<EncoderText> rows, generate::read_text_file(c.text_file, key));
    std::move(rows.begin(), rows.end(), std::back_inserter(texts));
  }
  const std::filesystem::path base(c.receipt_path.value_or(""));
  for (size_t i = 0; i < texts.size() && c.receipt_path; ++i) {
    const std::string number = texts.size() == 1 ? "" : "." + std::to_string(i + 1);
    texts[i].receipt_path =
        (base.parent_path() / (base.stem().string() + number + base.extension().string())).string();
  }
  return texts;
}

struct Computed {
  std::vector<EncoderText> texts;
  std::vector<EncoderOutput> outputs;
  std::string isa;
  OutputFolders folders;
};

// Before anything is computed: the folders are there, and no file is written twice.
Status check_outputs(const EncoderCommand& c, Computed& all) {
  const std::vector<EncoderText>& texts = all.texts;
  namespace fs = std::filesystem;
  std::vector<std::string> paths;
  if (!c.output.empty()) paths.push_back(c.output);
  for (const EncoderText& t : texts)
    if (c.receipt_path) paths.push_back(t.receipt_path);
  for (size_t i = 0; i < paths.size(); ++i) {
    std::error_code ec;
    INVAR_CHECK_OK(
        all.folders.make_above(i == 0 && !c.output.empty() ? "--output" : "--receipt-path", paths[i]));
    if (i > 0 &&
        fs::absolute(paths[0], ec).lexically_normal() == fs::absolute(paths[i], ec).lexically_normal())
      return bad_input("--output and --receipt-path name one file, '" + paths[i] + "': give them two");
  }
  return {};
}

Result<Computed> compute(const EncoderCommand& c, bool pairs) {
  Computed all;
  INVAR_TRY(all.texts, texts_of(c, pairs ? "document" : "text"));
  INVAR_CHECK_OK(check_outputs(c, all));
  if (pairs)
    for (EncoderText& t : all.texts) t.second = std::exchange(t.text, c.query);
  generate::EncoderOptions options{c.prompt_name, pairs, c.batch_size};
  Console console(c.json);
  INVAR_TRY(generate::EncoderModel opened,
            generate::EncoderModel::open(c.model, c.execution, options, console));
  if (c.dimensions) {
    INVAR_CHECK_OK(opened.check_dimensions(*c.dimensions));
  }
  INVAR_TRY(all.outputs, opened.compute(all.texts, console));
  if (c.dimensions) {
    INVAR_CHECK_OK(opened.shorten(all.outputs, *c.dimensions));
  }
  all.isa = opened.isa();
  return all;
}

// Names what went wrong with single texts and what was cut -> the exit code of the worst.
int report(const Computed& all) {
  int worst = 0;
  for (size_t i = 0; i < all.outputs.size(); ++i) {
    const EncoderOutput& out = all.outputs[i];
    if (out.problem) {
      const int code = fail(*out.problem);
      worst = worst == 0 || code == 2 ? code : worst;
    } else if (out.cut > 0) {
      Console(false).note("cut", all.texts[i].name + ": the last " + std::to_string(out.cut) +
                                     " tokens are beyond the model's length: left out");
    }
  }
  return worst;
}

Value number_json(float v) {
  return v - v == 0 ? Value(shortest_decimal(v)) : Value();  // JSON has no infinity
}

Value row_json(const EncoderText& text, const EncoderOutput& out, size_t i) {
  Value row = {{"index", i}, {"tokens", out.tokens}};
  if (out.cut) row["cut"] = out.cut;
  if (!out.receipt_hash.empty()) row["receipt"] = text.receipt_path, row["receipt_hash"] = out.receipt_hash;
  return row;
}

// f32 [texts, size]; the row of a text with a problem is NaN.
std::string npy_of_rows(const std::vector<EncoderOutput>& outputs) {
  size_t size = 0;
  for (const EncoderOutput& out : outputs) size = std::max(size, out.values.size());
  std::vector<float> all;
  for (const EncoderOutput& out : outputs) {
    all.insert(all.end(), out.values.begin(), out.values.end());
    all.insert(all.end(), size - out.values.size(), std::numeric_limits<float>::quiet_NaN());
  }
  run::Tensor t{DType::f32, {static_cast<int64_t>(outputs.size()), static_cast<int64_t>(size)}, {}};
  t.bytes.resize(all.size() * sizeof(float));
  std::memcpy(t.bytes.data(), all.data(), t.bytes.size());
  return run::npy_of(t);
}

// ", receipt HASH" of one text; how many there are of several.
std::string receipts_line(const Computed& all) {
  size_t count = 0;
  std::string last;
  for (const EncoderOutput& out : all.outputs)
    if (!out.receipt_hash.empty()) ++count, last = out.receipt_hash;
  return count == 0 ? "" : count == 1 ? ", receipt " + last : ", " + std::to_string(count) + " receipts";
}

void summary(const char* name, const Computed& all, const std::string& detail) {
  int64_t tokens = 0;
  for (const EncoderOutput& out : all.outputs) tokens += out.tokens;
  const size_t count = all.outputs.size();
  Console(false).note(name, std::to_string(count) + " text" + (count == 1 ? "" : "s") + ", " +
                                std::to_string(tokens) + " tokens" + detail + " (" + all.isa + ")" +
                                receipts_line(all));
}

Status do_embed(const EncoderCommand& c, int& worst) {
  INVAR_TRY(const Computed all, compute(c, /*pairs=*/false));
  worst = report(all);
  size_t size = 0;
  std::string lines;
  for (size_t i = 0; i < all.outputs.size(); ++i) {
    const EncoderOutput& out = all.outputs[i];
    if (out.problem) continue;
    size = out.values.size();
    Value row = row_json(all.texts[i], out, i);
    Value& list = row["embedding"] = Value::array;
    for (const float v : out.values) list.add(number_json(v));
    lines += line_of(row);
  }
  if (!c.json) summary("embed", all, ", " + std::to_string(size) + " numbers each");
  return deliver(c.output, c.output.ends_with(".npy") ? npy_of_rows(all.outputs) : lines);
}

Status do_rerank(const EncoderCommand& c, int& worst) {
  if (c.output.ends_with(".npy"))
    return bad_input("--output " + c.output + ": scores are lines of text, or with --json of JSON, not .npy");
  INVAR_TRY(const Computed all, compute(c, /*pairs=*/true));
  worst = report(all);
  std::string lines;
  for (const size_t i : generate::ranking(all.outputs)) {
    const float score = all.outputs[i].values[0];
    if (c.json) {
      Value row = row_json(all.texts[i], all.outputs[i], i);
      row["score"] = number_json(score);
      row["document"] = *all.texts[i].second;
      lines += line_of(row);
    } else {
      std::string text = *all.texts[i].second;
      for (const char separator : {'\n', '\r', '\t'}) std::ranges::replace(text, separator, ' ');
      lines += shortest_text(score) + "\t" + std::to_string(i) + "\t" + text + "\n";
    }
  }
  if (!c.json) summary("rerank", all, "");
  return deliver(c.output, lines);
}

}  // namespace

int embed(const EncoderCommand& c) {
  int worst = 0;
  const int code = exit_code(do_embed(c, worst));
  return code ? code : worst;
}

int rerank(const EncoderCommand& c) {
  int worst = 0;
  const int code = exit_code(do_rerank(c, worst));
  return code ? code : worst;
}

}  // namespace invar::cli
