package databroker

import (
	"fmt"

	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// rabbitmq is a RabbitMQ of one node with one virtual host. Its users are files, which the
// node's users are made equal to before it listens: a restore brings back none that was
// revoked.
type rabbitmq struct{}

const (
	rabbitPort    = 5672
	rabbitTLSPort = 5671
	rabbitBox     = directory("node")
)

func rabbitmqService() service {
	packages := []string{"rabbitmq-server"}
	return service{name: "rabbitmq", description: "RabbitMQ in a container of this machine", display: "RabbitMQ", tags: []string{"rabbitmq", "amqp", "messaging", "queue"},
		port: rabbitPort, tlsPort: rabbitTLSPort, plans: plans(), engine: rabbitmq{}, complaints: []string{"error: "}, ending: "tar", sameVersion: true,
		software: software{packages: map[string][]string{"debian12": packages, "debian13": packages}, program: "usr/lib/rabbitmq/bin/rabbitmq-server",
			without: []string{"python3*", "libpython3*", "socat", "logrotate", "cron", "cron-daemon-common", "libpopt0", "openssl"}}}
}

// rabbitVersion writes the major and the minor version.
const rabbitVersion = `ls -d /usr/lib/rabbitmq/lib/rabbitmq_server-* | sed -E 's/^.*-([0-9]+[.][0-9]+).*/\1/'`

// rabbitPrograms talk to the node: Erlang's distribution and its names (epmd) listen on the
// container's loopback alone, with a cookie that only the container's user can read.
const rabbitPrograms = `cd ` + data + `
export HOME=` + data + ` ERL_EPMD_ADDRESS=127.0.0.1
ask() { erl_call -sname rabbit@localhost -e 2>&1; }
users() { for file in users/*.user; do [ ! -e $file ] || printf '{<<"%s">>,<<"%s">>},' "$(basename $file .user)" "$(cat $file)"; done; }
`

// rabbitUsers makes the node's users equal to the files. The connections of users who are
// gone end.
const rabbitUsers = `true = rabbit:is_running(),
By = <<"cupola">>, Host = <<"` + database + `">>,
rabbit_vhost:exists(Host) orelse rabbit_vhost:add(Host, By),
Wanted = lists:droplast([$(users) none]),
Gone = [U || I <- rabbit_auth_backend_internal:list_users(), U <- [proplists:get_value(user, I)], not lists:keymember(U, 1, Wanted)],
[rabbit_auth_backend_internal:delete_user(U, By) || U <- Gone],
[begin
  case {rabbit_auth_backend_internal:lookup_user(U), rabbit_auth_backend_internal:user_login_authentication(U, [{password, P}])} of
    {{ok, _}, {ok, _}} -> ok;
    {{ok, _}, _} -> rabbit_auth_backend_internal:change_password(U, P, By);
    _ -> rabbit_auth_backend_internal:add_user(U, P, By)
  end,
  ok = rabbit_auth_backend_internal:set_permissions(U, Host, <<".*">>, <<".*">>, <<".*">>, By)
end || {U, P} <- Wanted],
Left = fun() -> [C || C <- rabbit_networking:local_connections(), [{user, U}] <- [(catch rabbit_networking:connection_info(C, [user]))], lists:member(U, Gone)] end,
[(catch rabbit_networking:close_connection(C, "the binding was deleted")) || C <- Left()],
Ended = lists:any(fun(_) -> Left() =:= [] orelse begin timer:sleep(100), false end end, lists:seq(1, 100)),
`

// rabbitListens comes before what makes the node listen at a port, if it does not yet.
const rabbitListens = `lists:any(fun(L) -> element(6, L) =:= %[1]d end, rabbit_networking:node_listeners(node())) orelse `

// script starts a node that does not listen, and has it listen once its users are right. A
// data directory that never came so far is made again. RabbitMQ reads data of other versions
// only after upgrades step by step, so the node does not start on such. Messages may take a
// third of the disk: a backup and a restore need as much for copies. Publishers wait
// above the limits of memory and disk.
func (rabbitmq) script(p plan, tlsRequired bool) string {
	listeners := fmt.Sprintf(rabbitListens+"rabbit_networking:start_ssl_listener(%[1]d, rabbit_networking:ensure_ssl(), 4),\n", rabbitTLSPort)
	if !tlsRequired {
		listeners += fmt.Sprintf(rabbitListens+"rabbit_networking:start_tcp_listener(%[1]d, 4),\n", rabbitPort)
	}
	return "set -eu\numask 077\n" + rabbitPrograms + `version=$(` + rabbitVersion + `)
[ -e made ] || rm -rf node
if [ -e made ] && [ "$(cat made)" != "$version" ]; then
  echo "the data is of RabbitMQ $(cat made), which RabbitMQ $version cannot read: build the stack again with the version of before (cupola broker prepare --suite)"
  exit 1
fi
mkdir -p node users
[ -e .erlang.cookie ] || { tr -d - < /proc/sys/kernel/random/uuid > cookie && chmod 600 cookie && sync cookie && mv cookie .erlang.cookie; }
` + fmt.Sprintf(`cat > rabbitmq.conf <<END
listeners.tcp = none
ssl_options.certfile = %[4]s
ssl_options.keyfile = %[5]s
ssl_options.verify = verify_none
ssl_options.versions.1 = tlsv1.3
ssl_options.versions.2 = tlsv1.2
default_vhost = %[1]s
default_user = none
default_pass = $(cat /proc/sys/kernel/random/uuid)
default_user_tags.administrator = false
vm_memory_calculation_strategy = erlang
vm_memory_high_watermark.absolute = %[2]dMB
disk_free_limit.absolute = %[3]dMB
raft.wal_max_size_bytes = 16777216
log.console = true
log.console.level = warning
log.file = false
END
`, database, p.memoryMB*45/100, p.volumeBytes>>20*2/3, tlsCertificate, tlsKey) + `export RABBITMQ_NODENAME=rabbit@localhost RABBITMQ_CONFIG_FILE=$PWD/rabbitmq.conf RABBITMQ_MNESIA_BASE=$PWD RABBITMQ_MNESIA_DIR=$PWD/node RABBITMQ_FEATURE_FLAGS_FILE=$PWD/node/feature_flags
export RABBITMQ_ENABLED_PLUGINS_FILE=/tmp/plugins RABBITMQ_GENERATED_CONFIG_DIR=/tmp/config RABBITMQ_LOG_BASE=/tmp/log RABBITMQ_PID_FILE=/tmp/rabbitmq.pid RABBITMQ_LOGS=- RABBITMQ_PLUGINS_EXPAND_DIR=/tmp/expanded ERL_CRASH_DUMP_SECONDS=0
export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1}"
listen() {
  for try in $(seq 600); do
    sleep 0.5
    [ ! -e ` + serverPID + ` ] || kill -0 $(cat ` + serverPID + `) || break
    case $(ask <<END
` + rabbitUsers + listeners + `Ended, listens.
END
) in *listens*) [ -e made ] || { echo $version > made.new && sync made.new && mv made.new made && sync -f .; }; break ;; esac
  done
}
run() { listen & exec ` + announced("/usr/lib/rabbitmq/bin/rabbitmq-server") + `; }
` + rabbitBox.script("run", "TERM")
}

func (rabbitmq) env(*cf.DataInstance) []lrp.EnvVar { return nil }

// client changes the files of users by the lines that it reads, and then the node's users.
// It refuses while a start could make the data directory again.
func (rabbitmq) client() string {
	return "umask 077\nexec 2>&1\n" + rabbitPrograms + `[ -e made ] || { echo "error: the node is starting"; exit 1; }
while read -r verb user rest; do
  case $verb in
    grant) printf '%s' "$rest" > users/$user.new && sync users/$user.new && mv users/$user.new users/$user.user ;;
    revoke) rm -f users/$user.user ;;
    quit) break ;;
  esac && sync -f users || { echo "error: cannot write the users' files"; exit 1; }
done
case $(ask <<END
` + rabbitUsers + `case Ended of true -> changed; false -> slow end.
END
) in
  *changed*) echo "` + done + `" ;;
  *slow*) echo "error: connections did not end within 10 seconds" ;;
  *) echo "error: the node does not answer" ;;
esac`
}

func (rabbitmq) setUp() string { return "quit\n" }

func (rabbitmq) grant(user, password string) string {
	return "grant " + user + " " + password + "\nquit\n"
}

func (rabbitmq) revoke(user string) string { return "revoke " + user + "\nquit\n" }

// reload is not needed: Erlang forgets what it read of certificates every two minutes.
func (rabbitmq) reload() string { return "" }

func (rabbitmq) version() string { return `echo "RabbitMQ $(` + rabbitVersion + `)"` }

// rabbitStarted waits for a node that is just starting: it would lose the signal that stops it.
const rabbitStarted = rabbitPrograms + `for try in $(seq 240); do
  case $(echo 'rabbit:is_running().' | ask) in *"ok, true"*) running=yes; break ;; esac
  sleep 0.5
done
[ -n "${running:-}" ] || { echo "the node did not start within 2 minutes" >&2; exit 1; }
`

func (rabbitmq) dump() string { return rabbitStarted + rabbitBox.dump() }
func (rabbitmq) load() string { return rabbitStarted + rabbitBox.load() }

// disownFiles leaves the node's own users, which are made equal to the files before it listens.
func (rabbitmq) disownFiles() string { return "rm -rf users" }
func (rabbitmq) disownUsers() string { return "" }

// credentials have the form of Cloud Foundry's RabbitMQ service. There is no management
// interface.
func (rabbitmq) credentials(a access) object {
	protocol, scheme := "amqp", "amqp"
	if a.tls {
		protocol, scheme = "amqp+ssl", "amqps"
	}
	uri := a.url(scheme, database, "")
	amqp := object{"host": a.host, "hosts": []string{a.host}, "port": a.port, "username": a.user, "password": a.password, "vhost": database, "ssl": a.tls, "uri": uri, "uris": []string{uri}}
	return object{"uri": uri, "uris": []string{uri}, "host": a.host, "hostname": a.host, "hostnames": []string{a.host}, "port": a.port, "username": a.user, "password": a.password,
		"vhost": database, "ssl": a.tls, "protocols": object{protocol: amqp}}
}
