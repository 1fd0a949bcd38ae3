"""A provider that sends without an end, or what nobody can read, costs an attempt and neither the memory nor the session."""

from __future__ import annotations

MEBIBYTE = 1 << 20
