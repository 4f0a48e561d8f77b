#!/bin/sh
# The daemon's login, with the rights of its group and no more. PostgreSQL's image runs this
# once, when it makes the database; `migrate up` then gives the group its rights.
set -eu
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" \
	--set=password="$(cat "${DAEMON_PASSWORD_FILE:-/run/secrets/daemon_password}")" <<'SQL'
CREATE ROLE reconciler_daemon NOLOGIN;
CREATE ROLE reconciler LOGIN PASSWORD :'password' IN ROLE reconciler_daemon;
SQL
