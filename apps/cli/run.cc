// invar run: export -> compile -> encode -> infer -> decode -> receipt.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/text/display.h"
#include "base/file/file.h"
#include "base/file/disk_reservation.h"
#include "base/file/temporary_file.h"
#include "commands.h"
#include "console.h"
#include "find_model.h"
#include "generate.h"
#include "model.h"
#include "prepare.h"
#include "receipt/json.h"
#include "seal.h"

namespace invar::cli {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

struct Job {
  std::string prompt, receipt_path;
  std::vector<int32_t> tokens;
  int64_t max_new_tokens = 0;
};

// One line of a prompt file.
Result<std::string> read_prompt(std::string_view row, const std::string& where) {
  using receipt::json::Value;
  INVAR_TRY(Value line, receipt::json::parse(row, where));
  if (line.kind == Value::string) return line.text;
  const Value* prompt = nullptr;
  for (const auto& [key, value] : line.members) {
    if (key == "messages")
      return not_covered(
          where + ": chat messages need a chat template, which this version does not apply: give \"prompt\"");
    if (key != "prompt")
      return bad_input(where + ": " + receipt::json::quote(receipt::json::brief(key)) +
                       " is no key of a prompt, only \"prompt\" is: give parameters as options");
    if (prompt) return bad_input(where + ": \"prompt\" is given twice");
    prompt = &value;
  }
  if (!prompt || prompt->kind != Value::string)
    return bad_input(where + ": neither a JSON string nor an object with \"prompt\"");
  return prompt->text;
}

Result<std::vector<Job>> read_prompt_file(const std::string& path, const std::string& receipt_path) {
  INVAR_TRY(std::string text, read_file(path, kPromptFile));
  std::vector<Job> jobs;
  size_t begin = text.starts_with("\xef\xbb\xbf") ? 3 : 0;  // a byte order mark
  for (int line = 1; begin < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view row = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    if (row.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    INVAR_TRY(std::string prompt, read_prompt(row, path + ":" + std::to_string(line)));
    jobs.push_back({std::move(prompt), "", {}, 0});
  }
  if (jobs.empty()) return bad_input(path + ": no prompts in it");
  // r.json -> r.1.json, r.2.json, ... where there are several.
  const fs::path base(receipt_path);
  for (size_t i = 0; i < jobs.size(); ++i)
    jobs[i].receipt_path =
        jobs.size() == 1 ? receipt_path
                         : (base.parent_path() /
                            (base.stem().string() + "." + std::to_string(i + 1) + base.extension().string()))
                               .string();
  return jobs;
}

// Found out before anything is computed: can a file of so many bytes be made where the receipt shall be? The space is held
// until the receipt is written. Nothing is held where a device or a pipe takes the receipt.
Result<DiskReservation> reserve(const std::string& path, uint64_t bytes) {
  if (path.empty()) return bad_input("--receipt-path is empty: give a file name");
  const auto unwritable = [&](const std::string& why) {
    return bad_input("receipt " + path + ": " + why + ": choose another --receipt-path");
  };
  struct stat there;
  if (::stat(path.c_str(), &there) == 0) {
    if (S_ISDIR(there.st_mode)) return bad_input("receipt " + path + ": is a folder: give a file name");
    if (!S_ISREG(there.st_mode)) {
      if (::access(path.c_str(), W_OK) != 0) return unwritable(std::strerror(errno));
      return DiskReservation();
    }
  } else if (errno != ENOENT) {
    return unwritable(std::strerror(errno));
  }
  auto made = DiskReservation::make(path, bytes);
  if (!made) return unwritable(made.error().message);
  return made;
}

// About what the receipt of a job takes: as it is without an answer, and for each new token its digest, its id and some text.
uint64_t receipt_size(const receipt::Receipt& described, const Job& job) {
  constexpr uint64_t kToken = 128, kExecution = 4096;
  return receipt::print(described).size() + kExecution + 6 * job.prompt.size() + 12 * job.tokens.size() +
         kToken * static_cast<uint64_t>(job.max_new_tokens);
}

// A finished run is never lost: a receipt that cannot be written where asked goes to the temporary folder.
Status save_receipt(const std::string& path, const std::string& content) {
  const Status first = write_file(path, content);
  if (first) return first;
  std::error_code ec;
  const std::string rescue = temporary_path(fs::temp_directory_path(ec).string()) + "-receipt.json";
  if (write_file(rescue, content))
    return Error{first.error().code, first.error().message + "; the receipt was saved as " + rescue};
  std::fprintf(stderr, "%s\n", printable_json(content).c_str());
  return Error{first.error().code, first.error().message + "; the receipt stands above"};
}

// The number that JSON prints with as many digits as tell binary32 numbers apart.
double shortest(float x) {
  char text[32];
  double value = 0;
  std::from_chars(text, std::to_chars(text, text + sizeof text, x).ptr, value);
  return value;
}

// `written`: what became of standard output, which is no reason to stop.
Status run_job(const Job& job, const RunOptions& o, const Model& model, const sample::Params& params,
               const receipt::Receipt& described, run::Session& session, bool several, Status& written,
               const std::function<void()>& before_receipt) {
  const bool terminal = stdout_is_terminal();
  if (!o.json && several && written) written = write_stdout("== " + path_for_stdout(job.receipt_path) + "\n");
  if (!o.json && terminal && written) {
    std::fputs("\n\033[1m", stdout);
    written = write_stdout(job.prompt);
    std::fputs("\033[0m", stdout);
  }
  prompt::Stream stream(model.tokenizer);
  INVAR_TRY(Generation g,
            generate(session, job.tokens, job.max_new_tokens, params, model.stop_tokens, [&](int32_t token) {
              const std::string piece = stream.push(token);
              if (!o.json && written) written = write_stdout(piece);
            }));
  if (!o.json && written) written = write_stdout(stream.finish() + "\n");
  INVAR_CHECK_OK(session.weights_unchanged());

  receipt::Receipt r = described;
  r.prompt = job.prompt;
  r.prompt_tokens = job.tokens;
  r.max_new_tokens = job.max_new_tokens;
  r.stop_tokens = model.stop_tokens;
  r.sampling = params;
  r.tokens = g.tokens;
  r.text = model.tokenizer.decode(g.tokens);
  r.finish_reason = g.finish_reason;
  r.logits = g.logits;
  r.execution = describe_execution(session, o.record_model_path ? o.model.model_name : "",
                                   operation_set_from(r.operation_set).value(), o.execution);
  const std::string hash = to_hex(receipt::receipt_hash(r));
  before_receipt();
  INVAR_CHECK_OK(save_receipt(job.receipt_path, receipt::print(r)));

  if (o.json) {
    json j = {{"text", r.text},
              {"tokens", r.tokens},
              {"prompt_tokens", r.prompt_tokens},
              {"finish_reason", r.finish_reason},
              {"receipt", job.receipt_path},
              {"receipt_hash", hash},
              {"prefill_seconds", g.prefill_seconds},
              {"decode_tokens_per_second", g.decode_tokens_per_second},
              {"sampling",
               {{"do_sample", params.do_sample},
                {"temperature", shortest(params.temperature)},
                {"top_k", params.top_k},
                {"top_p", shortest(params.top_p)},
                {"seed", params.seed}}},
              {"max_new_tokens", job.max_new_tokens},
              {"isa", session.isa()},
              {"threads", session.threads()},
              {"kernels", session.kernels()},
              {"libraries", session.libraries()},
              {"operation_set", r.operation_set},
              {"peak_bytes", session.peak_bytes()}};
    if (written) written = write_stdout(line_of(j));
  } else {
    if (terminal) std::fputs("\n", stderr);
    std::fprintf(stderr, "  %-9s %s, at most %lld new tokens\n", "sampling", sample::describe(params).c_str(),
                 static_cast<long long>(job.max_new_tokens));
    std::fprintf(stderr, "  %-9s %zu tokens, %.0f tokens/s (%s, %d thread%s)\n", "infer", g.tokens.size(),
                 g.decode_tokens_per_second, std::string(session.isa()).c_str(), session.threads(),
                 session.threads() == 1 ? "" : "s");
    if (r.operation_set != name_of(OperationSet::reproducible))
      std::fprintf(stderr, "  %-9s %s (%s): not for others to verify\n", "set", r.operation_set.c_str(),
                   r.execution["libraries"] == "none" ? "no library used" : r.execution["libraries"].c_str());
    std::fprintf(stderr, "  %-9s %s\n  %-9s %s\n", "receipt", printable(job.receipt_path).c_str(), "hash",
                 hash.c_str());
  }
  return {};
}

Status do_run(const RunOptions& o) {
  INVAR_CHECK_OK(operation_set(o.model.operation_set));
  std::vector<Job> jobs;
  if (!o.prompt_file.empty()) {
    INVAR_TRY(jobs, read_prompt_file(o.prompt_file, o.receipt_path));
  } else {
    jobs.push_back({o.prompt_text.value_or(""), o.receipt_path, {}, 0});
  }
  INVAR_TRY(Place place, resolve(o.model.model_name));
  INVAR_TRY(Model model, open_model(place));
  INVAR_TRY(const Decoding how, decoding(model, o.sampling));
  int64_t longest = 0;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const std::string which = jobs.size() > 1 ? "prompt " + std::to_string(i + 1) : "prompt";
    auto tokens = model.tokenizer.encode(jobs[i].prompt);
    if (!tokens) return Error{tokens.error().code, which + ": " + tokens.error().message};
    jobs[i].tokens = std::move(*tokens);
    const int64_t n = static_cast<int64_t>(jobs[i].tokens.size());
    if (n == 0) return bad_input(which + ": no tokens in it: give some text");
    const auto most = new_tokens(model, how, n);
    if (!most) return Error{most.error().code, which + ": " + most.error().message};
    jobs[i].max_new_tokens = *most;
    longest = std::max(longest, n + *most);
    INVAR_TRY(const DiskReservation possible, reserve(jobs[i].receipt_path, 1));
  }
  INVAR_TRY(Prepared prepared, prepare(place, o.model, o.json));
  receipt::Receipt described = describe(model, prepared.plan);
  // All receipts of a run lie in one folder.
  uint64_t needed = 0;
  std::vector<uint64_t> still(jobs.size());  // what is needed for the jobs behind each
  for (size_t i = jobs.size(); i-- > 0;) {
    still[i] = needed;
    needed += receipt_size(described, jobs[i]);
  }
  INVAR_TRY(DiskReservation space, reserve(jobs[0].receipt_path, needed));
  Phase loading("load", o.json);
  const auto open = [&]() -> Result<run::Session> {
    run::Options options = session_options(o.execution, longest);
    options.hashed = prepared.hashed.get();
    return run::Session::open(prepared.plan, prepared.folder, options);
  };
  auto opened = open();
  if (!opened && opened.error().code == Code::failed && prepared.cached && o.model.colocate_tensors) {
    // The copies in the task folder are damaged, which says nothing about the checkpoint.
    std::fprintf(stderr, "  %-9s %s; made anew\n", "damaged", printable(opened.error().message).c_str());
    INVAR_TRY(prepared, prepare(place, o.model, o.json, Cache::replace));
    described = describe(model, prepared.plan);
    opened = open();
  }
  INVAR_TRY(run::Session session, std::move(opened));
  loading.done(model.name + ", weights " + to_hex(described.weights).substr(0, 16));
  report_threads(session.threads(), o.execution);
  remember_checkpoint(described.weights, place.folder);
  // What becomes of the terminal ends no run: its receipt is the result.
  std::signal(SIGHUP, SIG_IGN);
  Status written;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const auto make_room = [&] { space.shrink(still[i]); };
    INVAR_CHECK_OK(
        run_job(jobs[i], o, model, how.params, described, session, jobs.size() > 1, written, make_room));
  }
  return written;
}

}  // namespace

int run(const RunOptions& o) {
  const Status s = do_run(o);
  return s ? 0 : fail(s.error());
}

}  // namespace invar::cli
