"""The wire: what a face and the core say to each other, and how it is written down."""
