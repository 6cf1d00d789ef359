#include "exporter/transformers_export.h"

#include "generate/cache/task_cache.h"
#ifdef INVAR_COMPILER
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/file/listing.h"
#include "base/file/temporary_file.h"
#include "base/hash/sha256.h"
#include "base/text/display.h"
#include "checkpoint/architecture.h"
#include "checkpoint/checkpoint.h"
#include "generate/model/model_folder.h"
#include "generate/onnx/check_export.h"
#endif

namespace invar::cli {

#ifndef INVAR_COMPILER
Result<std::string> export_with_transformers(const std::string&, const std::string&, const std::string&,
                                             Console&) {
  return not_covered("this build has no compiler, which an export is checked with");
}
Result<generate::ModelOptions> with_export(generate::ModelOptions model, Console&) {
  return model;
}
#else
namespace {

namespace fs = std::filesystem;
using json::Value;

// Above it a graph is another model's. The error of a sound one in binary32 is below 1e-5.
constexpr double kLargestError = 1e-4;
constexpr const char *kReport = "export.json", *kLogits = "check.f32", *kLog = "export.log";
constexpr const char* kInstall = "pip install invar torch transformers onnx onnxscript";
constexpr FileKind kSmallFile{"a report of invar.exporter", uint64_t{16} << 20},
    kLogitsFile{"logits", uint64_t{1} << 30};

struct Ended {
  bool started = true;
  int code = 0;
};

// PYTHONPATH with the package of a build, which lies beside the program's folder.
std::vector<std::string> environment_of_child() {
  std::vector<std::string> all;
  std::error_code ec;
  const fs::path package = fs::read_symlink("/proc/self/exe", ec).parent_path() / ".." / "python";
  const bool build = fs::exists(package / "invar" / "exporter", ec);
  std::string path = build ? package.lexically_normal().string() : "";
  constexpr std::string_view kPath = "PYTHONPATH=";
  for (char** e = environ; *e; ++e) {
    const std::string_view entry = *e;
    if (!entry.starts_with(kPath))
      all.emplace_back(entry);
    else if (entry.size() > kPath.size())
      path += (path.empty() ? "" : ":") + std::string(entry.substr(kPath.size()));
  }
  if (!path.empty()) all.push_back(std::string(kPath) + path);
  return all;
}

// Runs a command whose output goes to the file `log`, until it ends.
Ended run_child(const std::vector<std::string>& command, const std::string& log) {
  const auto pointers = [](const std::vector<std::string>& texts) {
    std::vector<char*> p;
    for (const std::string& t : texts) p.push_back(const_cast<char*>(t.c_str()));
    p.push_back(nullptr);
    return p;
  };
  const std::vector<std::string> environment = environment_of_child();
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, command[0].c_str(), &files, nullptr, pointers(command).data(),
                                   pointers(environment).data());
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0) return {false, error};
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return {true, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)};
}

std::string last_line(const std::string& file) {
  const auto text = read_file(file);
  if (!text) return "";
  const size_t end = text->find_last_not_of(" \r\n");
  if (end == text->npos) return "";
  const size_t begin = text->find_last_of("\r\n", end);
  return printable(
      text->substr(begin == text->npos ? 0 : begin + 1, end - (begin == text->npos ? -1 : begin)));
}

std::string interpreter(const std::string& given) {
  if (!given.empty()) return given;
  const char* named = std::getenv("INVAR_PYTHON");
  return named && *named ? named : "python3";
}

// One run of the exporter: its report.
Result<Value> run_exporter(const std::string& python, const std::vector<std::string>& arguments,
                           const std::string& folder) {
  std::vector<std::string> command = {python, "-m",        "invar.exporter", "--output",
                                      folder, "--version", INVAR_VERSION};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const std::string log = folder + "/" + kLog, report = folder + "/" + kReport;
  const Ended ended = run_child(command, log);
  if (!ended.started)
    return bad_input(python + ": " + std::strerror(ended.code) +
                     ": name a Python with --python or INVAR_PYTHON, and " + kInstall + " there");
  const auto text = read_file(report, kSmallFile);
  if (!text) {
    const std::string said = last_line(log);
    if (said.find("No module named") != said.npos)
      return bad_input(python + ": " + said + ": " + kInstall + ", or name another Python with --python");
    if (ended.code > 128)
      return bad_input(python + " -m invar.exporter: ended by signal " + std::to_string(ended.code - 128) +
                       ": is there enough memory?");
    return Error{Code::internal, python + " -m invar.exporter: " + said};
  }
  INVAR_TRY(Value made, json::read(*text, report));
  if (const Value* error = made.find("error"); error && error->is_string()) {
    const Value code = made.get("code");
    return code.is_integer() && code.to_int64() == 2 ? bad_input(error->text) : not_covered(error->text);
  }
  return made;
}

// Compares what lies in the folder with torch's logits of the same tokens.
Status check_against_torch(const std::string& folder, const Value& made, Console& console) {
  std::vector<int32_t> tokens;
  for (const Value& t : made.get("tokens").items) tokens.push_back(static_cast<int32_t>(t.to_int64()));
  INVAR_TRY(const std::string bytes, read_file(folder + "/" + kLogits, kLogitsFile));
  std::vector<float> expected(bytes.size() / sizeof(float));
  std::memcpy(expected.data(), bytes.data(), expected.size() * sizeof(float));
  INVAR_CHECK_OK(generate::check_export(folder, tokens, expected, kLargestError, console));
  return {};
}

