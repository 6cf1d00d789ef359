// Nodes that run one after the other, part by part: those of a program, or of the body of a node of control flow (plan.16).
#pragma once

#include <map>
#include <memory>

#include "run/execute/segment.h"

namespace invar::run {

// Where a value lies.
struct Found {
  ops::View view;
  bool on_device;
};
// On a GPU it has arrived after wait().
Status copy(const Setting&, void* to, bool to_device, const Found& from);

struct Flow;

class Scope {
 public:
  // Of the plan, or of one of its bodies. `cut`: parts_of(plan), whose parts go over to the scopes. The plan and the setting must
  // outlive it.
  static Result<std::unique_ptr<Scope>> open(const plan::Plan&, std::vector<plan::Parts>& cut, int body,
                                             const Setting&);
  ~Scope();

  // An input, which stays as it is until all results were read.
  void give(int v, const Found& found) { given_[v] = found; }
  // The symbols that the dimensions of inputs say, of those that are bound here; then as run().
  Status call(std::vector<int64_t>& sizes);
  // Where nothing but those decides sizes: the same as call(), for inputs of the shapes that the last one had.
  bool repeats() const { return repeats_; }
  Status call_again() { return run_part(parts_[0]); }
  // A value of a body that is computed from constants alone.
  bool unchanging(int v) const;
  // For the sizes that inputs say, -1 for what is bound on the way; `fetched`: values that are read on the host.
  Status run(std::vector<int64_t>& sizes, const std::vector<int>& fetched = {});
  // An input, or what was made: there, or, of what was fetched, as it is on the host.
  Found value(int v, bool fetched = false) const;
  bool makes(int v) const { return made_.contains(v); }

  Status weights_unchanged();
  size_t bytes() const;
  // Each once, in the order of the parts, those of bodies behind them.
  void add_names(std::vector<std::string> (*names_of)(const Program&), std::vector<std::string>& all) const;

 private:
  Scope(const plan::Plan&, const Setting&, int body);
  Status bind(const plan::Part&, std::vector<int64_t>& sizes) const;
  Status derive_sizes(const plan::Part&, std::vector<int64_t>& sizes) const;
  // The shapes of values that come from elsewhere say what symbols are that are bound here.
  Status take_sizes(const std::vector<int>& values, const std::string& what,
                    std::vector<int64_t>& sizes) const;
  Status run_part(PartProgram&);  // which has its sizes
  template <class T>
  Result<T> read(int v, int64_t element = 0) const;
  // flow.cc
  Status open_flow(int at, std::vector<plan::Parts>& cut);
  Status run_flow(int at, std::vector<int64_t>& sizes);
  Status loop(Flow&, std::vector<int64_t>& sizes);
  const plan::Node& node(int at) const {
    return body_ < 0 ? plan_.nodes[static_cast<size_t>(at)]
                     : plan_.bodies[static_cast<size_t>(body_)].nodes[static_cast<size_t>(at)];
  }

  const plan::Plan& plan_;
  const Setting& setting_;
  int body_;
  std::vector<PartProgram> parts_;
  std::vector<int> own_, numbers_;
  struct Made {
    size_t part;
    int value;  // there
  };
  std::map<int, Made> made_;  // values that are read behind the part that makes them
  std::map<int, Found> given_;
  // Where the inputs of a part are: among those that were given, or in a part before it.
  struct Source {
    const Found* given;
    Made made;
  };
  std::vector<std::vector<Source>> sources_;
  Found value(const Source&, bool fetched = false) const;
  bool repeats_ = false;
  std::map<int, std::unique_ptr<Flow>> flows_;  // by where their nodes stand
};

}  // namespace invar::run
