// invar bench: what bench/ measures, as a table, JSON or a drawing.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "base/file/file.h"
#include "base/text/json.h"
#include "bench/load/load.h"
#include "bench/report.h"
#include "commands.h"
#include "console.h"
#include "outputs/folders.h"

namespace invar::cli {
namespace {

// The report with what a reader of another day needs, for tools/docs/bench_page.py.
Result<std::string> published(const bench::Report& report) {
  INVAR_TRY(json::Value all, json::parse(bench::json_of(report), "the report"));
  char day[16] = "";
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  if (::gmtime_r(&now, &utc)) std::strftime(day, sizeof day, "%Y-%m-%d", &utc);
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  all["schema"] = "invar-bench 1";
  all["day"] = day;
  all["version"] = INVAR_VERSION;
  all["most_memory_bytes"] = static_cast<int64_t>(used.ru_maxrss) * 1024;
  return json::dump(json::sorted(std::move(all)), {.indent = 1}) + "\n";
}

Status do_bench(const BenchCommand& c) {
  bench::Settings settings = c.settings;
  if (!c.suites.empty()) settings.suites = c.suites;
  const bool model = std::find(c.suites.begin(), c.suites.end(), "model") != c.suites.end();
  if (!model && settings.profile)
    return bad_input("--numerics is of the suite model alone: `invar bench model --numerics PROFILE`");
  OutputFolders folders;
  INVAR_CHECK_OK(folders.make_above("--plot", c.plot));
  INVAR_CHECK_OK(folders.make_above("--publish", c.publish));
  Console console(c.json);
  auto measuring = console.phase("measure");
  INVAR_TRY(bench::Report report, bench::measure(settings, [&](size_t done, size_t total, const auto&) {
              measuring->progress(static_cast<int64_t>(done), static_cast<int64_t>(total), "measurements");
            }));
  if (!report.rows.empty()) measuring->done(std::to_string(report.rows.size()) + " measurements");
  measuring.reset();
  if (model) {
    INVAR_CHECK_OK(bench::measure_model(settings, c.model_name, report, console));
  }
  if (report.rows.empty()) return bad_input("nothing to measure: no such operation in these suites");
  if (!c.plot.empty()) {
    INVAR_CHECK_OK(write_file(c.plot, bench::svg(report)));
  }
  if (!c.publish.empty()) {
    INVAR_TRY(const std::string text, published(report));
    INVAR_CHECK_OK(write_file(c.publish, text));
  }
  const std::string text = c.json ? bench::json_of(report) : bench::table(report);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    return bad_input("standard output: cannot be written (full disk or closed pipe?)");
  return {};
}

Status do_bench_serve(const LoadCommand& c) {
  for (const double rate : c.settings.rates)
    if (rate <= 0) return bad_input("--rate: more than 0 requests per second are needed");
  OutputFolders folders;
  INVAR_CHECK_OK(folders.make_above("--plot", c.plot));
  Console console(c.json);
  INVAR_TRY(const bench::LoadReport report, bench::measure_load(c.settings, console));
  if (!c.plot.empty()) {
    INVAR_CHECK_OK(write_file(c.plot, bench::load_svg(report)));
  }
  return write_stdout(c.json ? bench::load_json(report) : bench::load_table(report));
}

}  // namespace

int bench_serve(const LoadCommand& c) {
  return exit_code(do_bench_serve(c));
}

int bench(const BenchCommand& c) {
  return exit_code(do_bench(c));
}

}  // namespace invar::cli
