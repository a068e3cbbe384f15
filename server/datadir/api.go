package datadir

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"cupola/server/doctor"
)

// apiFile tells commands of this machine where a data directory's API is. All
// may read it, as all may ask the API.
func apiFile(dataDir string) string { return filepath.Join(dataDir, "api") }

// WriteAPI writes the file for a daemon that listens at addr. Clients that come
// before it serves wait in the listener.
func (d *Dir) WriteAPI(addr string) error { return writeLine(apiFile(d.path), localURL(addr)) }

// directorFile tells commands of this machine where the director's API is.
func directorFile(dataDir string) string { return filepath.Join(dataDir, "director") }

// WriteDirector writes the file for a daemon that serves the director's API at addr.
func (d *Dir) WriteDirector(addr string) error {
	return writeLine(directorFile(d.path), "https"+strings.TrimPrefix(localURL(addr), "http"))
}

// DirectorOf is the URL of the director's API, as the last daemon that served it left it.
// The error wraps fs.ErrNotExist where there was none.
func DirectorOf(dataDir string) (string, error) {
	text, err := os.ReadFile(directorFile(dataDir))
	return strings.TrimSpace(string(text)), err
}

// localURL is how this machine reaches a listener. One at all addresses is at
// those of IPv4 too.
func localURL(addr string) string {
	host, port, _ := net.SplitHostPort(addr) // it has been listened at
	if host == "" || net.ParseIP(host).IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// APIOf is the URL of the API of a data directory's daemon, as the last one
// left it. The error wraps fs.ErrNotExist where there was none.
func APIOf(dataDir string) (string, error) {
	text, err := os.ReadFile(apiFile(dataDir))
	return strings.TrimSpace(string(text)), err
}

// CheckRuns fails if no daemon has the data directory. Only root can tell; for
// other users it never fails.
func CheckRuns(dataDir string) error {
	if _, runs := doctor.DaemonOf(dataDir); runs || os.Geteuid() != 0 {
		return nil
	}
	return fmt.Errorf("no daemon runs on %s: start it with 'sudo cupola serve%s', or name another one's directory with --data-dir, or its API with --api", dataDir, Flag(dataDir))
}

// Flag is what commands in messages need at their end to be about a data directory; "" for
// the default one.
func Flag(dataDir string) string {
	if dataDir == Default {
		return ""
	}
	return " --data-dir " + dataDir
}
