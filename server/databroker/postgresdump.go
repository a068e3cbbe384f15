package databroker

import "strings"

// The names of a load, besides those of every instance.
const (
	restored = "db_restored" // becomes database
	replaced = "db_replaced" // was database
	restorer = "restorer"    // a role with no more rights than a binding's
)

// naming puts the names of roles and databases in their places.
var naming = strings.NewReplacer("{data}", data, "{database}", database, "{restored}", restored, "{replaced}", replaced, "{owner}", owner, "{restorer}", restorer)

const postgresPrograms = `bin="/usr/lib/postgresql/$(cat {data}/pg/PG_VERSION)/bin"
sql() { "$bin/psql" -h /tmp -d postgres -X -q -t -v ON_ERROR_STOP=1 >/dev/null; }
`

func (postgres) version() string {
	return naming.Replace(`echo "PostgreSQL $(cat {data}/pg/PG_VERSION)"`)
}

func (postgres) dump() string {
	return naming.Replace(postgresPrograms + `"$bin/pg_dump" -h /tmp -d {database} --format=custom --lock-wait-timeout=60s`)
}

// load fills another database as an ordinary user: what is in a dump runs with no more
// rights than the bindings have. Then the two exchange their names, in one transaction.
func (postgres) load() string {
	return naming.Replace(postgresPrograms + `tidy() { sql <<END
` + postgresTidy + `END
}
prepare() { sql <<END
` + postgresPrepare + `END
}
finish() { sql <<END
` + postgresFinish + `END
}
tidy && prepare "$1" &&
PGPASSWORD="$1" "$bin/pg_restore" -h 127.0.0.1 -U {restorer} -d {restored} --role={owner} --no-owner --no-acl --exit-on-error &&
finish || { tidy; false; }`)
}

// postgresTidy removes what a load left that did not come to its end.
const postgresTidy = `ALTER DATABASE {database} WITH ALLOW_CONNECTIONS true;
DROP DATABASE IF EXISTS {restored} WITH (FORCE);
DROP DATABASE IF EXISTS {replaced} WITH (FORCE);
\c {database}
SELECT unnest(ARRAY['REASSIGN OWNED BY {restorer} TO {owner}', 'DROP OWNED BY {restorer}', 'DROP ROLE {restorer}']) FROM pg_roles WHERE rolname = '{restorer}' \gexec
`

const postgresPrepare = `CREATE ROLE {restorer} LOGIN IN ROLE {owner} PASSWORD '$1';
CREATE DATABASE {restored} OWNER {owner};
REVOKE ALL ON DATABASE {restored} FROM PUBLIC;
GRANT CONNECT ON DATABASE {restored} TO {restorer};
\c {restored}
ALTER SCHEMA public OWNER TO {owner};
`

// postgresFinish gives the new database to the users of the old one, which it deletes.
const postgresFinish = `\c {restored}
REASSIGN OWNED BY {restorer} TO {owner};
DROP OWNED BY {restorer};
DROP ROLE {restorer};
SELECT 'ALTER ROLE ' || rolname || ' IN DATABASE {restored} SET role = ''{owner}''', 'GRANT CONNECT ON DATABASE {restored} TO ' || rolname
  FROM pg_roles WHERE rolcanlogin AND NOT rolsuper AND pg_has_role(oid, '{owner}', 'MEMBER') \gexec
\c postgres
ALTER DATABASE {database} WITH ALLOW_CONNECTIONS false;
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{database}' \g /dev/null
BEGIN;
ALTER DATABASE {database} RENAME TO {replaced};
ALTER DATABASE {restored} RENAME TO {database};
COMMIT;
DROP DATABASE {replaced} WITH (FORCE);
`
