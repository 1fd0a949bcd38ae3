#!/bin/sh
# Fetches a path of the server, once it is ready.
until [ -s port.txt ]; do sleep 0.05; done
exec python3 -c 'import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).read().decode())' "http://127.0.0.1:$(cat port.txt)$1"
