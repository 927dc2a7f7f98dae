"""The local stack: every part the service needs, on one machine, without Docker.

`rota dev` and the tests start parts in this one way. Nothing here is for
production, and nothing listens beyond 127.0.0.1.
"""

# As which the service and its clients are known to the development identity provider.
CLIENT_ID = "rota-dev"
