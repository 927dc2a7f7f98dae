"""Public schemas of export and erasure."""

from typing import Annotated, Literal

from typing_extensions import TypeAliasType

from rota.data.queries import Erasure as StoredErasure
from rota.platform.http import examples
from rota.platform.http.schemas import Body, Text, Timestamp, Wire, doc
from rota.platform.ids import to_wire

ErasureState = TypeAliasType(
    "ErasureState",
    Annotated[
        Literal["running", "finished"],
        doc(
            "`running`: the account has stopped, and workers erase what it had. `finished`: all of "
            "it is erased.",
            "running",
        ),
    ],
)


class EraseAccount(Body):
    """Confirms that the account is the right one."""

    name: Annotated[
        Text, doc("The name of the account, exactly as `GET /api/me` shows it.", "Ada Lovelace")
    ]


class Erasure(Wire):
    """The erasure of an account."""

    account_id: Annotated[str, doc("The account.", examples.ACCOUNT_ID)]
    state: Annotated[ErasureState, doc("Whether everything is erased.")]
    requested_at: Annotated[Timestamp, doc("When the account was stopped.")]
    finished_at: Annotated[Timestamp | None, doc("When everything was erased. Null until then.")]

    @classmethod
    def of(cls, erasure: StoredErasure) -> "Erasure":
        return cls(
            account_id=to_wire("acct", erasure.account_id),
            state="finished" if erasure.finished_at else "running",
            requested_at=erasure.requested_at,
            finished_at=erasure.finished_at,
        )


class ErasureResponse(Wire):
    """The erasure that has begun."""

    erasure: Annotated[Erasure, doc("The erasure.")]
