"""What runs inside the sandbox, on the system's Python: the standard library and what stands here, and nothing else.

It is handed over as bytes, with the few modules of ours that it needs (see `sandbox.py`). Nothing that it says is believed
outside: the parent counts, checks and decides again.
"""
