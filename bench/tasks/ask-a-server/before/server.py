"""Answers one number, and writes its port to a file when it is ready."""

from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = str(sum(n * n for n in range(100))).encode() if self.path == "/answer" else b"?"
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = HTTPServer(("127.0.0.1", 0), Handler)
Path("port.txt").write_text(str(server.server_port))
server.serve_forever()
