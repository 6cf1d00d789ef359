"""Stories: scenes and their plots."""
