"""Profiles: which service commands use, and what they say if there is none."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from rota.cli import connection, profiles
from rota.cli.profiles import Profile
from tests.cli.conftest import url_of
from tests.cli.terminal import Terminal
from tests.service import Person, Service


async def test_signing_out_selects_no_other_service(
    office: Service, person: Person, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(terminal.home))
    connection.store("home", Profile("http://127.0.0.1:1", "rota_home"))
    connection.store("work", Profile(url_of(office), person.token))
    await terminal.ok("logout")
    done = await terminal("tasks", "list")
    assert (done.code, done.err) == (
        1,
        "No profile is selected. Run: rota profiles use NAME (home)\n",
    )
    listed = (await terminal.ok("profiles", "list", "--json")).json["profiles"]
    assert [(each["name"], each["current"]) for each in listed] == [("home", False)]
    await terminal.ok("profiles", "use", "home")
    assert profiles.load().current == "home"


async def test_a_user_without_a_home_folder_is_one_line(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", home)
    for command in (("tasks", "list"), ("login",), ("logout",), ("profiles", "list")):
        done = await terminal(*command, XDG_CONFIG_HOME=None)
        assert done.code == 2
        assert done.err.startswith("This user has no home folder. Set HOME")


async def test_commands_say_how_to_sign_in(
    office: Service, terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    nobody = await terminal("tasks", "list")
    assert nobody.code == 1
    assert nobody.err == (
        "You are not signed in. Run: rota login URL, or set ROTA_URL and ROTA_API_KEY.\n"
    )
    elsewhere = await terminal("tasks", "list", ROTA_URL="https://rota.example.com")
    assert (elsewhere.code, elsewhere.err) == (
        1,
        "You are not signed in at https://rota.example.com. "
        "Run: rota login https://rota.example.com\n",
    )
    alone = await terminal("tasks", "list", ROTA_API_KEY="rota_x")
    assert (alone.code, alone.err) == (2, "ROTA_API_KEY is set, but ROTA_URL is not. Set both.\n")
    which = await terminal("login")
    assert (which.code, which.err) == (
        2,
        "Which service? For example: rota login https://rota.example.com\n",
    )
    wrongs = ("ftp://rota.example.com", "https://", "https://me:pw@host", "http://h:99999")
    for wrong in (
        *wrongs,
        "https://x/\x01",
        "https://xn--a.example",
        "https://a..b",
        "http://[::g]",
    ):
        done = await terminal("login", wrong)
        assert done.code == 2
        assert done.err.endswith("is not a URL such as https://rota.example.com.\n")
    away = {"ROTA_URL": "http://rota.example.com", "ROTA_API_KEY": "rota_x"}
    for command in (("tasks", "list"), ("login",)):
        plain = await terminal(*command, **away)
        assert plain.code == 2
        assert plain.err.startswith("http://rota.example.com is not encrypted. Use https://, or")
    down = await terminal("tasks", "list", ROTA_URL="http://127.0.0.1:1", ROTA_API_KEY="rota_x")
    assert down.code == 1
    assert "http://127.0.0.1:1" in down.err
    assert down.err.endswith(". Check the URL, and check that the service is running.\n")
    assert len(down.err.splitlines()) == 1
    unknown = await terminal("tasks", "list", "--profile", "home")
    assert (unknown.code, unknown.err) == (2, "No profile is called 'home'. Profiles: none.\n")


async def test_profiles_keep_several_services_and_accounts(
    office: Service, person: Person, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(terminal.home))
    connection.store("home", Profile("http://127.0.0.1:1", "rota_home"))
    connection.store("work", Profile(url_of(office), person.token))
    used = await terminal.ok("profiles", "use", "home", "--account", "company", "--json")
    assert used.json == {"profile": "home", "url": "http://127.0.0.1:1", "account": "company"}
    assert "Commands use home" in (await terminal.ok("profiles", "use", "home")).out
    stored = profiles.load()
    assert (stored.current, stored.named["home"].account) == ("home", "company")
    # A profile that is named counts more than the environment.
    await terminal.ok("whoami", "--profile", "work", ROTA_URL="http://x", ROTA_API_KEY="rota_x")
    missing = await terminal("profiles", "use", "other")
    assert (missing.code, missing.err) == (
        2,
        "No profile is called 'other'. See: rota profiles list\n",
    )
    terminal.profiles.write_text("{")
    broken = await terminal("profiles", "list")
    assert broken.code == 2
    assert broken.err.endswith("Delete it, and sign in again: rota login\n")


async def test_a_folder_that_cannot_be_written_is_one_line(
    office: Service, person: Person, terminal: Terminal
) -> None:
    secret = (await person.post("/api/keys", {"name": "cli"})).json()["secret"]
    terminal.home.write_text("A file, not a folder.")
    done = await terminal("login", url_of(office), "--key", typed=f"{secret}\n")
    assert done.code == 2
    assert done.err.splitlines()[-1].startswith(f"Cannot read {terminal.profiles}: ")


async def test_signing_out_of_a_service_that_is_gone_says_so(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(terminal.home))
    connection.store("default", Profile("http://127.0.0.1:1", "a.b.c"))
    done = await terminal("logout")
    assert done.code == 1
    assert done.err.startswith("The profile is deleted, but the session did not end: ")
    assert profiles.load().named == {}


def test_two_commands_at_the_same_time_lose_no_profile(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(terminal.home))

    def add(name: str) -> None:
        with profiles.changing() as stored:
            stored[0] = replace(stored[0].put(name, Profile(f"https://{name}.example")))

    threads = [threading.Thread(target=add, args=(f"p{number}",)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(profiles.load().named) == 20
