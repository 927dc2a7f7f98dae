"""Which model `rota dev` uses, and that it never uses a key unasked."""

import http.server
import json
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rota.cli import cli
from rota.dev import model_choice
from rota.dev.command import arguments
from rota.dev.run import Options, greeting, left_out, model_line
from rota.dev.stack import Endpoints
from rota.platform.settings import Settings

STUB = Path(__file__).with_name("stub_choice.py")
KEYS = {"OPENAI_API_KEY": "sk-openai", "ANTHROPIC_API_KEY": "sk-anthropic"}
# Where no Ollama listens.
NO_OLLAMA = "127.0.0.1:1"


def environ(**variables: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("ROTA_")}
    kept = {k: v for k, v in kept.items() if k not in KEYS}
    return kept | {"OLLAMA_HOST": NO_OLLAMA} | variables


def without_terminal(*words: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, str(STUB), *words],
        env=environ(**variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout + done.stderr


def on_a_terminal(answer: str, *words: str, **variables: str) -> str:
    """Runs it on a pseudo-terminal, types the answer, and returns what it printed."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, str(STUB), *words],
        env=environ(**variables),
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        os.close(theirs)
        os.write(ours, answer.encode())
        printed, _ = process.communicate(timeout=60)
    os.close(ours)
    return printed


@pytest.fixture
def ollama() -> Iterator[str]:
    """A server that answers as Ollama does. Yields its host and port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"models": [{"name": "qwen3:8b"}]}).encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_without_a_terminal_a_key_is_not_used() -> None:
    assert without_terminal(**KEYS) == "chosen: demo\n"


def test_on_a_terminal_it_asks_and_enter_means_the_demonstration_model() -> None:
    printed = on_a_terminal("\n", **KEYS)
    assert "Which model should the agents use?" in printed
    assert "OPENAI_API_KEY is set" in printed
    assert "sk-openai" not in printed
    assert printed.endswith("chosen: demo\n")


def test_on_a_terminal_a_person_can_choose_a_key() -> None:
    assert on_a_terminal("2\n", **KEYS).endswith("chosen: openai\n")


def test_on_a_terminal_a_wrong_number_is_asked_again() -> None:
    assert on_a_terminal("9\n3\n", **KEYS).endswith("chosen: anthropic\n")


def test_on_a_terminal_a_running_ollama_is_offered(ollama: str) -> None:
    printed = on_a_terminal("2\n", OLLAMA_HOST=ollama)
    assert "Ollama runs on this machine" in printed
    assert printed.endswith("chosen: ollama\n")


def test_on_a_terminal_without_anything_to_choose_it_does_not_ask() -> None:
    assert on_a_terminal("2\n").endswith("chosen: demo\n")
    assert "Which model" not in on_a_terminal("2\n")


@pytest.mark.parametrize("name", ["openai", "anthropic", "demo", "local"])
def test_the_option_answers_in_advance(name: str) -> None:
    printed = on_a_terminal("", name, **KEYS)
    assert printed == f"chosen: {name}\n"


@pytest.mark.parametrize(
    ("name", "needs"),
    [("openai", "OPENAI_API_KEY"), ("anthropic", "ANTHROPIC_API_KEY"), ("ollama", NO_OLLAMA)],
)
def test_an_option_that_is_not_possible_says_what_it_needs(name: str, needs: str) -> None:
    assert needs in without_terminal(name)


def test_the_demonstration_data_never_uses_a_key() -> None:
    assert on_a_terminal("2\n", "--demo", **KEYS).endswith("chosen: demo\n")
    assert without_terminal("--demo", ROTA_MODELS='{"default": {}}') == "chosen: demo\n"
    assert "Leave out --model" in without_terminal("--demo", "openai", **KEYS)


def test_configured_models_are_used_without_a_question() -> None:
    variables = {"ROTA_MODELS": '{"default": {"model": "m", "free": true}}', **KEYS}
    assert on_a_terminal("2\n", **variables).endswith("chosen: configured\n")


def test_the_command_refuses_an_impossible_model_before_it_starts_anything() -> None:
    variables = {"OPENAI_API_KEY": ""}
    result = CliRunner().invoke(cli, ["dev", "--model", "openai"], env=variables)
    assert result.exit_code == 2
    assert "OPENAI_API_KEY" in result.stderr


@pytest.mark.parametrize("name", ["demo", "openai", "anthropic", "ollama"])
def test_the_settings_of_each_model_are_valid_for_the_worker(name: str, ollama: str) -> None:
    models = model_choice.settings(
        name, KEYS | {"OLLAMA_HOST": ollama}, demo_url="http://127.0.0.1:1"
    )
    [variable] = model_choice.as_variable(models).values()
    choices = Settings(models=json.loads(variable)).models
    assert set(choices) == {"default", "fast", "strong"}
    if name == "ollama":
        assert choices["default"].base_url == f"http://{ollama}/v1"


def test_the_tiny_model_starts_only_if_it_is_used() -> None:
    def starts(model: str, **variables: str) -> bool:
        return "model" not in left_out(Options(Path("data"), model=model), variables)

    assert starts("local")
    assert not starts("demo")
    assert not starts("configured", ROTA_MODELS="{}")
    assert starts("configured", ROTA_MODEL_URL="http://127.0.0.1:1")


def test_a_detached_start_keeps_the_choice() -> None:
    options = Options(Path("data"), model="anthropic", demo=True)
    assert {"--model=anthropic", "--demo"} <= set(arguments(options))
    configured = arguments(Options(Path("data"), model="configured"))
    assert not any(word.startswith("--model") for word in configured)


def test_the_greeting_starts_with_the_dashboard_and_names_the_model() -> None:
    at = Endpoints("", None, "", "", None, "http://127.0.0.1:8086", None, None, None)
    options = Options(Path("data"))
    text = greeting("http://127.0.0.1:8080", at, Path("data"), model_line(options))
    assert text.splitlines()[0] == "Open http://127.0.0.1:8080 and sign in as Ada."
    assert "  Model     demonstration model" in text
    assert model_line(Options(Path("data"), without=("demo",))) == "none"
