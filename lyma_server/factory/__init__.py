"""Sub-agents: drafted, compiled, approved by hash, run in a sandbox."""
