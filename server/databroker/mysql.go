package databroker

import (
	"fmt"
	"net/url"
	"strings"

	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// mysql is MariaDB with one database. Each binding has a user with all privileges on it.
type mysql struct{}

// The names of a MariaDB, besides those of every instance.
const (
	mysqlSocket = "/tmp/mysql.sock"
	// mysqlRestored is a data directory that replaces the present one when the server starts.
	mysqlRestored = "restored"
	// mysqlUsers matches the names of bindings' users.
	mysqlUsers = "^u[0-9a-f]{16}$"
)

func mysqlService() service {
	packages := map[string][]string{"jammy": {"mariadb-server-core-10.6", "mariadb-client-10.6"}}
	for _, suite := range []string{"debian12", "debian13", "noble"} {
		packages[suite] = []string{"mariadb-server-core", "mariadb-client"}
	}
	return service{name: "mysql", description: "MariaDB in a container of this machine", display: "MySQL (MariaDB)", tags: []string{"mysql", "mariadb", "relational", "sql"},
		port: 3306, tlsPort: 3306, plans: plans(), engine: mysql{}, complaints: []string{"ERROR "}, ending: "sql",
		software: software{packages: packages, without: []string{"perl", "libconfig-inifiles-perl"}, program: "usr/sbin/mariadbd"}}
}

// mysqlPath contains the server, which Debian keeps from the paths of users.
const mysqlPath = `PATH="$PATH:/usr/sbin"
`

// mysqlInit makes an empty data directory. The administrator is the container's own user,
// who has no password and comes by the socket.
const mysqlInit = `mariadb-install-db --no-defaults --skip-test-db --skip-name-resolve --auth-root-authentication-method=socket --auth-root-socket-user=vcap \
  --innodb-buffer-pool-size=8M --innodb-log-file-size=16M --innodb-flush-log-at-trx-commit=0 --aria-pagecache-buffer-size=1M`

// mysqlServer is a server but for what differs between the real one and that of a load. A trace of the stack has the statement, which may have a password.
const mysqlServer = `mariadbd --no-defaults --innodb-flush-log-at-trx-commit=1 --innodb-log-file-size=16M --key-buffer-size=1M \
  --character-set-server=utf8mb4 --collation-server=utf8mb4_unicode_ci --skip-name-resolve --local-infile=0 --skip-symbolic-links --skip-stack-trace`

const mysqlClient = `mariadb --no-defaults --user=vcap --batch --skip-column-names`

// script makes the data directory next to its place, so that a half one is never taken for
// whole. A data directory that a load filled takes the place of the present one, and the
// server starts again for it. After a change of MariaDB's version, the system tables are
// upgraded while the server runs.
func (mysql) script(p plan, tlsRequired bool) string {
	secure := " --ssl-cert=" + tlsCertificate + " --ssl-key=" + tlsKey + " --tls-version=TLSv1.2,TLSv1.3"
	if tlsRequired {
		secure += " --require-secure-transport=ON"
	}
	return `set -eu
umask 077
` + mysqlPath + `rm -rf new tmp ` + mysqlRestored + `.new
mkdir tmp
if [ ! -e mysql ] && [ ! -e ` + mysqlRestored + ` ]; then
  ` + mysqlInit + ` --datadir=` + data + `/new >/tmp/init.log || { cat /tmp/init.log; exit 1; }
  mariadbd --version > new/cupola_version
  sync -f new
  mv new mysql
  sync -f .
fi
until [ -n "${stopped:-}" ]; do
if [ -e ` + mysqlRestored + ` ]; then
  rm -rf replaced
  [ ! -e mysql ] || mv mysql replaced
  mv ` + mysqlRestored + ` mysql
  sync -f .
fi
rm -rf replaced
mariadbd --version > tmp/version
cmp -s tmp/version mysql/cupola_version || for try in $(seq 100); do
  sleep 1
  if mariadb-upgrade --no-defaults --user=vcap --socket=` + mysqlSocket + ` --silent; then cp tmp/version mysql/cupola_version; break; fi
done &
` + supervise(mysqlServer+fmt.Sprintf(` --datadir=%[1]s/mysql --tmpdir=%[1]s/tmp --socket=%[2]s --port=3306 --bind-address=0.0.0.0 --event-scheduler=ON \
  --innodb-buffer-pool-size=%[3]dM --aria-pagecache-buffer-size=8M --max-connections=%[4]d`, data, mysqlSocket, p.memoryMB/4, max(p.memoryMB/5, 50))+secure, "TERM") +
		"[ -e " + mysqlRestored + " ] || break\ndone\nexit $code"
}

func (mysql) env(*cf.DataInstance) []lrp.EnvVar { return nil }

func (mysql) client() string {
	return "exec " + mysqlClient + " --socket=" + mysqlSocket + " 2>&1"
}

// mysqlStatements are statements of the client, which ends at the first one that fails.
func mysqlStatements(lines ...string) string {
	return strings.Join(append(lines, "SELECT '"+done+"';", `\q`), "\n") + "\n"
}

// mysqlDatabase makes the database and the user whose rights its views, routines, triggers
// and events have after a restore: no one can log in as that user.
func mysqlDatabase() []string {
	return []string{
		"CREATE DATABASE IF NOT EXISTS " + database + " CHARACTER SET utf8mb4;",
		"CREATE USER IF NOT EXISTS '" + owner + "'@'%' ACCOUNT LOCK;",
		"GRANT ALL PRIVILEGES ON " + database + ".* TO '" + owner + "'@'%';",
	}
}

func (mysql) setUp() string { return mysqlStatements(mysqlDatabase()...) }

func (mysql) grant(user, password string) string {
	return mysqlStatements(
		"CREATE USER IF NOT EXISTS '"+user+"'@'%';",
		"ALTER USER '"+user+"'@'%' IDENTIFIED BY '"+password+"' ACCOUNT UNLOCK;",
		"GRANT ALL PRIVILEGES ON "+database+".* TO '"+user+"'@'%';",
	)
}

// revoke forbids new connections, then ends those that are there. A user who defined views,
// routines, triggers or events stays, without a way to log in: they have the user's rights.
func (mysql) revoke(user string) string {
	name := "'" + user + "'@'%'"
	defined := "SET @defined = " + mysqlDefines("'"+user+"'") + ";"
	return mysqlStatements(
		"CREATE USER IF NOT EXISTS "+name+";",
		"ALTER USER "+name+" IDENTIFIED VIA mysql_native_password USING 'invalid' ACCOUNT LOCK;",
		"KILL HARD USER "+name+";",
		defined,
		`EXECUTE IMMEDIATE IF(@defined, 'DO 0', "DROP USER `+name+`");`,
	)
}

func (mysql) reload() string { return mysqlStatements("FLUSH SSL;") }

// mysqlDefines is an expression that says whether the user that another expression names has defined anything.
func mysqlDefines(user string) string {
	return "EXISTS(SELECT 1 FROM (SELECT DEFINER FROM information_schema.VIEWS UNION SELECT DEFINER FROM information_schema.ROUTINES" +
		" UNION SELECT DEFINER FROM information_schema.TRIGGERS UNION SELECT DEFINER FROM information_schema.EVENTS) d WHERE DEFINER = CONCAT(" + user + ", '@%'))"
}

func (mysql) disownFiles() string { return "" }

// disownUsers does what revoke does, for all users of bindings. It needs its own delimiter, since its statements are parts of one.
func (mysql) disownUsers() string {
	return mysqlStatements(`DELIMITER //
BEGIN NOT ATOMIC
  FOR u IN (SELECT User AS name FROM mysql.global_priv WHERE Host = '%' AND User REGEXP '` + mysqlUsers + `') DO
    EXECUTE IMMEDIATE CONCAT("ALTER USER '", u.name, "'@'%' IDENTIFIED VIA mysql_native_password USING 'invalid' ACCOUNT LOCK");
    IF NOT ` + mysqlDefines("u.name") + ` THEN
      EXECUTE IMMEDIATE CONCAT("DROP USER '", u.name, "'@'%'");
    END IF;
  END FOR;
END //
DELIMITER ;`)
}

func (mysql) version() string {
	return mysqlPath + `mariadbd --version | sed -E 's/^.* Ver ([0-9]+[.][0-9]+).*/MariaDB \1/'`
}

// dump reads all tables of InnoDB as of one moment.
func (mysql) dump() string {
	return "mariadb-dump --no-defaults --user=vcap --socket=" + mysqlSocket + " --single-transaction --quick --routines --triggers --events --hex-blob --skip-dump-date " + database
}

// load fills the database of a second server, as a user with the rights of a binding. That
// server's directory, with the users of the present one, becomes the present one at the
// next start, which load causes. A dump that was cut lacks its last line, which becomes a
// statement here. The owner replaces all other definers.
func (mysql) load() string {
	return mysqlPath + `cd ` + data + `
new=` + data + `/` + mysqlRestored + `.new
socket=/tmp/restore.sock
tidy() { [ -z "${pid:-}" ] || { kill -KILL $pid; wait $pid; } 2>/dev/null; rm -rf "$new" tmp/restore; false; }
ask() { ` + mysqlClient + ` --socket=$socket "$@"; }
rm -rf "$new" ` + mysqlRestored + ` tmp/restore && mkdir tmp/restore || exit 1
` + mysqlInit + ` --datadir="$new" >/dev/null </dev/null || { tidy; exit 1; }
` + mysqlServer + ` --datadir="$new" --tmpdir=` + data + `/tmp/restore --socket=$socket --skip-networking --innodb-buffer-pool-size=16M --aria-pagecache-buffer-size=1M --max-connections=5 >tmp/restore/log 2>&1 </dev/null &
pid=$!
until ask -e 'DO 0' 2>/dev/null; do kill -0 $pid 2>/dev/null || { tail -n 3 tmp/restore/log >&2; tidy; exit 1; }; sleep 0.1; done
{ ask <<END
` + strings.Join(mysqlDatabase(), "\n") + `
ALTER USER '` + owner + `'@'%' IDENTIFIED BY '$1' ACCOUNT UNLOCK;
END
} && loaded=$(sed -E -e '/^(CREATE |\/\*!)/s/DEFINER=` + "`[^`]*`@`[^`]*`" + `//' -e '$s/^-- Dump completed$/SELECT "loaded";/' |
  mariadb --no-defaults --user=` + owner + ` --password="$1" --socket=$socket --batch --skip-column-names --binary-mode ` + database + `) &&
{ [ "$loaded" = loaded ] || { echo "the backup is not whole" >&2; false; }; } &&
mariadb-dump --no-defaults --user=vcap --socket=` + mysqlSocket + ` --no-create-info --replace --compact --where="User REGEXP '` + mysqlUsers + `'" mysql global_priv db > tmp/restore/users &&
ask mysql < tmp/restore/users &&
ask -e "ALTER USER '` + owner + `'@'%' IDENTIFIED VIA mysql_native_password USING 'invalid' ACCOUNT LOCK; SHUTDOWN" &&
wait $pid && pid= && mariadbd --version > "$new/cupola_version" && sync -f "$new" && mv "$new" ` + mysqlRestored + ` && sync -f . &&
` + mysqlClient + ` --socket=` + mysqlSocket + ` -e SHUTDOWN || tidy`
}

// credentials have the names that Cloud Foundry's brokers of MySQL use. For TLS, the uri has the words of MySQL's own programs, and the
// jdbcUrl those that MySQL's driver and MariaDB's have in common, with the file that the latter verifies by.
func (mysql) credentials(a access) object {
	query, mode, jdbc := url.Values{"user": {a.user}, "password": {a.password}}, "", ""
	if a.tls {
		mode, jdbc = "ssl-mode=VERIFY_IDENTITY&ssl-ca="+appTrust, "&sslMode=VERIFY_IDENTITY&serverSslCert="+appTrust
	}
	return object{"uri": a.url("mysql", database, mode), "jdbcUrl": fmt.Sprintf("jdbc:mysql://%s:%d/%s?%s%s", a.host, a.port, database, query.Encode(), jdbc),
		"host": a.host, "hostname": a.host, "port": a.port, "name": database, "database": database, "username": a.user, "password": a.password}
}
