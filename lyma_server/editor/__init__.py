"""The editor's face: JSON-RPC over stdio."""
