"""Mail servers: encryption, login, refusals, and servers that do not respond."""

import asyncio
import os
from dataclasses import replace
from datetime import timedelta
from email.message import EmailMessage
from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from rota.notifications.channels import NotDelivered, Refused
from rota.notifications.delivery import MAX_ATTEMPTS
from rota.notifications.mail import render
from rota.notifications.messages import test_message as message_of
from rota.notifications.smtp import LogMailer, NoMailer, SmtpMailer, mailer_of
from rota.platform.settings import Settings
from tests.e2e.production_parts import Authority
from tests.forks import forked
from tests.notifications.conftest import SENDER
from tests.notifications.receivers import Mailbox
from tests.notifications.world import Desk, delivery, program, shown, waiting
from tests.runs.runner import until
from tests.service import Service, environment, free_port


def settings_of(mailbox: Mailbox, **changes: object) -> Settings:
    base = Settings(env="test", smtp_host="localhost", smtp_from=SENDER)
    update = {"smtp_port": mailbox.port, "smtp_tls": "none"} | changes
    return base.model_copy(update=update)


def mail() -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = SENDER, "ada@example.test", "Hello"
    message.set_content("Hello")
    return message


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.mark.parametrize("mode", ["starttls", "tls"])
async def test_a_mail_is_encrypted_and_the_login_is_sent_only_then(
    authority: Authority, mode: str
) -> None:
    context = authority.server_context(authority.certificate("mail.test"))
    box = Mailbox()
    async with box.serve(**{mode: context}, needs_login=True):
        settings = settings_of(
            box,
            smtp_tls=mode,
            smtp_ca_file=authority.file,
            smtp_user="rota",
            smtp_password=SecretStr("right"),
        )
        mailer = SmtpMailer(settings)
        await mailer.check()
        await mailer.send(mail())
        assert box.logins == [("rota", "right")] * 2
        assert [each["Subject"] for each in box.mails] == ["Hello"]
        wrong = settings.model_copy(update={"smtp_password": SecretStr("wrong")})
        with pytest.raises(NotDelivered, match="cannot be used") as raised:
            await SmtpMailer(wrong).check()
        assert "535" in str(raised.value.detail)
        # A certificate of an unknown authority.
        unknown = settings.model_copy(update={"smtp_ca_file": None})
        with pytest.raises(NotDelivered, match="cannot be used"):
            await SmtpMailer(unknown).send(mail())
    assert len(box.mails) == 1


async def test_a_server_without_starttls_gets_neither_the_password_nor_the_mail() -> None:
    box = Mailbox()
    async with box.serve():
        settings = settings_of(
            box, smtp_tls="starttls", smtp_user="rota", smtp_password=SecretStr("right")
        )
        with pytest.raises(NotDelivered):
            await SmtpMailer(settings).send(mail())
    assert (box.logins, box.mails) == ([], [])


async def test_a_server_that_refuses_connections_is_tried_again() -> None:
    port = free_port()
    with pytest.raises(NotDelivered, match="cannot be used") as raised:
        await SmtpMailer(settings_of(Mailbox(port=port))).send(mail())
    # Users do not read where the mail server is. Operators do.
    assert str(port) not in str(raised.value)
    assert str(port) in str(raised.value.detail)


async def test_a_server_that_does_not_respond_costs_the_time_limit() -> None:
    async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    port = free_port()
    server = await asyncio.start_server(silence, "127.0.0.1", port)
    mailer = SmtpMailer(settings_of(Mailbox(port=port)), limit_s=0.2)
    with pytest.raises(NotDelivered, match="did not respond within"):
        await mailer.send(mail())
    server.close()


