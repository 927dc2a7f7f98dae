"""A short name for the program that signs in, from its User-Agent header."""

MAX_CHARACTERS = 100

# The first match counts: Edge and Opera also call themselves Chrome, which calls itself Safari.
_BROWSERS = {
    "Edg/": "Edge",
    "OPR/": "Opera",
    "Firefox/": "Firefox",
    "Chrome/": "Chrome",
    "Safari/": "Safari",
}
# Phones first: Android also calls itself Linux, and an iPhone says that it is like Mac OS X.
_SYSTEMS = {
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Android": "Android",
    "Windows": "Windows",
    "Mac OS X": "macOS",
    "CrOS": "ChromeOS",
    "Linux": "Linux",
}


def device_of(user_agent: str | None) -> str | None:
    """`Firefox on Windows` for a browser, `curl/8.5` for other programs."""
    if not user_agent or not user_agent.isprintable():
        return None
    browser = _first(_BROWSERS, user_agent)
    if browser is None:
        return user_agent.split()[0][:MAX_CHARACTERS] if user_agent.split() else None
    system = _first(_SYSTEMS, user_agent)
    return f"{browser} on {system}" if system else browser


def _first(names: dict[str, str], text: str) -> str | None:
    return next((name for mark, name in names.items() if mark in text), None)
