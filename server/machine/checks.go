package machine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"cupola/runtime/fault"
	"cupola/server/refusal"
)

// Checks is what cupola doctor found, as GET /v1/machine/checks shows it.
type Checks struct {
	CheckedAt time.Time       `json:"checked_at"`
	Results   json.RawMessage `json:"results"` // a list of objects with name, level (ok, warn, fail), detail and, unless ok, fix
}

// Check is one of the results.
type Check struct {
	Name   string `json:"name"`
	Level  string `json:"level"` // ok, warn or fail
	Detail string `json:"detail"`
	Fix    string `json:"fix"`
}

// List returns what the checks find.
func (m *Machine) List(ctx context.Context) (all []Check, err error) {
	c, err := m.check(ctx)
	if err == nil {
		err = json.Unmarshal(c.Results, &all)
	}
	return all, err
}

// checks holds the last result. The holder of turn runs the checks or waits for
// them.
type checks struct {
	turn chan struct{}
	last Checks
}

// What a run of the checks may take, how long its result is shown, and how much it
// may say.
const (
	checkTime = time.Minute
	stopTime  = 10 * time.Second // to stop by itself
	checkAge  = 10 * time.Second
	maxOutput = 1 << 20
)

// Checks serves what the checks find.
func (m *Machine) Checks(w http.ResponseWriter, r *http.Request) {
	c, err := m.check(r.Context())
	if err != nil {
		if r.Context().Err() == nil {
			m.Log.ErrorContext(r.Context(), "the checks of the machine were not run", "err", err)
		}
		refusal.Write(w, http.StatusInternalServerError, 10001, "UnknownError", "The checks of the machine could not run: the daemon's log says why; 'sudo cupola doctor' runs them, too")
		return
	}
	answer(w, c)
}

// check runs the checks, one run at a time, or returns what a run found just now. A
// run goes on when ctx ends: one that was killed would leave its trial's container
// behind.
func (m *Machine) check(ctx context.Context) (Checks, error) {
	select {
	case m.checks.turn <- struct{}{}:
	case <-ctx.Done():
		return Checks{}, ctx.Err()
	}
	var found Checks
	var err error
	done := make(chan struct{})
	fault.Go("machine", func() {
		defer close(done)
		defer func() { <-m.checks.turn }()
		found, err = m.checkNow(context.WithoutCancel(ctx))
	})
	select {
	case <-done:
		return found, err
	case <-ctx.Done():
		return Checks{}, ctx.Err()
	}
}

// checkNow runs the checks unless they were run just now. Its caller has the turn.
func (m *Machine) checkNow(ctx context.Context) (Checks, error) {
	if time.Since(m.checks.last.CheckedAt) < checkAge {
		return m.checks.last, nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	text, err := m.run(ctx, m.Doctor)
	if err != nil {
		return Checks{}, err
	}
	var results []json.RawMessage
	if err := json.Unmarshal(text, &results); err != nil {
		return Checks{}, fmt.Errorf("%q printed no JSON: %w", m.Doctor, err)
	}
	m.checks.last = Checks{time.Now().UTC(), bytes.TrimSpace(text)}
	return m.checks.last, nil
}

// runCommand returns what a command prints. Exit code 1 says that it found
// something.
func runCommand(ctx context.Context, command []string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // the daemon's own binary
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &limited{&out, maxOutput}, &limited{&said, maxOutput}, stopTime
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGTERM) } // it removes its trial
	err := cmd.Run()
	if e, ok := errors.AsType[*exec.ExitError](err); ok && e.ExitCode() == 1 && out.Len() > 0 {
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("%q: %w: %s", command, err, bytes.TrimSpace(said.Bytes()))
	}
	return out.Bytes(), nil
}

// limited refuses more than so many bytes.
type limited struct {
	to   *bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, errors.New("it prints too much")
	}
	return l.to.Write(p)
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}
