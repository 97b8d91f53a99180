"""The metadata store on etcd. Nothing in here is imported unless one is used."""

import os

# gRPC reads it when it is imported. What it would write to standard error at every attempt, it tells us as well.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
