"""Settings: what a user may decide. `model` says which exist; `load` finds their values; `edit` changes the file."""
