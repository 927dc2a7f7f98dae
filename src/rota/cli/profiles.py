"""Profiles: the services that this user signed in to, in a file that only this user can read."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Self

DEFAULT = "default"


class ProfileError(Exception):
    """The file cannot be used. The message says what to do."""


@dataclass(frozen=True)
class Profile:
    """A service, and the session token or API key to use there."""

    url: str
    token: str | None = field(default=None, repr=False)
    # The selected account, as X-Service-Account takes it.
    account: str | None = None
    # The API keys that `rota mcp` uses, by account: each with its `id` and `secret`. A session
    # could approve, and `rota mcp` must not.
    mcp_keys: dict[str, dict[str, str]] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Profiles:
    # None after a sign-out: commands must not go to another service than before.
    current: str | None = None
    named: dict[str, Profile] = field(default_factory=dict)

    def find(self, name: str | None) -> Profile | None:
        return self.named.get(name or self.current or "")

    def put(self, name: str, profile: Profile) -> Self:
        return replace(self, named={**self.named, name: profile})

    def remove(self, name: str) -> Self:
        left = {key: each for key, each in self.named.items() if key != name}
        current = None if name == self.current else self.current
        return replace(self, named=left, current=current)


def file_path() -> Path:
    try:
        base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    except RuntimeError:
        # A container can run as a user that its system does not know.
        raise ProfileError(
            "This user has no home folder. Set HOME or XDG_CONFIG_HOME, or use ROTA_URL and"
            " ROTA_API_KEY."
        ) from None
    return base / "rota" / "profiles.json"


def load() -> Profiles:
    path = file_path()
    try:
        with path.open(encoding="utf-8") as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                raise ProfileError(
                    f"Other users can read {path}, which has tokens. Run: chmod 600 {path}"
                )
            stored = json.load(file)
        named = {name: Profile(**fields) for name, fields in stored["profiles"].items()}
        current = stored["current"]
        return Profiles(None if current is None else str(current), named)
    except FileNotFoundError:
        return Profiles()
    except OSError as error:
        raise ProfileError(f"Cannot read {path}: {error.strerror}.") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ProfileError(
            f"{path} is not a file of profiles. Delete it, and sign in again: rota login"
        ) from None


@contextmanager
def changing() -> Iterator[list[Profiles]]:
    """The profiles as a list of one. What the list has at the end is stored.

    Several commands can run at the same time, so a lock is held from reading to writing.
    """
    path = file_path()
    lock = _locked("lock")
    try:
        profiles = [load()]
        yield profiles
        _write(path, profiles[0])
    except OSError as error:
        raise ProfileError(f"Cannot write {path}: {error.strerror}.") from None
    finally:
        os.close(lock)


@contextmanager
def changing_keys() -> Iterator[None]:
    """While keys of profiles are created or revoked. It is another lock, because that can take long
    and `changing` must not: a lock of keys can be held around it, and never the other way round."""
    lock = _locked("keys-lock")
    try:
        yield
    finally:
        os.close(lock)


def _locked(name: str) -> int:
    """A file that is locked until it is closed."""
    # Windows does not have it, and commands such as `rota --version` do not need it.
    import fcntl

    path = file_path().with_name(name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
    except OSError as error:
        raise ProfileError(f"Cannot write {path}: {error.strerror}.") from None
    return lock


def _write(path: Path, profiles: Profiles) -> None:
    stored = {
        "current": profiles.current,
        "profiles": {name: asdict(each) for name, each in profiles.named.items()},
    }
    written = path.with_name(f"{path.name}.new")
    written.unlink(missing_ok=True)
    # Readable by this user only from the first moment, and replaced as a whole.
    with open(os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(stored, file, indent=2)
    written.replace(path)
