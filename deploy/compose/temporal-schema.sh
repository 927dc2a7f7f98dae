#!/bin/sh
# Creates the schemas of Temporal, or updates them to the version of the tool. SQL_* name the server.
set -eu
for database in temporal temporal_visibility; do
    schema=postgresql/v12/$([ $database = temporal ] && echo temporal || echo visibility)
    # An existing schema keeps its version.
    temporal-sql-tool --database $database setup-schema --version 0.0 2>/dev/null || true
    temporal-sql-tool --database $database update-schema --schema-name "$schema"
done
