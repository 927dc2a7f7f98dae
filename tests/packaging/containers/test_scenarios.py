"""The scenarios of the Python SDK against the image.

The names are imported, so pytest runs each of them here with the services of this folder.
"""

# ruff: noqa: F401
from tests.sdk.test_errors import (
    test_a_body_that_is_too_large_is_refused,
    test_a_field_that_is_not_valid_is_named,
    test_a_state_that_does_not_allow_the_request_is_a_conflict,
    test_a_task_of_nobody_is_not_found,
    test_a_wrong_key_is_refused,
    test_another_account_is_refused,
)
from tests.sdk.test_follow import (
    test_a_task_that_does_not_exist_cannot_be_followed,
    test_an_account_stream_without_a_number_begins_after_the_newest_event,
    test_every_event_arrives_once_and_in_order_however_often_the_connection_breaks,
    test_following_continues_after_a_number,
    test_following_goes_through_a_retry,
    test_the_events_of_the_account_start_now_and_survive_cuts,
)
from tests.sdk.test_resources import (
    test_a_company_invites_changes_and_removes_a_member,
    test_a_schedule_is_created_changed_run_and_deleted,
    test_a_session_manages_keys,
    test_a_tool_server_is_connected_and_its_tools_are_called,
    test_agents_are_found,
    test_each_variant_has_its_own_plans,
    test_events_are_listed_in_order,
    test_money_is_read_and_a_top_up_begins,
    test_signing_in_needs_no_key,
    test_the_audit_trail_and_a_receipt_are_read,
)
from tests.sdk.test_retries import (
    test_a_lost_response_does_not_make_a_second_task,
    test_an_account_over_its_limit_is_told_how_long_to_wait,
    test_the_same_key_gives_the_same_task_and_another_body_conflicts,
)
from tests.sdk.test_runs import (
    test_a_tool_call_is_approved_with_other_arguments,
    test_the_examples_of_the_readme_run,
    test_the_text_of_a_model_is_whole_however_often_the_connection_breaks,
)
from tests.sdk.test_same_work import (
    test_the_same_work_leaves_the_same_through_rest_and_the_sdk,
)
from tests.sdk.test_tasks import (
    test_a_batch_has_a_task_or_an_error_for_each_entry,
    test_a_failed_task_is_retried,
    test_a_list_is_complete_if_its_items_leave_it_meanwhile,
    test_a_list_reads_all_of_its_pages,
    test_a_list_shows_nothing_twice_if_tasks_are_created_meanwhile,
    test_a_quote_creates_nothing,
    test_a_review_that_changed_since_it_was_shown_decides_nothing,
    test_a_review_that_was_shown_is_approved,
    test_a_task_is_created_read_changed_and_cancelled,
    test_an_update_keeps_what_is_not_given_and_clears_what_is_none,
    test_waiting_returns_the_task_at_its_end,
)
