// The whole interface without a terminal and without processes: keys go in, requests and a picture
// come out.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "model/job.h"
#include "pages/form_page.h"
#include "pages/receipts_page.h"
#include "pages/run_page.h"
#include "screen/popup.h"

namespace invar::tui {

// A request of the user that the program must carry out.
struct Request {
  enum class Kind {
    start,        // a child with these arguments
    stop,         // ask the child to stop
    kill,         // end it
    say,          // a line to its standard input
    list_models,  // `invar cache list --json`
    quit,
  };
  Kind kind;
  std::vector<std::string> arguments = {};
  std::string text = {};
  bool speaks = false;  // start: its standard input stays open
};

class App {
 public:
  App(Form, const std::string& receipts_folder);

  void handle(const Key&, double now);
  void draw(Canvas&, double now);
  std::vector<Request> take_requests();

  // Take the output of the child that runs.
  void read_err(std::string_view bytes, double now);
  void read_out(std::string_view bytes);
  void ended(int code, int signal, double now);
  void not_started(const std::string& why, double now);
  void set_hub(const std::vector<HubModel>&);
  // A little work that waits; whether some is left.
  bool work() { return page_ == Page::receipts && receipts_.read_some(); }

  bool running() const { return active_ != nullptr; }
  bool ran() const { return ran_; }
  const Form& form() const { return form_page_.form(); }
  const Job* job() const { return job_ ? &*job_ : nullptr; }
  void say(const std::string& message) { message_ = message; }

 private:
  enum class Page { form, run, receipts };
  bool handle_global(const Key&, double now);
  void handle_form(const Key&);
  void handle_run(const Key&, double now);
  void handle_receipts(const Key&, double now);
  void show(Page);
  void start(double now);
  void stop();
  void quit();
  void reset();
  void check(const std::string& path, const std::string& model, const char* command, double now);
  void check_last(double now);
  void choose();
  void browse();
  void browse_receipts_folder();
  void draw_header(Canvas&, double now);
  void draw_footer(Canvas&);
  std::string receipts_folder() const;

  Page page_ = Page::form;
  FormPage form_page_;
  RunPage run_page_;
  ReceiptsPage receipts_;
  std::string receipts_opened_;  // the folder that the user chose, or ""
  std::optional<Job> job_, check_;
  Job* active_ = nullptr;  // one of them
  std::string checked_;    // the receipt of check_
  ReceiptView before_;     // what was known of it
  bool stopping_ = false, ran_ = false;
  Verdicts verdicts_;
  std::unique_ptr<Popup> popup_;
  std::vector<HubModel> hub_;
  std::string message_;
  std::optional<Form> before_reset_;
  std::vector<Request> requests_;
};

}  // namespace invar::tui
