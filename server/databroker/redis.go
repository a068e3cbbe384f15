package databroker

import (
	"fmt"

	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// redis keeps all it acknowledges in a log that it syncs before it answers. Its
// one data space is every binding's.
type redis struct{}

// admin is the user by which the broker rules, in the container alone.
const (
	redisAdmin   = "cupola"
	redisSecret  = "REDIS_SECRET"
	redisSocket  = "/tmp/redis.sock"
	redisPort    = 6379
	redisTLSPort = 6380
	// redisRestored is the file of a snapshot that replaces the data when the server starts.
	redisRestored = "restored.rdb"
	// redisLog is the directory of the log since Redis 7.
	redisLog = "redis/appendonlydir"
)

func redisService() service {
	return service{name: "redis", description: "Redis or Valkey in a container of this machine", display: "Redis", tags: []string{"redis", "valkey", "key-value"},
		port: redisPort, tlsPort: redisTLSPort, plans: plans(), engine: redis{}, ending: "rdb",
		complaints: []string{"ERR ", "WRONGPASS ", "NOAUTH ", "NOPERM ", "LOADING ", "Could not connect"},
		software:   software{packages: everySuite("redis-server"), program: "usr/bin/[rv]*-server"}}
}

// script makes the file of users next to its place. Memory is left for the copy
// of what changes while the log is rewritten. A log may begin with a snapshot, so a
// snapshot that is restored becomes the log; the server starts again for it. The log of a crash would have the
// command, which may have a password.
func (redis) script(p plan, tlsRequired bool) string {
	port := redisPort
	if tlsRequired {
		port = 0
	}
	return fmt.Sprintf(`set -eu
umask 077
mkdir -p redis
if [ ! -e redis/users.acl ]; then
  printf 'user default off\nuser %[1]s on >%%s ~* &* +@all\n' "$%[2]s" > redis/users.new
  sync redis/users.new
  mv redis/users.new redis/users.acl
  sync redis
fi
server=$(command -v redis-server || command -v valkey-server)
client=$(command -v redis-cli || command -v valkey-cli)
ask() { REDISCLI_AUTH="$%[2]s" "$client" -s %[5]s --user %[1]s --no-auth-warning "$@"; }
case $("$server" --version) in *v=[0-5].*|*v=6.[01].*) quiet= ;; *) quiet="--crash-log-enabled no" ;; esac
`, redisAdmin, redisSecret, redisRestored, redisLog, redisSocket) + redisArchiving(redisRecover+redisKeep+redisKeeper, p) + fmt.Sprintf(`until [ -n "${stopped:-}" ]; do
make_room
rm -f redis/%[1]s.new
if [ -e redis/%[1]s ]; then
  [ ! -e %[3]s ] || touch %[4]s/cut
  rm -rf %[2]s redis/appendonly.aof
  mv redis/%[1]s redis/appendonly.aof
  sync redis
fi
`, redisRestored, redisLog, archiveOn, archiveDir) + supervise(fmt.Sprintf(`"$server" --dir %s/redis --aclfile %s/redis/users.acl --bind 0.0.0.0 --port %d --tls-port %d --tls-cert-file %s --tls-key-file %s --tls-auth-clients no --unixsocket %s --unixsocketperm 700 \
  --appendonly yes --appendfsync always --save '' --maxmemory %dmb --maxmemory-policy noeviction --daemonize no $quiet $(keeping)`, data, data, port, redisTLSPort, tlsCertificate, tlsKey, redisSocket, p.memoryMB*6/10), "TERM") +
		"[ -e redis/" + redisRestored + " ] || break\ndone\nexit $code"
}

func (redis) env(i *cf.DataInstance) []lrp.EnvVar {
	return []lrp.EnvVar{{Name: redisSecret, Value: i.Secret}}
}

func (redis) client() string {
	return `export REDISCLI_AUTH="$` + redisSecret + `"
client=$(command -v redis-cli || command -v valkey-cli)
exec "$client" -s ` + redisSocket + ` --user ` + redisAdmin + ` --no-auth-warning 2>&1`
}

const redisPrograms = `cd ` + data + `/redis
export REDISCLI_AUTH="$` + redisSecret + `"
client=$(command -v redis-cli || command -v valkey-cli)
ask() { "$client" -s ` + redisSocket + ` --user ` + redisAdmin + ` --no-auth-warning "$@"; }
`

func (redis) version() string {
	return `"$(command -v redis-server || command -v valkey-server)" --version | sed -E 's/^([A-Za-z]+) server v=([0-9]+[.][0-9]+).*/\1 \2/'`
}

// dump writes a snapshot, which a new file is as soon as it has its name. There is none
// if the server says ten times that it is making none. A server that has made one refuses another
// until it knows, up to 100 ms later.
func (redis) dump() string {
	return redisPrograms + `rm -f dump.rdb
until
  said=$(ask BGSAVE SCHEDULE)
  case $said in *"already in progress"*) false ;; esac
do sleep 0.1; done
echo "$said" >&2
idle=0
while [ ! -e dump.rdb ] && [ $idle -lt 10 ]; do
  case $(ask INFO persistence) in
    *rdb_bgsave_in_progress:1*|*aof_rewrite_in_progress:1*) idle=0 ;;
    *) idle=$((idle + 1)) ;;
  esac
  sleep 0.2
done
cat dump.rdb && rm dump.rdb`
}

// load ends the server, which takes the snapshot when it starts again.
func (redis) load() string {
	return redisPrograms + `cat > ` + redisRestored + `.new && [ "$(stat -c %s ` + redisRestored + `.new)" = "$2" ] &&
sync ` + redisRestored + `.new && mv ` + redisRestored + `.new ` + redisRestored + ` && sync . && { ask SHUTDOWN NOSAVE; true; } || { rm -f ` + redisRestored + `.new; false; }`
}

func redisStatements(lines ...string) (text string) {
	for _, l := range append(lines, `ECHO "`+done+`"`, "QUIT") {
		text += l + "\n"
	}
	return text
}

func (redis) setUp() string { return redisStatements("PING") }

// grant gives all that concerns data, and what clients and people commonly ask
// the server, but not its administration.
func (redis) grant(user, password string) string {
	return redisStatements("ACL SETUSER "+user+" reset on >"+password+" ~* &* +@all -@admin -@dangerous +info +keys +sort +flushdb +flushall", "ACL SAVE")
}

// revoke ends the connections of the user as well.
func (redis) revoke(user string) string { return redisStatements("ACL DELUSER "+user, "ACL SAVE") }

func (redis) reload() string { return redisStatements("CONFIG SET tls-cert-file " + tlsCertificate) }

// disownFiles makes the script write the file of users again, with this instance's secret.
func (redis) disownFiles() string { return "rm -rf redis/users.acl " + archiveDir }
func (redis) disownUsers() string { return "" }

func (redis) credentials(a access) object {
	scheme := "redis"
	if a.tls {
		scheme = "rediss"
	}
	return object{"uri": a.url(scheme, "", ""), "host": a.host, "hostname": a.host, "port": a.port, "username": a.user, "password": a.password}
}
