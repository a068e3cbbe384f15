package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"cupola/runtime/fault"
	"cupola/server/datadir"
)

// controlSocket is where, in the data directory, the daemon listens to the
// other commands of cupola. Its directory is root's alone, so a process that reaches
// it may do everything.
const controlSocket = "db/control.sock"

// inSocketDir runs do with a name for the data directory's socket that is
// short enough for a socket address, which ends at 107 bytes.
func inSocketDir(dataDir string, do func(name string) error) error {
	dir, err := os.Open(filepath.Join(dataDir, filepath.Dir(controlSocket)))
	if err != nil {
		return err
	}
	defer dir.Close()
	return do(fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(controlSocket)))
}

// serve answers other commands of cupola, until ctx ends. It calls listening when
// they can reach it.
func (d *Daemon) serve(ctx context.Context, listening func()) error {
	var l *net.UnixListener
	err := inSocketDir(d.Dir.Path(), func(name string) (err error) {
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err // of a daemon that was killed
		}
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
		return err
	})
	if datadir.IsDiskFault(err) {
		d.Log.ErrorContext(ctx, "cupola's commands do not reach this daemon until it is restarted: free space on the data directory's disk", "err", err)
		listening()
		return nil
	}
	if err != nil {
		return fmt.Errorf("listen for cupola's commands: %w", err)
	}
	l.SetUnlinkOnClose(false) // the name it was made by does not last
	listening()
	srv := &http.Server{Handler: mux(d), ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	defer os.Remove(d.Dir.Path(controlSocket))
	if err := srv.Serve(fault.Listener("control", l)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// mux has each operation at its path.
func mux(d *Daemon) http.Handler {
	m := http.NewServeMux()
	for _, o := range Table() {
		m.Handle("POST "+o.path(), o.handler(d))
	}
	return m
}

// What the daemon says of bytes that it sends: how many there are, and after them
// why it broke off.
const (
	sizeHeader   = "Cupola-Size"
	errorTrailer = "Cupola-Error"
)

// sendBytes answers with what write writes.
func sendBytes(w http.ResponseWriter, write func(begin func(size int64) io.Writer) error) {
	w.Header().Set("Trailer", errorTrailer)
	begun := false
	err := write(func(size int64) io.Writer {
		begun = true
		w.Header().Set(sizeHeader, strconv.FormatInt(size, 10))
		return w
	})
	switch {
	case err == nil:
	case begun:
		w.Header().Set(errorTrailer, strconv.Quote(err.Error()))
	default:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
