"""One module a wire format; the only place where a secret is revealed."""