async def test_headers_that_programs_read_are_not_encoded() -> None:
    message = message_of("/acct_1", "https://rota.example.com", "1" * 32)
    url = f"https://rota.example.com/api/unsubscribe/{'x' * 90}"
    host = f"{'long-' * 11}name.example.com"
    message = replace(
        message, unsubscribe_url=url, base_url=f"https://{host}", thread="task_" + "2" * 32
    )
    box = Mailbox()
    async with box.serve():
        await SmtpMailer(settings_of(box)).send(render(message, SENDER, "ada@example.test"))
    lines = box.raw[0].splitlines()
    assert f"List-Unsubscribe: <{url}>".encode() in lines
    assert f"In-Reply-To: <task_{'2' * 32}@{host}>".encode() in lines


@pytest.mark.parametrize(
    "address", ["jörg@example.com", "a..b@example.com", "a@b@c", "", "a@exämple.com"]
)
def test_an_address_that_cannot_get_mail_is_refused(address: str) -> None:
    with pytest.raises(Refused, match="this address"):
        render(message_of("/acct_1", "https://rota.example.com", "1"), SENDER, address)


async def test_answers_about_the_mail_decide_whether_it_is_tried_again() -> None:
    box = Mailbox()
    async with box.serve():
        mailer = SmtpMailer(settings_of(box))
        for answer, expected in (
            ("451 Try later", NotDelivered),
            ("554 Looks like spam", Refused),
        ):
            box.data_answers = [answer]
            with pytest.raises(expected, match=answer[:3]):
                await mailer.send(mail())
        box.refusals["ada@example.test"] = "550 No such user"
        with pytest.raises(Refused, match="550 No such user"):
            await mailer.send(mail())
        box.refusals["ada@example.test"] = "450 Mailbox busy"
        with pytest.raises(NotDelivered, match="450"):
            await mailer.send(mail())


async def test_a_mail_that_fails_is_tried_again_and_given_up_after_a_day(desk: Desk) -> None:
    person = await desk.person()
    await waiting(await program(person))
    desk.mailbox.data_answers = ["451 Try later"] * 3
    await desk.send()
    tried = await delivery(person, "approval_waiting")
    assert (tried["state"], tried["waiting"]) == ("retrying", 1)
    assert "451 Try later" in tried["error"]
    # Not before its time.
    await desk.send()
    assert len(desk.mailbox.data_answers) == 2
    await desk.later(person, timedelta(hours=2))
    await desk.send()
    await desk.later(person, timedelta(days=1))
    await desk.send()
    gone = await delivery(person, "approval_waiting")
    assert (gone["state"], gone["waiting"], gone["nextAt"]) == ("failed", 0, None)
    assert gone["failedAt"]
    # The next one is a new attempt, and forgets the failure.
    await waiting(await program(person), "Another")
    await desk.later(person)
    await desk.send()
    assert len(desk.mails(person)) == 1
    assert (await delivery(person, "approval_waiting"))["error"] is None


async def test_an_address_that_is_refused_is_given_up_at_once(desk: Desk) -> None:
    person = await desk.person()
    await waiting(await program(person))
    desk.mailbox.refusals[f"{person.subject}@example.test"] = "550 No such user"
    await desk.send()
    gone = await delivery(person, "approval_waiting")
    assert (gone["state"], gone["waiting"]) == ("failed", 0)
    assert "550 No such user" in gone["error"]


async def test_an_answer_that_is_not_valid_text_is_shown_without_what_is_not(desk: Desk) -> None:
    person = await desk.person()
    await waiting(await program(person))
    desk.mailbox.data_answers = ["554 Refus\udce9 \0 by policy"] * 2
    await desk.send()
    found = await delivery(person, "approval_waiting")
    assert (found["state"], found["waiting"]) == ("failed", 0)
    assert "554 Refus? \ufffd by policy" in found["error"]
    tested = await person.post("/api/me/notifications/test", {"channel": "mail"})
    assert "554 Refus? \ufffd by policy" in tested.json()["error"]


