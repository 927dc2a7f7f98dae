"""The scenarios of the SDKs through the program `rota`.

The list is that of the TypeScript SDK, so a new scenario runs here too. Each call starts the
program, which takes more time than the call. So CI runs a part of them, and `make proofs` all.
"""

from tests.sdk.typescript import test_scenarios as scenarios
from tests.sizes import FULL

# Something of each kind: the work that is compared with REST, decisions, streams, errors, retries.
IN_CI = frozenset(
    (
        "test_the_same_work_leaves_the_same_through_rest_and_the_sdk",
        "test_a_task_is_created_read_changed_and_cancelled",
        "test_a_quote_creates_nothing",
        "test_a_review_that_changed_since_it_was_shown_decides_nothing",
        "test_a_tool_call_is_approved_with_other_arguments",
        "test_an_id_that_is_empty_never_reaches_the_service",
        "test_every_event_arrives_once_and_in_order_however_often_the_connection_breaks",
        "test_the_text_of_a_model_is_whole_however_often_the_connection_breaks",
        "test_following_continues_after_a_number",
        "test_following_goes_through_a_retry",
        "test_the_events_of_the_account_start_now_and_survive_cuts",
        "test_an_account_stream_without_a_number_begins_after_the_newest_event",
        "test_a_task_that_does_not_exist_cannot_be_followed",
        "test_a_service_that_is_gone_ends_the_stream_with_an_error",
        "test_a_field_that_is_not_valid_is_named",
        "test_a_task_of_nobody_is_not_found",
        "test_a_state_that_does_not_allow_the_request_is_a_conflict",
        "test_a_wrong_key_is_refused",
        "test_another_account_is_refused",
        "test_a_body_that_is_too_large_is_refused",
        "test_a_service_that_does_not_answer_in_time",
        "test_a_server_that_is_not_rota_is_said_to_be_none",
        "test_a_lost_response_does_not_make_a_second_task",
        "test_the_same_key_gives_the_same_task_and_another_body_conflicts",
        "test_a_session_manages_keys",
    )
)
ALL = {name: each for name, each in vars(scenarios).items() if name.startswith("test_")}

# pytest finds them here, with the fixtures of this folder.
globals().update({name: each for name, each in ALL.items() if FULL or name in IN_CI})


def test_the_scenarios_that_ci_runs_exist() -> None:
    assert set(ALL) > IN_CI
