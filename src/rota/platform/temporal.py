"""The connection to Temporal, opened on first use."""

from temporalio.client import Client


class Temporal:
    """Connects lazily, so that the service starts and works while Temporal is down."""

    def __init__(self, address: str, namespace: str) -> None:
        self._address = address
        self._namespace = namespace
        self._client: Client | None = None

    async def client(self) -> Client:
        if self._client is None:
            self._client = await Client.connect(self._address, namespace=self._namespace, lazy=True)
        return self._client

    async def connect(self) -> Client:
        """A connected client, as a worker needs it. Fails while Temporal is down."""
        return await Client.connect(self._address, namespace=self._namespace)

    async def ping(self) -> None:
        if not await (await self.client()).service_client.check_health():
            raise ConnectionError("Temporal is not serving")
