"""The database that docker-compose.yml makes, on a real PostgreSQL."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import psycopg

from sidecar.store.migrate import migrate
from stack.paths import ROOT
from stack.postgres import Postgres


def test_the_sidecar_owns_its_database_and_nothing_else(own_postgres: Postgres, tmp_path: Path) -> None:
    # The tests' own.
    own_postgres.administer("DROP ROLE {}", "sidecar")
    (tmp_path / "postgres.password").write_text("not to be guessed")
    script = (ROOT / "deploy/compose/make-database.sh").read_text().replace("/etc/responses/secrets", str(tmp_path))
    path = f"{own_postgres.programs}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PGHOST": str(own_postgres.directory)}
    subprocess.run(["sh", "-c", script], env=environment, check=True)
    migrate(own_postgres.url("sidecar"))
    with psycopg.connect(own_postgres.url("sidecar")) as connection:
        rights = connection.execute(
            "SELECT rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls FROM pg_roles"
            " WHERE rolname = current_user"
        ).fetchone()
        assert rights == (False, False, False, False, False)
        assert connection.execute("SHOW server_encoding").fetchone() == ("UTF8",)
    with psycopg.connect(host=str(own_postgres.directory), user="postgres", dbname="postgres") as connection:
        kept = connection.execute("SELECT rolpassword FROM pg_authid WHERE rolname = 'sidecar'").fetchone()
        assert kept is not None
        assert kept[0].startswith("SCRAM-SHA-256$")
