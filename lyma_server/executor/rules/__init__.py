"""The matchers of the short list: each says which part of a program's start a rule names, or None."""
