"""Commands of the agent: read, judged, guarded, confined, run."""
