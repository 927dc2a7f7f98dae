"""Payments that go back: refunds, which can fail, and disputes."""

from rota.dev.stripe.store import Emit, Store
from rota.dev.stripe.wire import Object, Params, StripeError, integer, since

FEE_CENTS = 1_500
FAILED = ("failed", "canceled")
REFUND_STATUSES = ("pending", "requires_action", "succeeded", *FAILED)
CLOSED = ("won", "lost", "warning_closed")
DISPUTE_STATUSES = ("needs_response", "under_review", "warning_under_review", *CLOSED)


class Reversals:
    def __init__(self, store: Store, emit: Emit) -> None:
        self._store = store
        self._emit = emit

    def refunds(self, params: Params) -> list[Object]:
        return self._of_payment("refund", params)

    def disputes(self, params: Params) -> list[Object]:
        return self._of_payment("dispute", params)

    def _of_payment(self, kind: str, params: Params) -> list[Object]:
        return [
            found
            for found in self._store.all(kind)
            if found["created"] >= since(params)
            and params.get("payment_intent") in (None, found["payment_intent"])
            and params.get("charge") in (None, found["charge"])
        ]

    def refund(self, params: Params) -> Object:
        charge = self._charge(params)
        left = charge["amount"] - charge["amount_refunded"]
        cents = integer(params, "amount", left)
        if not left:
            raise StripeError(
                f"Charge {charge['id']} has already been refunded.", code="charge_already_refunded"
            )
        if not 0 < cents <= left:
            raise StripeError(
                f"Refund amount (${cents / 100:.2f}) is greater than unrefunded amount on charge "
                f"(${left / 100:.2f})",
                param="amount",
            )
        refund = self._store.add(
            "refund",
            amount=cents,
            charge=charge["id"],
            currency="usd",
            failure_reason=None,
            metadata=params.get("metadata", {}),
            payment_intent=charge["payment_intent"],
            reason=params.get("reason"),
            status="succeeded",
        )
        _count_refund(charge, cents)
        self._emit("refund.created", refund)
        self._emit("charge.refunded", charge)
        return refund

    def _charge(self, params: Params) -> Object:
        if "payment_intent" not in params:
            return self._store.get("charge", params.get("charge", ""), "charge", 400)
        intent = self._store.get("payment_intent", params["payment_intent"], "payment_intent", 400)
        return self._store.get("charge", intent["latest_charge"])

    def update_refund(self, name: str, status: str) -> Object:
        """What a bank does after a refund was made. A failed refund stays failed."""
        refund = self._store.get("refund", name)
        if status not in REFUND_STATUSES or refund["status"] in FAILED:
            raise StripeError(f"A refund that is {refund['status']} cannot become {status}.")
        refund["status"] = status
        if status in FAILED:
            refund["failure_reason"] = "expired_or_canceled_card" if status == "failed" else None
            _count_refund(self._store.get("charge", refund["charge"]), -refund["amount"])
        self._emit("refund.updated", refund)
        self._emit("charge.refund.updated", refund)
        if status == "failed":
            self._emit("refund.failed", refund)
        return refund

    def open_dispute(self, payment: str, cents: int | None, *, inquiry: bool) -> Object:
        """A dispute takes the money at once. An inquiry takes nothing."""
        charge = self._charge({"payment_intent": payment})
        charge["disputed"] = True
        dispute = self._store.add(
            "dispute",
            amount=charge["amount"] if cents is None else cents,
            balance_transactions=[],
            charge=charge["id"],
            currency="usd",
            evidence={},
            is_charge_refundable=inquiry,
            metadata={},
            payment_intent=payment,
            reason="fraudulent",
            status="warning_needs_response" if inquiry else "needs_response",
        )
        self._emit("charge.dispute.created", dispute)
        if not inquiry:
            self._withdraw(dispute)
        return dispute

    def update_dispute(self, name: str, status: str, returned_cents: int | None = None) -> Object:
        """What the bank decides. A dispute that is won returns the money.

        A dispute that is lost can return a part: what was refunded before the dispute. An inquiry
        becomes a dispute with `needs_response`.
        """
        dispute = self._store.get("dispute", name)
        if status not in DISPUTE_STATUSES or dispute["status"] in CLOSED:
            raise StripeError(f"A dispute that is {dispute['status']} cannot become {status}.")
        escalated = status == "needs_response" and dispute["status"].startswith("warning_")
        dispute["status"] = status
        self._emit(f"charge.dispute.{'closed' if status in CLOSED else 'updated'}", dispute)
        if escalated:
            self._withdraw(dispute)
        returned = dispute["amount"] if status == "won" else returned_cents
        if returned and dispute["balance_transactions"]:
            self._move(dispute, returned, 0, "Chargeback reversal")
            self._emit("charge.dispute.funds_reinstated", dispute)
        return dispute

    def _withdraw(self, dispute: Object) -> None:
        self._move(dispute, -dispute["amount"], FEE_CENTS, "Chargeback withdrawal")
        dispute["is_charge_refundable"] = False
        self._emit("charge.dispute.funds_withdrawn", dispute)

    def _move(self, dispute: Object, cents: int, fee_cents: int, description: str) -> None:
        dispute["balance_transactions"].append(
            self._store.add(
                "balance_transaction",
                amount=cents,
                currency="usd",
                description=f"{description} for {dispute['charge']}",
                fee=fee_cents,
                net=cents - fee_cents,
                source=dispute["id"],
                type="adjustment",
            )
        )


def _count_refund(charge: Object, cents: int) -> None:
    charge["amount_refunded"] += cents
    charge["refunded"] = charge["amount_refunded"] == charge["amount"]