// All files but those of the check, the model last, so that it never lacks its weights.
Status move_files(const std::string& from, const std::string& to) {
  std::error_code ec;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(from, ec)) files.push_back(entry.path().filename());
  std::ranges::sort(files, {}, [](const fs::path& f) { return std::pair(f == "model.onnx", f); });
  for (const fs::path& file : files) {
    if (file == kLogits || file == kLog) continue;
    fs::rename(from / file, to / file, ec);
    if (ec) return bad_input((to / file).string() + ": cannot be made: " + ec.message());
  }
  return {};
}

// The folder of the cache for this checkpoint as its files are now; "" where there is no cache.
std::string kept_export(const generate::ModelLocation& location) {
  const std::string root = generate::cache_folder();
  if (root.empty()) return "";
  std::error_code ec;
  Sha256 h;
  h.update("export 1, " INVAR_VERSION "\n" + fs::weakly_canonical(location.folder, ec).string());
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(location.folder, ec)) {
    struct stat s {};
    if (::stat(entry.path().c_str(), &s) != 0 || !S_ISREG(s.st_mode)) continue;
    files.push_back("\n" + entry.path().filename().string() + " " + std::to_string(s.st_size) + " " +
                    std::to_string(s.st_mtim.tv_sec) + "." + std::to_string(s.st_mtim.tv_nsec));
  }
  std::ranges::sort(files);
  for (const std::string& file : files) h.update(file);
  std::string name = location.name.substr(0, 128);
  std::ranges::replace(name, '/', '-');
  return root + "/exports/" + name + "-" + to_hex(h.finish()).substr(0, 16);
}

// Why no recipe describes the checkpoint; absent: one does, or another error will say what is
// wrong.
std::optional<Error> why_no_recipe(const generate::ModelLocation& location) {
  const std::string& folder = location.folder;
  const auto onnx_model = generate::onnx_model_of(location);
  if (!onnx_model || !onnx_model->empty()) return {};
  const auto text = read_file(folder + "/config.json");
  const Value config = text ? json::read_or_null(*text) : Value();
  // An encoder writes no text, if it is not trained as a decoder; quantized weights have a way out
  // that the refusal names.
  const bool encoder = checkpoint::encoder_type(config) && !config.get("is_decoder").is_true();
  if (encoder || config.contains("quantization_config")) return {};
  const Status described = checkpoint::check_recipe(folder);
  if (described || described.error().code != Code::not_covered) return {};
  return described.error();
}

}  // namespace

Result<std::string> export_with_transformers(const std::string& folder, const std::string& output,
                                             const std::string& given, Console& console) {
  const std::string python = interpreter(given);
  std::error_code ec;
  fs::create_directories(output, ec);
  if (!fs::is_directory(output, ec)) return bad_input("--output " + output + ": no folder can be made there");
  INVAR_TRY(const TemporaryFolder made, TemporaryFolder::make(output));
  INVAR_TRY(const Value packages, run_exporter(python, {"--versions"}, made.path()));
  console.note("exporter", python + " (" + packages.get("exporter").text + ") exports " + folder +
                               ": ten seconds for a small model, minutes for a large one");
  Error refused;
  for (const bool plain : {false, true}) {
    std::vector<std::string> arguments = {"--model", folder};
    if (plain) arguments.emplace_back("--plain");
    const auto exporting = console.phase("export");
    auto report = run_exporter(python, arguments, made.path());
    Status sound;
    if (report) {
      exporting->done(report->get("model").text + (plain ? ", as a graph without states" : ""));
      sound = check_against_torch(made.path(), *report, console);
    }
    if (report && sound) {
      INVAR_CHECK_OK(move_files(made.path(), output));
      return output + "/model.onnx";
    }
    Error why = report ? sound.error() : report.error();
    if (why.code != Code::not_covered) return why;
    if (plain) return not_covered(folder + ": with states: " + refused.message + "; without: " + why.message);
    console.note("states", "none: " + why.message + "; now a graph without them");
    refused = std::move(why);
  }
  return refused;
}

Result<generate::ModelOptions> with_export(generate::ModelOptions model, Console& console) {
  if (!model.plan.empty()) return model;
  INVAR_TRY(const auto location,
            generate::obtain({model.model_name, model.revision, model.offline}, console));
  const std::optional<Error> why = why_no_recipe(location);
  if (!why) return model;
  const std::string folder = kept_export(location);
  if (folder.empty()) return *why;
  if (!is_file(folder + "/model.onnx")) {
    std::error_code ec;
    const fs::path parent = fs::path(folder).parent_path();
    fs::create_directories(parent, ec);
    fs::permissions(parent, fs::perms::owner_all, ec);  // as task folders
    auto exported = export_with_transformers(location.folder, folder, "", console);
    if (!exported && exported.error().code == Code::bad_input)
      return why->around(
          "", "; `invar export --with-transformers` makes one that runs: " + exported.error().message);
    INVAR_CHECK_OK(exported);
  } else {
    console.note("exporter", "the export of " + location.folder + " is in " + folder);
  }
  if (model.name.empty()) model.name = location.name;
  model.model_name = folder, model.revision.clear();
  return model;
}
#endif

}  // namespace invar::cli
