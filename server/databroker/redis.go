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
	redisAdmin  = "cupola"
	redisSecret = "REDIS_SECRET"
	redisSocket = "/tmp/redis.sock"
)

// script makes the file of users beside its place. Memory is left for the copy
// of what changes while the log is rewritten.
func (redis) script(p plan) string {
	return fmt.Sprintf(`set -eu
umask 077
mkdir -p redis
if [ ! -e redis/users.acl ]; then
  printf 'user default off\nuser %s on >%%s ~* &* +@all\n' "$%s" > redis/users.new
  sync redis/users.new
  mv redis/users.new redis/users.acl
  sync redis
fi
server=$(command -v redis-server || command -v valkey-server)
`, redisAdmin, redisSecret) + supervised(fmt.Sprintf(`"$server" --dir %s/redis --aclfile %s/redis/users.acl --bind 0.0.0.0 --port 6379 --unixsocket %s --unixsocketperm 700 \
  --appendonly yes --appendfsync always --save '' --maxmemory %dmb --maxmemory-policy noeviction --daemonize no`, data, data, redisSocket, p.memoryMB*6/10), "TERM")
}

func (redis) env(i *cf.DataInstance) []lrp.EnvVar {
	return []lrp.EnvVar{{Name: redisSecret, Value: i.Secret}}
}

func (redis) client() string {
	return `export REDISCLI_AUTH="$` + redisSecret + `"
client=$(command -v redis-cli || command -v valkey-cli)
exec "$client" -s ` + redisSocket + ` --user ` + redisAdmin + ` --no-auth-warning 2>&1`
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

func (redis) credentials(a access) object {
	return object{"uri": a.url("redis", "", ""), "host": a.host, "hostname": a.host, "port": a.port, "username": a.user, "password": a.password}
}
