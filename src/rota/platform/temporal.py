"""The connection to Temporal, dialled when it is first needed."""

from temporalio.client import Client


class Temporal:
    """Lazy, so that the service starts and serves while Temporal is away."""

    def __init__(self, address: str, namespace: str) -> None:
        self._address = address
        self._namespace = namespace
        self._client: Client | None = None

    async def client(self) -> Client:
        if self._client is None:
            self._client = await Client.connect(self._address, namespace=self._namespace, lazy=True)
        return self._client

    async def connect(self) -> Client:
        """A client that has its connection, as a worker needs it; fails while Temporal is away."""
        return await Client.connect(self._address, namespace=self._namespace)

    async def ping(self) -> None:
        if not await (await self.client()).service_client.check_health():
            raise ConnectionError("Temporal is not serving")
