package databroker

import (
	"fmt"

	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// nats is a NATS server with JetStream. Its users are files, of which its configuration is
// made.
type nats struct{}

const (
	natsPort = 4222
	natsBox  = directory("jetstream")
)

func natsService() service {
	packages := everySuite("nats-server")
	delete(packages, "jammy")
	return service{name: "nats", description: "NATS with JetStream in a container of this machine", display: "NATS", tags: []string{"nats", "jetstream", "messaging", "pubsub"},
		port: natsPort, tlsPort: natsPort, plans: plans(), engine: nats{}, complaints: []string{"error: "}, quotes: []string{"proto='", "(snip: ", " Parse Error: ", " Bad or Missing "}, ending: "tar",
		software: software{packages: packages, program: "usr/sbin/nats-server"}}
}

// natsConfigure writes the server's configuration: the part of the plan, then the users.
const natsConfigure = `PATH="$PATH:/usr/sbin"
cd ` + data + `
configure() {
  { cat plan.conf; echo "authorization { users: ["; cat users/*.user 2>/dev/null; echo "] }"; } > nats.conf.new && sync nats.conf.new && mv nats.conf.new nats.conf
}
`

// script makes a user with a random password, since a server without users lets
// everyone in. It lets JetStream have a third of the disk: a backup needs as much for a copy. Since
// version 2.10 the server can sync each message.
func (nats) script(p plan, tlsRequired bool) string {
	return "set -eu\numask 077\n" + natsConfigure + fmt.Sprintf(`mkdir -p users jetstream
[ -e users/none.user ] || echo "{ user: none, password: \"$(cat /proc/sys/kernel/random/uuid)\" }" > users/none.user
export GOMEMLIMIT=%dMiB
case $(nats-server --version) in *v2.[0-9].*) sync= ;; *) sync="sync_interval: always" ;; esac
cat > plan.conf <<END
listen: "0.0.0.0:%d"
http: "127.0.0.1:8222"
tls { cert_file: "%s", key_file: "%s" }
allow_non_tls: %t
max_payload: 1MB
jetstream { store_dir: "%s/jetstream", max_memory_store: %dMB, max_file_store: %dMB, $sync }
END
configure
`, p.memoryMB*6/10, natsPort, tlsCertificate, tlsKey, !tlsRequired, data, p.memoryMB/4, p.volumeBytes>>20/3) + natsBox.script(announced("nats-server -c "+data+"/nats.conf"), "TERM")
}

func (nats) env(*cf.DataInstance) []lrp.EnvVar { return nil }

// client changes the files of users by the lines that it reads, and then waits until the
// server has read its new configuration, which ends the connections of users who are gone.
func (nats) client() string {
	return natsConfigure + `exec 2>&1
loaded() { /bin/bash -c 'exec 3<>/dev/tcp/127.0.0.1/8222 && printf "GET /varz HTTP/1.0\r\n\r\n" >&3 && grep -o "\"config_load_time\": *\"[^\"]*\"" <&3'; }
before=$(loaded) || { echo "error: the server does not answer"; exit 1; }
while read -r verb user rest; do
  case $verb in
    grant) printf '%s\n' "{ user: $user, password: \"$rest\" }" > users/$user.new && sync users/$user.new && mv users/$user.new users/$user.user ;;
    revoke) rm -f users/$user.user ;;
    quit) break ;;
  esac || { echo "error: cannot write the users' files"; exit 1; }
done
configure && kill -HUP $(cat ` + serverPID + `) || { echo "error: cannot configure the server"; exit 1; }
for try in $(seq 100); do
  [ "$(loaded)" = "$before" ] || { echo "` + done + `"; exit; }
  sleep 0.1
done
echo "error: the server did not read its users within 10 seconds"`
}

func (nats) setUp() string { return "quit\n" }

func (nats) grant(user, password string) string { return "grant " + user + " " + password + "\nquit\n" }

func (nats) revoke(user string) string { return "revoke " + user + "\nquit\n" }

func (e nats) reload() string { return e.setUp() }

func (nats) version() string {
	return `PATH="$PATH:/usr/sbin"; nats-server --version | sed -E 's/^.* v([0-9]+[.][0-9]+).*/NATS \1/'`
}

func (nats) dump() string { return natsBox.dump() }
func (nats) load() string { return natsBox.load() }

func (nats) disownFiles() string { return "rm -rf users" }
func (nats) disownUsers() string { return "" }

func (nats) credentials(a access) object {
	scheme := "nats"
	if a.tls {
		scheme = "tls"
	}
	return object{"uri": a.url(scheme, "", ""), "host": a.host, "hostname": a.host, "port": a.port, "username": a.user, "password": a.password}
}
