"""The local stack: everything the service needs, on one machine, without Docker.

`rota dev` and the tests both use it. It is not for production. Everything listens on 127.0.0.1
only.
"""

# The OAuth client ID of the service at the development identity provider.
CLIENT_ID = "rota-dev"
