// invar bench: what bench/ measures, as a table, JSON or a drawing.
#include <algorithm>
#include <cstdio>
#include <optional>

#include "base/file/file.h"
#include "bench/load/load.h"
#include "bench/report/published.h"
#include "bench/report/report.h"
#include "commands.h"
#include "console.h"
#include "outputs/folders.h"

namespace invar::cli {
namespace {

Status do_bench(const BenchCommand& c) {
  bench::Settings settings = c.settings;
  if (!c.suites.empty()) settings.suites = c.suites;
  const bool model = std::find(c.suites.begin(), c.suites.end(), "model") != c.suites.end();
  if (!model && settings.profile)
    return bad_input("--numerics is of the suite model alone: `invar bench model --numerics PROFILE`");
  OutputFolders folders;
  INVAR_CHECK_OK(folders.make_above("--plot", c.plot));
  INVAR_CHECK_OK(folders.make_above("--publish", c.publish));
  bench::Report report;
  std::optional<bench::Published> published;
  if (!c.publish.empty()) {
    INVAR_TRY(published, bench::Published::open(c.publish));
    report = published->report();
  }
  const bench::Keep keep = [&](const bench::Report& r) { return published ? published->write(r) : Status(); };
  Console console(c.json);
  auto measuring = console.phase("measure");
  const auto progress = [&](size_t done, size_t total, const auto&) {
    measuring->progress(static_cast<int64_t>(done), static_cast<int64_t>(total), "measurements");
  };
  INVAR_CHECK_OK(bench::measure(settings, report, progress, keep));
  if (!report.rows.empty()) measuring->done(std::to_string(report.rows.size()) + " measurements");
  measuring.reset();
  if (model) {
    INVAR_CHECK_OK(bench::measure_model(settings, c.model_name, report, console, keep));
  }
  if (report.rows.empty()) return bad_input("nothing to measure: no such operation in these suites");
  if (!c.plot.empty()) {
    INVAR_CHECK_OK(write_file(c.plot, bench::svg(report)));
  }
  if (published) {
    INVAR_CHECK_OK(published->finish(report));
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
