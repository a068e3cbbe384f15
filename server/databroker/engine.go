package databroker

import (
	"fmt"
	"net/url"

	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// engine is what a kind of database is run and ruled by. Statements are what
// its client reads, and may be made again.
type engine interface {
	// script is a program of the shell, which starts in the volume.
	script(plan) string
	env(*cf.DataInstance) []lrp.EnvVar
	// client is a command of the shell that does the statements it reads, says
	// done and ends.
	client() string
	setUp() string
	grant(user, password string) string
	revoke(user string) string
	credentials(access) object
}

// access is what an app needs to connect.
type access struct {
	host, user, password string
	port                 uint16
}

func (a access) url(scheme, path, query string) string {
	u := url.URL{Scheme: scheme, User: url.UserPassword(a.user, a.password), Host: fmt.Sprintf("%s:%d", a.host, a.port), Path: path, RawQuery: query}
	return u.String()
}

// done is what a client says once it has done all.
const done = "all statements are done"

// supervised is the end of a script that runs a command. The shell stays, to turn
// a TERM into the signal that the command ends well by.
func supervised(command, signal string) string {
	return command + ` &
pid=$!
trap 'kill -` + signal + ` $pid; stopped=yes' TERM
wait $pid || code=$?
[ -z "${stopped:-}" ] || { code=0; wait $pid || code=$?; }
exit ${code:-0}`
}
