#include "options/values.h"

#include <algorithm>

#include "base/text/decimal.h"
#include "device/find_device.h"
#include "kernels/registry.h"

namespace invar::cli {
namespace {

// Calls `take` with each part of a list with commas.
template <class Take>
void for_each_of(std::string_view list, const Take& take) {
  for (size_t end; !list.empty(); list.remove_prefix(std::min(end + 1, list.size())))
    end = std::min(list.find(','), list.size()), take(std::string(list.substr(0, end)));
}

bool is_device(const std::string& name) {
  return name == "cpu" || name == "cuda" ||
         (name.starts_with("cuda:") && parse_whole(name.substr(5), 0, INT32_MAX));
}

}  // namespace

void check_device(CLI::Option* device, bool is_list) {
  device->check([is_list](const std::string& value) -> std::string {
    const auto expect = [](const std::string& name) {
      if (is_device(name)) return;
      throw Refused{{bad_input("--device: " + name + " is not cpu, cuda or cuda:N"),
                     did_you_mean(nearest(name, {"cpu", "cuda"}))}};
    };
    if (!is_list) return expect(value), "";
    if (("," + value + ",").find(",,") != std::string::npos)
      throw Refused{{bad_input("--device: " + value +
                               " has an empty name; give names, comma separated, such as cuda:0,cuda:1"),
                     ""}};
    for_each_of(value, expect);
    return "";
  });
}

void check_isa(CLI::Option* isa) {
  isa->check([](const std::string& value) -> std::string {
    std::vector<std::string> here;
    for (const std::string_view name : ops::isas_and_extensions()) here.emplace_back(name);
    if (value.empty() || std::ranges::count(here, value) > 0) return "";
    std::string list;
    for (const std::string& name : here) list += (list.empty() ? "" : ", ") + name;
    throw Refused{
        {bad_input("--isa: " + value + " is no instruction set that this CPU and build have: " + list),
         did_you_mean(nearest(value, here))}};
  });
}

void expect_device(const std::string& name) {
  if (const Status found = find_device(name); !found)
    throw Refused{{Error{found.error().code, "--device " + name + ": " + found.error().message}, ""}};
}

void expect_devices(const generate::ExecutionOptions& o) {
  if (!o.cpu_only && o.workers.empty()) for_each_of(o.device, expect_device);
}

}  // namespace invar::cli
