"""What the router adds to a call, next to the bare SDK and to LiteLLM's Router, each in a process of its own."""
