"""How long a run pauses whose account has used its share."""

from uuid import uuid4

from rota.runs.backoff import MAX_QUEUE_S, MAX_TURN_S, MIN_TURN_S, TURNS_PER_S, Turns

ME, OTHER = uuid4(), uuid4()


def test_the_pauses_of_a_run_double_up_to_a_minute() -> None:
    turns, waited_s, pauses = Turns(), 0.0, []
    for _ in range(8):
        pauses.append(turns.pause_s(ME, waited_s, 1))
        waited_s += pauses[-1]
    assert 0.8 * MIN_TURN_S <= pauses[0] <= 1.2 * MIN_TURN_S
    assert pauses[3] > 1.5 * pauses[1]
    assert 0.8 * MAX_TURN_S <= pauses[-1] <= 1.2 * MAX_TURN_S


def test_a_run_waits_at_least_as_long_as_it_is_told() -> None:
    assert Turns().pause_s(ME, 0, 20) >= 20


def test_many_runs_of_one_account_seldom_ask_again() -> None:
    turns = Turns()
    pauses = sorted(turns.pause_s(ME, 0, 1) for _ in range(300))
    in_a_second = [sum(at <= pause < at + 1 for pause in pauses) for at in range(150)]
    # Those who begin to wait before there are many ask again after the shortest pause.
    assert max(in_a_second[8:]) <= 4 * TURNS_PER_S
    assert pauses[-1] > 1.5 * MAX_TURN_S
    assert turns.pause_s(OTHER, 0, 1) <= 1.2 * MIN_TURN_S
    for _ in range(2_000):
        assert turns.pause_s(ME, 0, 1) <= 1.2 * MAX_QUEUE_S
