"""The packages as a person gets them: built, checked, installed, and tried outside of the tree. `make package` runs it."""
