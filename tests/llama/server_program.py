"""A real llama.cpp server on a free loopback port: `python -I server_program.py MODEL ALIAS CONTEXT PARALLEL`.

Prints its address when it listens, and ends with the end of its stdin. The installed package is all that it imports.
"""

import ctypes
import os
import signal
import sys

import xllamacpp

ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
model, alias, context, parallel = sys.argv[1:]
parameters = xllamacpp.CommonParams()
parameters.model.path = model
parameters.model_alias = {alias}
parameters.n_ctx = int(context)
parameters.n_parallel = int(parallel)
parameters.hostnames = ["127.0.0.1"]
parameters.port = 0
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
parameters.warmup = False
parameters.use_jinja = True
parameters.endpoint_slots = True
parameters.endpoint_metrics = True
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
while os.read(0, 4096):
    pass
os._exit(0)
