// Reads and writes the file of `invar bench --publish`.
#include "bench/report/published.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <sstream>

#include "base/file/file.h"
#include "base/text/json.h"
#include "base/thread_pool.h"
#include "bench/report/report.h"
#include "device/machine.h"

namespace invar::bench {
namespace {

using json::Value;
constexpr std::string_view kSchema = "invar-bench 1";

rusage used_by(int who) {
  rusage used{};
  ::getrusage(who, &used);
  return used;
}

double seconds_of(const timeval& t) {
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
}

// Processor time of this machine since it started that is neither this process's nor that of its
// children that ended. Time that a virtual machine had to wait for is another's.
double seconds_of_others() {
  const auto text = read_file("/proc/stat");
  std::istringstream line(text ? *text : "");
  std::string name;
  double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, interrupts = 0, soft = 0, stolen = 0;
  line >> name >> user >> nice >> system >> idle >> waiting >> interrupts >> soft >> stolen;
  double seconds =
      (user + nice + system + interrupts + soft + stolen) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  for (int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    const rusage own = used_by(who);
    seconds -= seconds_of(own.ru_utime) + seconds_of(own.ru_stime);
  }
  return seconds;
}

std::string today() {
  char day[16] = "";
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  if (::gmtime_r(&now, &utc)) std::strftime(day, sizeof day, "%Y-%m-%d", &utc);
  return day;
}

Limit limit_from(const Value& v) {
  return {v.get("isa").text, static_cast<int>(v.get("threads").to_int64()),
          v.get("flops_per_second").to_double(), v.get("read_bytes_per_second").to_double(),
          v.get("copy_bytes_per_second").to_double()};
}

Row row_from(const Value& v) {
  const auto number = [&](const char* name) { return v.get(name).to_double(); };
  Row r;
  r.suite = v.get("suite").text, r.op = v.get("op").text, r.shape = v.get("shape").text;
  r.text = v.get("call").text, r.isa = v.get("isa").text, r.peer = v.get("peer").text;
  r.threads = static_cast<int>(v.get("threads").to_int64());
  r.seconds = number("seconds"), r.best_seconds = number("best_seconds");
  r.peer_seconds = number("peer_seconds"), r.peer_best_seconds = number("peer_best_seconds");
  r.flops = number("flops"), r.bytes = number("bytes");
  r.limit_seconds = number("fraction_of_limit") * r.seconds;
  r.by_flops = v.get("limit").text == "flops";
  if (const double each = number("ns_per_element"); each > 0)
    r.elements = r.seconds * std::max(r.threads, 1) / each * 1e9;
  return r;
}

}  // namespace

Result<Published> Published::open(const std::string& path) {
  Published p;
  p.path_ = path, p.started_ = now(), p.others_before_ = seconds_of_others();
  std::error_code ec;
  if (!std::filesystem::exists(path, ec)) return p;
  INVAR_TRY(const std::string text, read_file(path));
  INVAR_TRY(const Value file, json::parse(text, path));
  if (file.get("schema").text != kSchema)
    return bad_input(path + ": no report of `invar bench --publish`: name another file");
  const std::string &cpu = file.get("cpu").text, &version = file.get("version").text;
  if (cpu != processor() || version != INVAR_VERSION)
    return bad_input(path + ": of Invar " + version + " on " + cpu + ": name another file for Invar " +
                     INVAR_VERSION + " on " + processor());
  p.report_.device = file.get("device").text, p.report_.peer = file.get("peer").text;
  for (const Value& limit : file.get("limits").items) p.report_.limits.push_back(limit_from(limit));
  for (const Value& v : file.get("rows").items) {
    Row row = row_from(v);
    if (!(row.seconds > 0 && row.best_seconds > 0 && (row.peer.empty() || row.peer_best_seconds > 0)))
      return bad_input(path + ": rows[" + std::to_string(p.report_.rows.size()) + "] has no time");
    p.report_.rows.push_back(std::move(row));
  }
  p.seconds_ = file.get("seconds").to_double(), p.others_ = file.get("seconds_of_others").to_double();
  p.most_memory_ = file.get("most_memory_bytes").to_int64();
  return p;
}

Status Published::write(const Report& report) const {
  INVAR_TRY(Value all, json::parse(json_of(report), "the report"));
  all["schema"] = kSchema, all["version"] = INVAR_VERSION, all["day"] = today();
  all["most_memory_bytes"] =
      std::max(most_memory_, static_cast<int64_t>(used_by(RUSAGE_SELF).ru_maxrss) * 1024);
  all["seconds"] = seconds_, all["seconds_of_others"] = others_;
  all["processors"] = available_cores();
  return write_file(path_, json::dump(json::sorted(std::move(all)), {.indent = 1}) + "\n");
}

Status Published::finish(const Report& report) {
  seconds_ += now() - started_;
  others_ += std::max(seconds_of_others() - others_before_, 0.0);
  return write(report);
}

}  // namespace invar::bench
