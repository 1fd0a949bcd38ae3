"""JSON-RPC on pygls, with what pygls 2.1 lacks."""
