#!/bin/sh
# Run by PostgreSQL's image when its data is made: a database, whose owner is no administrator.
set -eu
psql --variable=ON_ERROR_STOP=1 --no-psqlrc --quiet --username=postgres --dbname=postgres <<'SQL'
\set password `cat /etc/responses/secrets/postgres.password`
CREATE ROLE sidecar LOGIN PASSWORD :'password';
CREATE DATABASE sidecar OWNER sidecar TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C';
REVOKE ALL ON DATABASE sidecar FROM PUBLIC;
SQL
