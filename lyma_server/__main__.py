"""`python -m lyma_server` is `lyma`."""

from lyma_server.entry import terminal

terminal()
