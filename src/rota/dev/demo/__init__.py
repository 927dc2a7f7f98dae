"""The demonstration: a scripted model, tool servers with invented data, and a month of history.

`rota dev` uses them, so that people see agents, gates and charges without any account elsewhere.
Nothing here is a real model, and nothing leaves the machine.
"""

# The short names under which the shipped agents know the tool servers.
SERVERS = ("helpdesk", "helpcenter", "accounting")

# The people of the development identity provider who get the tool servers at start.
PEOPLE = ("ada", "grace", "katherine", "alan")
