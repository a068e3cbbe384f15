package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"cupola/rootfs/image"
	"cupola/runtime/fault"
)

// controlSocket is where, in the data directory, the daemon listens to the
// other commands of cupola. Its directory is root's alone, so whoever reaches
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

// serveControl answers other commands of cupola, until ctx ends. It calls
// listening when they can reach it.
func (d *daemon) serveControl(ctx context.Context, listening func()) error {
	var l *net.UnixListener
	err := inSocketDir(d.DataDir, func(name string) (err error) {
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err // of a daemon that was killed
		}
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
		return err
	})
	if isDiskFault(err) {
		d.Log.ErrorContext(ctx, "cupola's commands do not reach this daemon until it is restarted: free space on the data directory's disk", "err", err)
		listening()
		return nil
	}
	if err != nil {
		return fmt.Errorf("listen for cupola's commands: %w", err)
	}
	l.SetUnlinkOnClose(false) // the name it was made by does not last
	listening()
	srv := &http.Server{Handler: d.control(), ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	defer os.Remove(d.path(controlSocket))
	if err := srv.Serve(fault.Listener("control", l)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (d *daemon) control() http.Handler {
	stacks := localStacks{d}
	mux := http.NewServeMux()
	mux.Handle("GET /leaks", answer(func(r *http.Request) (any, error) { return d.leaks(r.Context()) }))
	mux.Handle("GET /data-services", answer(func(r *http.Request) (any, error) { return d.dataInstances(r.Context()) }))
	mux.Handle("GET /stacks", answer(func(r *http.Request) (any, error) { return stacks.List(r.Context()) }))
	mux.Handle("DELETE /stacks/{name}", answer(func(r *http.Request) (any, error) { return stacks.Remove(r.Context(), r.PathValue("name")) }))
	mux.Handle("GET /inspect", answer(func(r *http.Request) (any, error) { return stacks.Inspect(r.Context(), r.URL.Query().Get("name")) }))
	mux.Handle("POST /stacks/build", stream(stacks.Build))
	mux.Handle("POST /stacks/import", stream(stacks.Import))
	mux.Handle("POST /stacks/pull", stream(stacks.Pull))
	mux.Handle("POST /stacks/export", stream(stacks.Export))
	mux.HandleFunc("POST /backup", d.serveBackup)
	mux.Handle("POST /database/check", answer(func(r *http.Request) (any, error) { return struct{}{}, d.checkDatabase(r.Context()) }))
	mux.Handle("GET /token-keys", answer(func(*http.Request) (any, error) { return d.uaa.Keys.List(), nil }))
	mux.Handle("POST /token-keys", answer(func(r *http.Request) (any, error) { return d.uaa.Keys.Rotate(r.Context(), r.URL.Query().Has("forget")) }))
	mux.Handle("GET /images", answer(func(r *http.Request) (any, error) { return stacks.Images(r.Context()) }))
	mux.Handle("GET /image", answer(func(r *http.Request) (any, error) { return stacks.Image(r.Context(), r.URL.Query().Get("name")) }))
	mux.Handle("POST /images/gc", answer(func(r *http.Request) (any, error) {
		var g StackGC
		if err := json.NewDecoder(r.Body).Decode(&g); err != nil {
			return nil, err
		}
		return stacks.GC(r.Context(), g)
	}))
	return mux
}

// answer makes a handler of a call that says nothing before it is done.
func answer(call func(*http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		result, err := call(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		json.NewEncoder(w).Encode(result)
	})
}

// controlLine is a line of the answer to a call that takes its time: a step,
// or the end.
type controlLine struct {
	Step  *StackStep `json:",omitempty"`
	Stack *StackInfo `json:",omitempty"`
	Error string     `json:",omitempty"`
}

// stream makes a handler of a call that tells its steps. A client that goes
// away ends the call.
func stream[T any](call func(context.Context, T, func(StackStep)) (StackInfo, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in T
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		lines := json.NewEncoder(w)
		say := func(l controlLine) {
			lines.Encode(l)
			_ = http.NewResponseController(w).Flush() // a client that left ends the context
		}
		info, err := call(r.Context(), in, func(s StackStep) { say(controlLine{Step: &s}) })
		if err != nil {
			say(controlLine{Error: err.Error()})
			return
		}
		say(controlLine{Stack: &info})
	})
}

// control asks the daemon of a data directory.
type control struct{ http *http.Client }

func newControl(dataDir string) control {
	dial := func(ctx context.Context, _, _ string) (c net.Conn, err error) {
		err = inSocketDir(dataDir, func(name string) error {
			var d net.Dialer
			c, err = d.DialContext(ctx, "unix", name)
			return err
		})
		switch {
		case errors.Is(err, fs.ErrPermission):
			err = fmt.Errorf("only root may ask the daemon of %s: run it with sudo", dataDir)
		case err != nil && ctx.Err() == nil:
			err = fmt.Errorf("no daemon answers on %s: start it with 'sudo cupola serve', or wait if it is just starting", dataDir)
		}
		return c, err
	}
	return control{&http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// get decodes the answer to a GET into out.
func (c control) get(ctx context.Context, path string, out any) error {
	res, err := c.send(ctx, "GET", path, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return json.NewDecoder(res.Body).Decode(out)
}

func (c control) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://cupola"+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	res, err := c.http.Do(req)
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return nil, errors.New("the daemon ended before it answered: start it again, then repeat the command")
	}
	if err != nil {
		return nil, unwrapURL(err)
	}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	defer res.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10)) // what there is of it
	return nil, errors.New(string(bytes.TrimSpace(said)))
}

// unwrapURL drops the URL, which is nobody's, from an error of the client.
func unwrapURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// List asks for the stacks.
func (c control) List(ctx context.Context) (all []StackInfo, err error) {
	return all, c.get(ctx, "/stacks", &all)
}

// Build lets the daemon build a stack.
func (c control) Build(ctx context.Context, b StackBuild, progress func(StackStep)) (StackInfo, error) {
	return c.long(ctx, "/stacks/build", b, progress)
}

// Import lets the daemon import a stack.
func (c control) Import(ctx context.Context, i StackImport, progress func(StackStep)) (StackInfo, error) {
	return c.long(ctx, "/stacks/import", i, progress)
}

// Remove lets the daemon remove a stack.
func (c control) Remove(ctx context.Context, name string) (r image.Removed, err error) {
	res, err := c.send(ctx, "DELETE", "/stacks/"+url.PathEscape(name), nil)
	if err != nil {
		return r, err
	}
	defer res.Body.Close()
	return r, json.NewDecoder(res.Body).Decode(&r)
}

// Close does nothing.
func (control) Close() error { return nil }

// long makes a call that tells its steps.
func (c control) long(ctx context.Context, path string, in any, progress func(StackStep)) (StackInfo, error) {
	res, err := c.send(ctx, "POST", path, in)
	if err != nil {
		return StackInfo{}, err
	}
	defer res.Body.Close()
	lines := json.NewDecoder(res.Body)
	for {
		var l controlLine
		if err := lines.Decode(&l); err != nil {
			return StackInfo{}, fmt.Errorf("the daemon ended: %w", err)
		}
		switch {
		case l.Step != nil:
			progress(*l.Step)
		case l.Stack != nil:
			return *l.Stack, nil
		default:
			return StackInfo{}, errors.New(l.Error)
		}
	}
}
