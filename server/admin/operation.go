package admin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"cupola/rootfs/registry"
	"cupola/server/admin/steps"
	"cupola/server/datadir"
)

// Target is the data directory that a command asks an operation of.
type Target struct {
	DataDir    string
	Registries registry.Config // of images; a daemon that runs uses those of its configuration
	Log        *slog.Logger
}

// hold takes the data directory. The error wraps datadir.ErrInUse where a daemon
// has it.
func (t *Target) hold() (*datadir.Dir, error) {
	path, err := filepath.Abs(t.DataDir)
	if err != nil {
		return nil, err
	}
	t.DataDir = path
	if err := NeedRoot(); err != nil {
		return nil, err
	}
	return datadir.Open(path, t.Log)
}

// NeedRoot fails unless root runs this program.
func NeedRoot() error {
	if os.Geteuid() != 0 {
		return errors.New("containers need root: run it with sudo")
	}
	return nil
}

// about is what an operation is called, by the words of its command, and its help.
type about struct{ Name, Help string }

// Describe returns the name and the help.
func (a about) Describe() (name, help string) { return a.Name, a.Help }

// path is where the control socket has the operation.
func (a about) path() string { return "/" + strings.ReplaceAll(a.Name, " ", "/") }

// Operation takes In and answers Out, by parts P. Long ones report their
// progress.
type Operation[P, In, Out any] struct {
	about
	open func(*opener, context.Context) (P, error) // opens P where no daemon runs; nil: it needs a daemon
	of   func(*Daemon) P
	run  func(P, context.Context, In, steps.Func) (Out, error)
}

// quick runs what reports no progress.
func quick[P, In, Out any](f func(P, context.Context, In) (Out, error)) func(P, context.Context, In, steps.Func) (Out, error) {
	return func(p P, ctx context.Context, in In, _ steps.Func) (Out, error) { return f(p, ctx, in) }
}

// question runs what takes no request.
func question[P, Out any](f func(P, context.Context) (Out, error)) func(P, context.Context, None, steps.Func) (Out, error) {
	return func(p P, ctx context.Context, _ None, _ steps.Func) (Out, error) { return f(p, ctx) }
}

// Do asks the daemon of the target for the operation, or runs it where no daemon
// runs. report may be nil.
func (o Operation[P, In, Out]) Do(ctx context.Context, t Target, in In, report steps.Func) (out Out, err error) {
	if report == nil {
		report = func(steps.Step) {}
	}
	if o.open == nil {
		return call[Out](ctx, t.DataDir, o.path(), in, report)
	}
	dir, err := t.hold()
	if errors.Is(err, datadir.ErrInUse) {
		return call[Out](ctx, t.DataDir, o.path(), in, report)
	}
	if err != nil {
		return out, err
	}
	parts := newOpener(t, dir)
	defer func() { err = errors.Join(err, parts.close()) }()
	p, err := o.open(parts, ctx)
	if err != nil {
		return out, err
	}
	return o.run(p, ctx, in, report)
}

// line is one of the lines of an answer: a step, the answer or an error.
type line[Out any] struct {
	Step   *steps.Step `json:",omitempty"`
	Done   bool        `json:",omitempty"`
	Answer Out         `json:",omitzero"`
	Error  string      `json:",omitempty"`
}

// handler answers with lines. A client that goes away ends the operation.
func (o Operation[P, In, Out]) handler(d *Daemon) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in, ok := decode[In](w, r)
		if !ok {
			return
		}
		lines := json.NewEncoder(w)
		write := func(l line[Out]) {
			lines.Encode(l)
			_ = http.NewResponseController(w).Flush() // a client that left ends the context
		}
		out, err := o.run(o.of(d), r.Context(), in, func(s steps.Step) { write(line[Out]{Step: &s}) })
		if err != nil {
			write(line[Out]{Error: err.Error()})
			return
		}
		write(line[Out]{Done: true, Answer: out})
	})
}

func decode[In any](w http.ResponseWriter, r *http.Request) (in In, ok bool) {
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return in, false
	}
	return in, true
}

// call asks the daemon of a data directory.
func call[Out any](ctx context.Context, dataDir, path string, in any, report steps.Func) (out Out, err error) {
	res, err := newClient(dataDir).send(ctx, path, in)
	if err != nil {
		return out, err
	}
	defer res.Body.Close()
	lines := json.NewDecoder(res.Body)
	for {
		var l line[Out]
		switch err := lines.Decode(&l); {
		case err != nil:
			return out, errEnded(err)
		case l.Step != nil:
			report(*l.Step)
		case l.Done:
			return l.Answer, nil
		default:
			return out, errors.New(l.Error)
		}
	}
}

// Transfer is an operation that answers with a stream of bytes.
type Transfer[P, In any] struct {
	about
	open func(*opener, context.Context) (P, error) // opens P where no daemon runs
	of   func(*Daemon) P
	run  func(p P, ctx context.Context, in In, begin func(size int64) io.Writer) error
}

// Do writes to out what the daemon of the target sends, or what the operation
// makes where no daemon runs.
func (o Transfer[P, In]) Do(ctx context.Context, t Target, in In, out io.Writer, report func(done, total int64)) (err error) {
	w := &steps.Writer{To: out, Report: report}
	dir, err := t.hold()
	if errors.Is(err, datadir.ErrInUse) {
		return newClient(t.DataDir).receive(ctx, o.path(), in, w)
	}
	if err != nil {
		return err
	}
	parts := newOpener(t, dir)
	defer func() { err = errors.Join(err, parts.close()) }()
	p, err := o.open(parts, ctx)
	if err != nil {
		return err
	}
	return o.run(p, ctx, in, func(size int64) io.Writer { w.Total = size; return w })
}

func (o Transfer[P, In]) handler(d *Daemon) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if in, ok := decode[In](w, r); ok {
			sendBytes(w, func(begin func(int64) io.Writer) error { return o.run(o.of(d), r.Context(), in, begin) })
		}
	})
}
