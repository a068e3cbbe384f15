package databroker

import (
	"fmt"
	"net/url"

	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// postgres has one database, which belongs to a role that all bindings share:
// what one made, the next can change, and nothing goes with a binding.
type postgres struct{}

const (
	database = "db"
	owner    = "owner"
)

func postgresService() service {
	return service{name: "postgres", description: "PostgreSQL in a container of this machine", display: "PostgreSQL", tags: []string{"postgresql", "postgres", "relational", "sql"},
		port: 5432, tlsPort: 5432, plans: plans(), engine: postgres{}, complaints: []string{"ERROR:", "FATAL:", "error:"}, ending: "dump",
		software: software{
			packages: map[string][]string{"debian12": postgresPackages("15"), "debian13": postgresPackages("17"), "jammy": postgresPackages("14"), "noble": postgresPackages("16")},
			// Queries are not compiled (jit=off), and Debian's scripts around PostgreSQL are not used.
			without: []string{"libllvm*", "libz3-*", "postgresql-common*", "postgresql-client-common", "perl", "libperl*", "perl-modules-*", "locales", "libc-l10n", "ssl-cert", "ucf"},
			program: "usr/lib/postgresql/*/bin/postgres",
		}}
}

func postgresPackages(major string) []string {
	return []string{"postgresql-" + major, "postgresql-client-" + major}
}

// script makes the cluster next to its place, so that a half one is never taken
// for whole. The superuser has no password: it comes by the container's own
// socket alone. SIGINT is PostgreSQL's fast shutdown; SIGTERM would wait for
// clients. The interlock file is another container's, which the volume's
// exclusion has ended. Errors of statements are for their clients alone: they quote what was sent, such as passwords.
func (postgres) script(p plan, tlsRequired bool) string {
	hosts := "host"
	if tlsRequired {
		hosts = "hostssl"
	}
	return `set -eu
umask 077
` + fmt.Sprintf(`server() {
  exec "$bin/postgres" "$@" -c unix_socket_directories=/tmp \
    -c jit=off -c fsync=on -c synchronous_commit=on -c full_page_writes=on -c password_encryption=scram-sha-256 \
    -c shared_buffers=%dMB -c max_connections=%d -c log_min_error_statement=panic -c log_min_messages=log -c log_error_verbosity=terse
}
`, p.memoryMB/4, max(p.memoryMB/5, 50)) + archiving(postgresRecover) + `if [ ! -e pg ]; then
  rm -rf new
  bin=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
  "$bin/initdb" -D new -U vcap -E UTF8 --locale=C.UTF-8 --auth-local=peer --auth-host=scram-sha-256 --no-instructions --no-sync
  sync -f new
  mv new pg
  sync -f .
fi
bin="/usr/lib/postgresql/$(cat pg/PG_VERSION)/bin"
rm -f pg/postmaster.pid
printf '%s\n' 'local all vcap peer' 'local replication vcap peer' 'host all vcap all reject' '` + hosts + ` all all all scram-sha-256' > pg/pg_hba.conf
` + postgresArchiver(p) + supervise(`server -D pg -c listen_addresses='*' -c ssl=on -c ssl_cert_file=`+tlsCertificate+` -c ssl_key_file=`+tlsKey+` -c archive_mode=on -c archive_command='/bin/sh `+archiveProgram+` %p %f'`, "INT") + "exit $code"
}

func (postgres) env(*cf.DataInstance) []lrp.EnvVar { return nil }

func (postgres) client() string {
	return "exec /usr/lib/postgresql/$(cat " + data + "/pg/PG_VERSION)/bin/psql -h /tmp -d postgres -X -q -t -v ON_ERROR_STOP=1 2>&1"
}

func (postgres) setUp() string {
	return `SELECT 'CREATE ROLE ` + owner + ` NOLOGIN' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '` + owner + `') \gexec
SELECT 'CREATE DATABASE ` + database + ` OWNER ` + owner + `' WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = '` + database + `') \gexec
REVOKE ALL ON DATABASE ` + database + `, postgres, template1 FROM PUBLIC;
\c ` + database + `
ALTER SCHEMA public OWNER TO ` + owner + `;
\echo ` + done + `
\q
`
}

func (postgres) grant(user, password string) string {
	return `SELECT 'CREATE ROLE ` + user + `' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '` + user + `') \gexec
ALTER ROLE ` + user + ` LOGIN PASSWORD '` + password + `';
GRANT ` + owner + ` TO ` + user + `;
ALTER ROLE ` + user + ` IN DATABASE ` + database + ` SET role = '` + owner + `';
GRANT CONNECT ON DATABASE ` + database + ` TO ` + user + `;
\echo ` + done + `
\q
`
}

// revoke forbids new connections, then terminates existing sessions.
func (postgres) revoke(user string) string {
	return `SELECT 'ALTER ROLE ` + user + ` NOLOGIN' FROM pg_roles WHERE rolname = '` + user + `' \gexec
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = '` + user + `' \g /dev/null
\c ` + database + `
SELECT unnest(ARRAY['REASSIGN OWNED BY ` + user + ` TO ` + owner + `', 'DROP OWNED BY ` + user + `', 'DROP ROLE ` + user + `']) FROM pg_roles WHERE rolname = '` + user + `' \gexec
\echo ` + done + `
\q
`
}

func (postgres) reload() string {
	return "SELECT pg_reload_conf() \\g /dev/null\n\\echo " + done + "\n\\q\n"
}

func (postgres) disownFiles() string { return "rm -rf " + archiveDir }
func (postgres) disownUsers() string { return archiving(postgresDropUsers) }

// credentials say whether to use TLS in words of libpq, which other drivers understand, too.
func (postgres) credentials(a access) object {
	query, mode := url.Values{"user": {a.user}, "password": {a.password}}, "sslmode=disable"
	if a.tls {
		mode = "sslmode=verify-full&sslrootcert=" + appTrust
	}
	return object{"uri": a.url("postgres", database, mode), "jdbcUrl": fmt.Sprintf("jdbc:postgresql://%s:%d/%s?%s&%s", a.host, a.port, database, query.Encode(), mode),
		"host": a.host, "hostname": a.host, "port": a.port, "name": database, "database": database, "username": a.user, "password": a.password}
}
