"""The operations of the API. Generated from openapi/: do not edit."""

from rota_sdk import models
from rota_sdk._model import Model
from rota_sdk._operation import Operation

API_VERSION = "2026-11-15"

accept_invitation = Operation(
    "POST", "/api/invitations/{token}/accept", models.CompanyResponse, is_keyed=True
)
accept_tools = Operation("POST", "/api/mcp/{id}/accept", models.ServerToolsResponse, is_keyed=False)
account_events = Operation("GET", "/api/events", models.EventsResponse, is_keyed=False)
agent_statistics = Operation(
    "GET", "/api/agents/{name}/statistics", models.StatisticsResponse, is_keyed=False
)
approve_task = Operation("POST", "/api/tasks/{id}/approve", models.DecisionResponse, is_keyed=True)
audit_keys = Operation(
    "GET", "/.well-known/audit-keys.json", models.AuditKeysResponse, is_keyed=False
)
auth_config = Operation("GET", "/api/auth/config", models.AuthConfigResponse, is_keyed=False)
cancel_connect_pass = Operation(
    "POST", "/api/addons/connect-pass/cancel", models.BillingResponse, is_keyed=True
)
cancel_subscription = Operation(
    "POST", "/api/subscriptions/cancel", models.SubscriptionResponse, is_keyed=True
)
checkout_connect_pass = Operation(
    "POST", "/api/addons/connect-pass/checkout", models.PassCheckoutResponse, is_keyed=True
)
connect_pass_billing = Operation(
    "GET", "/api/addons/connect-pass/billing", models.PassBillingResponse, is_keyed=False
)
connect_server = Operation("POST", "/api/mcp", models.ServerToolsResponse, is_keyed=True)
create_company = Operation("POST", "/api/companies", models.CompanyResponse, is_keyed=True)
create_invitation = Operation(
    "POST", "/api/companies/{id}/invitations", models.InvitedResponse, is_keyed=True
)
create_key = Operation("POST", "/api/keys", models.KeyCreatedResponse, is_keyed=True)
create_rule = Operation("POST", "/api/rules", models.RuleResponse, is_keyed=True)
create_schedule = Operation("POST", "/api/schedules", models.ScheduleResponse, is_keyed=True)
create_task = Operation("POST", "/api/tasks", models.TaskResponse, is_keyed=True)
create_tasks = Operation("POST", "/api/tasks/batch", models.CreateTasksResponse, is_keyed=True)
create_webhook = Operation("POST", "/api/webhooks", models.WebhookSecretResponse, is_keyed=True)
delete_invitation = Operation(
    "DELETE",
    "/api/companies/{id}/invitations/{invitationId}",
    models.DeletedResponse,
    is_keyed=False,
)
delete_key = Operation("DELETE", "/api/keys/{id}", models.DeletedResponse, is_keyed=False)
delete_member = Operation(
    "DELETE", "/api/companies/{id}/members/{userId}", models.DeletedResponse, is_keyed=False
)
delete_rule = Operation("DELETE", "/api/rules/{id}", models.DeletedResponse, is_keyed=False)
delete_schedule = Operation("DELETE", "/api/schedules/{id}", models.DeletedResponse, is_keyed=False)
delete_session = Operation(
    "DELETE", "/api/auth/sessions/{id}", models.DeletedResponse, is_keyed=False
)
delete_webhook = Operation("DELETE", "/api/webhooks/{id}", models.DeletedResponse, is_keyed=False)
disconnect_server = Operation("DELETE", "/api/mcp/{id}", models.DeletedResponse, is_keyed=False)
erase_account = Operation("DELETE", "/api/account", models.ErasureResponse, is_keyed=False)
export_account = Operation("GET", "/api/export", Model, is_keyed=False)
fork_options = Operation("GET", "/api/tasks/{id}/fork", models.ForkOptionsResponse, is_keyed=False)
fork_task = Operation("POST", "/api/tasks/{id}/fork", models.TaskResponse, is_keyed=True)
get_agent = Operation("GET", "/api/agents/{name}", models.AgentResponse, is_keyed=False)
get_balance = Operation("GET", "/api/credits/balance", models.BalanceResponse, is_keyed=False)
get_catalog = Operation("GET", "/api/agents/catalog", models.CatalogResponse, is_keyed=False)
get_company = Operation("GET", "/api/companies/{id}", models.CompanyResponse, is_keyed=False)
get_credit_settings = Operation(
    "GET", "/api/credits/settings", models.SettingsResponse, is_keyed=False
)
get_forecast = Operation("GET", "/api/credits/forecast", models.ForecastResponse, is_keyed=False)
get_invitation = Operation(
    "GET", "/api/invitations/{token}", models.ReceivedInvitationResponse, is_keyed=False
)
get_notifications = Operation(
    "GET", "/api/me/notifications", models.NotificationsResponse, is_keyed=False
)
get_policies = Operation("GET", "/api/policies", models.PoliciesResponse, is_keyed=False)
get_rule = Operation("GET", "/api/rules/{id}", models.RuleResponse, is_keyed=False)
get_schedule = Operation(
    "GET", "/api/schedules/{id}", models.ScheduleDetailsResponse, is_keyed=False
)
get_server = Operation("GET", "/api/mcp/{id}", models.ServerResponse, is_keyed=False)
get_subscription = Operation(
    "GET", "/api/subscriptions", models.SubscriptionsResponse, is_keyed=False
)
get_task = Operation("GET", "/api/tasks/{id}", models.TaskResponse, is_keyed=False)
get_unsubscribe = Operation(
    "GET", "/api/unsubscribe/{token}", models.UnsubscribeResponse, is_keyed=False
)
get_usage = Operation("GET", "/api/usage", models.UsageResponse, is_keyed=False)
get_webhook = Operation("GET", "/api/webhooks/{id}", models.WebhookResponse, is_keyed=False)
invoke_tool = Operation("POST", "/api/mcp/{id}/invoke", models.InvokedResponse, is_keyed=True)
jwks = Operation("GET", "/.well-known/jwks.json", models.JsonWebKeySet, is_keyed=False)
list_agent_versions = Operation(
    "GET", "/api/agents/{name}/versions", models.VersionsResponse, is_keyed=False
)
list_agents = Operation("GET", "/api/agents", models.AgentsResponse, is_keyed=False)
list_approvals = Operation("GET", "/api/approvals", models.ApprovalsResponse, is_keyed=False)
list_audit = Operation("GET", "/api/audit", models.AuditResponse, is_keyed=False)
list_checks = Operation("GET", "/api/mcp/{id}/checks", models.ChecksResponse, is_keyed=False)
list_deliveries = Operation(
    "GET", "/api/webhooks/{id}/deliveries", models.DeliveriesResponse, is_keyed=False
)
list_departments = Operation(
    "GET", "/api/agents/departments", models.DepartmentsResponse, is_keyed=False
)
list_holds = Operation("GET", "/api/credits/holds", models.HoldsResponse, is_keyed=False)
list_invitations = Operation(
    "GET", "/api/companies/{id}/invitations", models.InvitationsResponse, is_keyed=False
)
list_keys = Operation("GET", "/api/keys", models.KeysResponse, is_keyed=False)
list_members = Operation(
    "GET", "/api/companies/{id}/members", models.MembersResponse, is_keyed=False
)
list_plans = Operation("GET", "/api/plans", models.PlansResponse, is_keyed=False)
list_rules = Operation("GET", "/api/rules", models.RulesResponse, is_keyed=False)
list_schedules = Operation("GET", "/api/schedules", models.SchedulesResponse, is_keyed=False)
list_servers = Operation("GET", "/api/mcp", models.ServersResponse, is_keyed=False)
list_sessions = Operation("GET", "/api/auth/sessions", models.SessionsResponse, is_keyed=False)
list_tasks = Operation("GET", "/api/tasks", models.TasksResponse, is_keyed=False)
list_tools = Operation("GET", "/api/mcp/{id}/tools", models.ToolsResponse, is_keyed=False)
list_transactions = Operation(
    "GET", "/api/credits/transactions", models.TransactionsResponse, is_keyed=False
)
list_webhooks = Operation("GET", "/api/webhooks", models.WebhooksResponse, is_keyed=False)
live = Operation("GET", "/health/live", models.LiveResponse, is_keyed=False)
logout = Operation("POST", "/api/auth/logout", models.LogoutResponse, is_keyed=False)
me = Operation("GET", "/api/me", models.MeResponse, is_keyed=False)
metrics = Operation("GET", "/metrics", Model, is_keyed=False)
patch_company = Operation("PATCH", "/api/companies/{id}", models.CompanyResponse, is_keyed=False)
patch_credit_settings = Operation(
    "PATCH", "/api/credits/settings", models.SettingsResponse, is_keyed=False
)
patch_member = Operation(
    "PATCH", "/api/companies/{id}/members/{userId}", models.MemberResponse, is_keyed=False
)
patch_schedule = Operation("PATCH", "/api/schedules/{id}", models.ScheduleResponse, is_keyed=False)
patch_task = Operation("PATCH", "/api/tasks/{id}", models.TaskResponse, is_keyed=False)
patch_webhook = Operation("PATCH", "/api/webhooks/{id}", models.WebhookResponse, is_keyed=False)
ping_server = Operation("POST", "/api/mcp/{id}/ping", models.PingResponse, is_keyed=False)
put_notifications = Operation(
    "PUT", "/api/me/notifications", models.NotificationsResponse, is_keyed=False
)
put_policies = Operation("PUT", "/api/policies", models.PoliciesResponse, is_keyed=False)
quote_retry = Operation("GET", "/api/tasks/{id}/retry", models.RetryQuoteResponse, is_keyed=False)
ready = Operation("GET", "/health/ready", models.ReadyResponse, is_keyed=False)
refresh_session = Operation("POST", "/api/auth/refresh", models.TokenResponse, is_keyed=False)
reject_task = Operation("POST", "/api/tasks/{id}/reject", models.DecisionResponse, is_keyed=True)
replay_webhook = Operation(
    "POST", "/api/webhooks/{id}/replay", models.WebhookResponse, is_keyed=False
)
resolve_agent = Operation("GET", "/api/agents/resolve", models.ResolvedResponse, is_keyed=False)
resume_connect_pass = Operation(
    "POST", "/api/addons/connect-pass/resume", models.BillingResponse, is_keyed=True
)
resume_subscription = Operation(
    "POST", "/api/subscriptions/resume", models.SubscriptionResponse, is_keyed=True
)
retry_task = Operation("POST", "/api/tasks/{id}/retry", models.TaskResponse, is_keyed=True)
review_task = Operation("GET", "/api/tasks/{id}/review", models.ReviewResponse, is_keyed=False)
rotate_webhook_secret = Operation(
    "POST", "/api/webhooks/{id}/rotate-secret", models.WebhookSecretResponse, is_keyed=True
)
run_schedule = Operation("POST", "/api/schedules/{id}/run", models.TaskResponse, is_keyed=True)
snooze_task = Operation("POST", "/api/tasks/{id}/snooze", models.SnoozeResponse, is_keyed=False)
start_session = Operation("POST", "/api/auth/session", models.TokenResponse, is_keyed=False)
start_session_by_code = Operation("POST", "/api/auth/code", models.TokenResponse, is_keyed=False)
subscribe = Operation(
    "POST", "/api/subscriptions/subscribe", models.SubscribeResponse, is_keyed=True
)
task_events = Operation("GET", "/api/tasks/{id}/events", models.Event, is_keyed=False)
task_receipt = Operation("GET", "/api/tasks/{id}/receipt", models.ReceiptResponse, is_keyed=False)
task_timeline = Operation(
    "GET", "/api/tasks/{id}/timeline", models.TimelineResponse, is_keyed=False
)
test_notifications = Operation(
    "POST", "/api/me/notifications/test", models.TestNotificationResponse, is_keyed=False
)
test_webhook = Operation(
    "POST", "/api/webhooks/{id}/test", models.DeliveredResponse, is_keyed=False
)
top_up = Operation("POST", "/api/credits/topup", models.TopUpResponse, is_keyed=True)
unsubscribe = Operation(
    "POST", "/api/unsubscribe/{token}", models.UnsubscribeResponse, is_keyed=False
)
update_server = Operation("PATCH", "/api/mcp/{id}", models.ServerToolsResponse, is_keyed=False)
webhook_keys = Operation(
    "GET", "/.well-known/webhook-keys.json", models.WebhookKeysResponse, is_keyed=False
)
