#!/bin/sh
# Creates the logins and databases, once, when the data directory is empty. docs/connections.md
# describes the logins.
set -eu
psql --set=ON_ERROR_STOP=1 --username=postgres \
    --set=owner="$OWNER_PASSWORD" --set=serve="$SERVE_PASSWORD" \
    --set=worker="$WORKER_PASSWORD" --set=temporal="$TEMPORAL_PASSWORD" <<'SQL'
CREATE ROLE rota_app;
CREATE ROLE rota_relay;
GRANT rota_app TO rota_relay;
CREATE ROLE rota_owner LOGIN PASSWORD :'owner';
GRANT rota_app, rota_relay TO rota_owner WITH ADMIN OPTION;
CREATE ROLE rota_serve LOGIN NOINHERIT PASSWORD :'serve' IN ROLE rota_app;
CREATE ROLE rota_worker LOGIN NOINHERIT PASSWORD :'worker' IN ROLE rota_app, rota_relay;
CREATE DATABASE rota OWNER rota_owner;
CREATE ROLE temporal LOGIN PASSWORD :'temporal';
CREATE DATABASE temporal OWNER temporal;
CREATE DATABASE temporal_visibility OWNER temporal;
SQL