async def test_what_a_server_says_to_the_operator_can_be_printed() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"554 Acc\xe8s refus\xe9\r\n")
        await writer.drain()
        writer.close()

    port = free_port()
    server = await asyncio.start_server(refuse, "127.0.0.1", port)
    with pytest.raises(NotDelivered) as raised:
        await SmtpMailer(settings_of(Mailbox(port=port))).check()
    server.close()
    assert "554 Acc?s refus?" in str(raised.value.detail)


async def test_a_queue_whose_workers_die_is_given_up_at_last(desk: Desk) -> None:
    person = await desk.person()
    await waiting(await program(person))
    await desk.sender()._take_notices(set())
    async with desk.service.owner() as connection:
        tire = "UPDATE notification_queues SET attempts = $2 WHERE user_id = $1"
        await connection.execute(tire, person.user_id, MAX_ATTEMPTS)
    await desk.send()
    assert (await delivery(person, "approval_waiting"))["state"] == "failed"
    assert desk.mails(person) == []


async def test_a_worker_that_dies_while_it_sends_costs_one_repetition(
    desk: Desk, tmp_path: Path
) -> None:
    person = await desk.person()
    desk.mailbox.answers.clear()
    variables = {k: v for k, v in environment(desk.service.settings).items() if v not in ("()",)}
    with (tmp_path / "log").open("wb") as log:
        worker = await forked(
            "rota.cli",
            "worker",
            env=os.environ | variables,
            stdout=log.fileno(),
            stderr=log.fileno(),
        )
    try:
        await waiting(await program(person))

        async def mails() -> list[EmailMessage]:
            assert worker.returncode is None, (tmp_path / "log").read_text()
            return desk.mails(person)

        await until(mails)
        worker.kill()
        await worker.wait()
    finally:
        if worker.returncode is None:
            worker.kill()
            await worker.wait()
        desk.mailbox.answers.set()
    # Nobody knows that it was sent. Its lease has to end first.
    await desk.send()
    assert len(desk.mails(person)) == 1
    await desk.later(person, timedelta(minutes=2))
    await desk.send()
    await desk.later(person, timedelta(minutes=2))
    await desk.send()
    first, second = desk.mails(person)
    assert first["Message-ID"] == second["Message-ID"]


async def test_without_a_mail_server_the_settings_say_so(stack: object) -> None:
    assert isinstance(mailer_of(Settings(env="development")), LogMailer)
    assert isinstance(mailer_of(Settings(env="test")), NoMailer)
    with pytest.raises(Refused, match="ROTA_SMTP_HOST"):
        await NoMailer().send(mail())
    await LogMailer().send(mail())


async def test_without_a_mail_server_nothing_is_queued_and_a_test_says_why(
    service_a: Service,
) -> None:
    person = await service_a.sign_in()
    assert (await shown(person))["mail"]["transport"] == "off"
    answer = (await person.post("/api/me/notifications/test", {"channel": "mail"})).json()
    assert answer["delivered"] is False
    assert "ROTA_SMTP_HOST" in answer["error"]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"smtp_host": "m.test"}, "ROTA_SMTP_FROM"),
        ({"smtp_host": "m.test", "smtp_from": "Rota"}, "ROTA_SMTP_FROM"),
        ({"smtp_host": "m.test", "smtp_from": "a@b.test", "smtp_user": "u"}, "ROTA_SMTP_PASSWORD"),
    ],
)
def test_settings_that_cannot_work_are_refused(changes: dict[str, str], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        Settings(**changes)  # type: ignore[arg-type]


def test_production_refuses_a_password_without_encryption() -> None:
    sent = {"smtp_host": "m.test", "smtp_from": "a@b.test", "smtp_tls": "none"}
    login = {"smtp_user": "u", "smtp_password": "p"}
    with pytest.raises(ValidationError, match="ROTA_SMTP_TLS must be starttls or tls if"):
        Settings(env="production", allow_plaintext=True, **sent, **login)  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="ROTA_SMTP_TLS must be starttls or tls in"):
        Settings(env="production", **sent)  # type: ignore[arg-type]
