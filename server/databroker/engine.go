package databroker

import (
	"fmt"
	"net/url"

	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// engine manages one kind of server. Statements are what its client reads; they
// may be repeated. "" only waits until the server runs.
type engine interface {
	// client is a command of the shell that does the statements it reads, says
	// done and ends.
	client() string
	setUp() string
	grant(user, password string) string
	revoke(user string) string
	credentials(access) object

	// version is a command that writes what the database is, like "PostgreSQL 15".
	version() string
	// dump is commands that write the content of the database to the standard output,
	// load such that replace it by what they read: $2 bytes that dump wrote, by this or an
	// earlier version. $1 is random. Commands that fail say why on the standard error;
	// then the content is as before. Commands of a load may end the database.
	dump() string
	load() string
}

// builtIn is an engine whose programs are in the stack of services.
type builtIn interface {
	engine
	// script is a program of the shell, which starts in the volume. Where its service has a tlsPort, the server
	// shows clients the certificate tlsCertificate; if TLS is required, it refuses connections without.
	script(p plan, tlsRequired bool) string
	// reload is statements that make the server read its certificate again; "" where it does so by itself.
	reload() string
	env(*cf.DataInstance) []lrp.EnvVar
	// disownFiles is commands of the shell that delete, from a copy of the volume of another
	// instance, what is only that one's: users and points in time. disownUsers are statements that delete the users
	// which are not in files; "" for none. Both may be repeated.
	disownFiles() string
	disownUsers() string
}

// access is what an app needs to connect.
type access struct {
	host, user, password string
	port                 uint16
	tls                  bool // the port is one for TLS
}

func (a access) url(scheme, path, query string) string {
	u := url.URL{Scheme: scheme, User: url.UserPassword(a.user, a.password), Host: fmt.Sprintf("%s:%d", a.host, a.port), Path: path, RawQuery: query}
	return u.String()
}

// done is what a client says once it has done all.
const done = "all statements are done"

// serverPID is a file that has the ID of a server's process that is announced.
const serverPID = "/tmp/server.pid"

// announced is a command that writes its process's ID to serverPID, for programs that send it
// signals. A shell does so that then becomes the server: the script's own child could
// lose a signal, which it handles as the script does until it is another program.
func announced(command string) string {
	return "/bin/sh -c 'echo $$ > " + serverPID + "; exec " + command + "'"
}

// supervise is a part of a script that runs a command to its end. The shell stays, to turn
// a TERM into the signal that the command ends well by; then stopped is set.
func supervise(command, signal string) string {
	return "code=0\npid=\nrm -f " + serverPID + `
trap 'stopped=yes; [ -z "$pid" ] || kill -` + signal + ` $pid || true' TERM
` + command + ` &
pid=$!
[ -z "${stopped:-}" ] || kill -` + signal + ` $pid || true
wait $pid || code=$?
[ -z "${stopped:-}" ] || { code=0; wait $pid || code=$?; }
`
}
