// The form: what is run, and how.
#pragma once

#include <array>

#include "model/form.h"
#include "screen/canvas.h"
#include "screen/edit.h"

namespace invar::tui {

class FormPage {
 public:
  explicit FormPage(Form);
  const Form& form() const { return form_; }
  void set(Form);
  void set(Field, const std::string& value);
  Field focus() const { return focus_; }
  void focus(Field f) { focus_ = f; }
  // Makes fields that lack a value say so.
  void complain() { complains_ = true; }

  void draw(Canvas&, const Rect&);
  enum class Did { nothing, handled, choose, browse };
  // choose, browse: a list of the focused field's values is wanted.
  Did handle(const Key&);
  // The characters of the last paste that were left out.
  size_t left_out() const { return left_out_; }

 private:
  struct Place {
    Field field;
    int y, height;  // from the top of the form
  };
  std::vector<Place> places(int width, int height);
  void draw_fields(Canvas&, const Rect&);
  void draw_field(Canvas&, const Rect& label, const Rect& value, Field);
  void draw_about(Canvas&, const Rect&);
  void move(int by);
  void cycle(int by);
  Edit& edit() { return edits_[static_cast<size_t>(focus_)]; }
  std::string problem_of(Field) const;
  std::string command_text() const;

  Form form_;
  std::array<Edit, kFields> edits_;
  Field focus_ = Field::model;
  int scroll_ = 0;
  bool complains_ = false;
  size_t left_out_ = 0;
};

}  // namespace invar::tui
