// invar download, invar cache: models of the hub, and what runs keep.
#include <chrono>
#include <ctime>

#include "artifacts.h"
#include "base/text/display.h"
#include "base/text/json.h"
#include "base/text/size_text.h"
#include "commands.h"
#include "console.h"
#include "generate/cache/task_cache.h"
#include "generate/model/model_folder.h"
#include "hub/environment.h"

namespace invar::cli {
namespace {

using json::Value;

constexpr int64_t kSecondsPerDay = 86400;

std::string day_and_time(int64_t seconds) {
  const std::time_t time = seconds;
  std::tm utc{};
  char text[32];
  ::gmtime_r(&time, &utc);
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &utc);
  return text;
}

Status do_download(const DownloadCommand& c) {
  Console console(c.json);
  INVAR_TRY(const auto location, generate::download({c.model_name, c.revision}, console));
  if (c.json) return deliver("", line_of({{"folder", location.path()}, {"revision", location.revision}}));
  return deliver("", path_for_stdout(location.path()) + "\n");
}

Status do_list(const CacheCommand& c) {
  const std::string root = generate::tasks_folder(c.tasks_root);
  Value tasks = Value::array, models = Value::array;
  uint64_t task_bytes = 0, model_bytes = 0;
  std::string task_lines, model_lines;
  for (const generate::CachedTask& t : generate::cached_tasks(c.tasks_root)) {
    tasks.add({{"path", t.path}, {"bytes", t.bytes}, {"last_use", t.last_use}, {"in_use", t.in_use}});
    task_bytes += t.bytes;
    task_lines += "  " + path_for_stdout(t.path.substr(root.size() + 1)) + "  " + size_text(t.bytes) +
                  ", last used " + day_and_time(t.last_use) + (t.in_use ? ", in use" : "") + "\n";
  }
  for (const hub::CachedModel& m : hub::cached_models()) {
    models.add({{"name", m.repository}, {"revision", m.commit}, {"bytes", m.bytes}});
    model_bytes += m.bytes;
    model_lines += "  " + path_for_stdout(m.repository + "@" + m.commit) + "  " + size_text(m.bytes) + "\n";
  }
  if (c.json)
    return write_stdout(line_of(
        {{"tasks_root", root}, {"tasks", tasks}, {"hub_cache", hub::cache_folder()}, {"models", models}}));
  return write_stdout("tasks in " + path_for_stdout(root) + ": " + std::to_string(tasks.size()) + ", " +
                      size_text(task_bytes) + "\n" + task_lines + "models in " +
                      path_for_stdout(hub::cache_folder()) + ": " + std::to_string(models.size()) + ", " +
                      size_text(model_bytes) + "\n" + model_lines);
}

Status do_prune(const CacheCommand& c) {
  if (!c.all && !c.days && c.max_size.empty())
    return bad_input("cache prune: say what to remove: --older-than DAYS, --max-size SIZE or --all");
  generate::PruneRule rule;
  rule.all = c.all;
  if (c.days)
    rule.used_before =
        static_cast<int64_t>(std::time(nullptr)) - static_cast<int64_t>(*c.days) * kSecondsPerDay;
  if (!c.max_size.empty()) {
    rule.most_bytes = parse_size(c.max_size);
    if (!rule.most_bytes)
      return bad_input("--max-size " + c.max_size + ": not a number of bytes, such as 500MB or 20GB");
  }
  const generate::Pruned pruned = generate::prune_tasks(c.tasks_root, rule);
  Console console(false);
  for (const std::string& path : pruned.kept)
    console.note("kept", path + ": a run uses it, or it cannot be removed");
  if (c.json)
    return write_stdout(
        line_of({{"removed", pruned.removed}, {"bytes", pruned.bytes}, {"kept", pruned.kept}}));
  return write_stdout(std::to_string(pruned.removed) + " task folders removed, " + size_text(pruned.bytes) +
                      "\n");
}

}  // namespace

int download(const DownloadCommand& c) {
  return exit_code(do_download(c));
}
int list_cache(const CacheCommand& c) {
  return exit_code(do_list(c));
}
int prune_cache(const CacheCommand& c) {
  return exit_code(do_prune(c));
}

}  // namespace invar::cli
