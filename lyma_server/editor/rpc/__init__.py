"""JSON-RPC over stdio. pygls gives the LSP types and the registration of features; reading, structuring, dispatching and
writing are here, because an editor must get exactly one reply to each request whatever it sends.
"""
