package container

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// freezer is the controller of cgroup v1 that stops processes. A machine may lack it.
const freezer = "freezer"

// freezePoll is how often the kernel is asked whether all processes have stopped.
const freezePoll = time.Millisecond

// ErrNoFreezer says that the container cannot be frozen: the kernel has no freezer, or an
// earlier version started the container without one.
var ErrNoFreezer = errors.New("the container has no cgroup freezer")

// Freeze stops all processes of the container where they are, until Thaw; also when the
// Engine ends. If ctx ends before all have stopped, they go on.
func (e *Engine) Freeze(ctx context.Context, id string) error {
	at := e.place(id)
	if !e.tree.freezes(at) {
		return fmt.Errorf("freeze container %s: %w", id, ErrNoFreezer)
	}
	if err := e.tree.setFrozen(at, true); err != nil {
		return fmt.Errorf("freeze container %s: %w", id, err)
	}
	tick := time.NewTicker(freezePoll)
	defer tick.Stop()
	for !e.tree.hasStopped(at) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("freeze container %s: %w", id, context.Cause(ctx)), e.Thaw(id))
		}
	}
	return nil
}

// Thaw lets a frozen container go on. One that is not frozen, or does not exist, is no
// error.
func (e *Engine) Thaw(id string) error {
	at := e.place(id)
	if !e.tree.freezes(at) {
		return nil
	}
	if err := e.tree.setFrozen(at, false); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("thaw container %s: %w", id, err)
	}
	return nil
}

// Frozen reports whether Freeze was called for the container, and Thaw not since.
func (e *Engine) Frozen(id string) bool { return e.tree.frozen(e.place(id)) }

// Reclaim gives back memory that the container does not need to go on: copies of files,
// and what the kernel may write to swap. It takes as long as the kernel does.
func (e *Engine) Reclaim(id string) {
	at := e.place(id)
	file, amount := filepath.Join(e.tree.dir("memory", at), "memory.force_empty"), "0"
	if e.tree.v2 {
		file, amount = filepath.Join(e.tree.dir("", at), "memory.reclaim"), "1T"
	}
	_ = os.WriteFile(file, []byte(amount), 0) // fails if memory is left, as it is
}

// freezes reports whether a container has a freezer.
func (t cgroupTree) freezes(place string) bool {
	if !t.v2 && t.roots[freezer] == "" {
		return false
	}
	file, _ := t.freezeFile(place)
	_, err := os.Stat(file)
	return err == nil
}

// freezeFile is where a container is frozen, and the values for going on and for
// stopping.
func (t cgroupTree) freezeFile(place string) (file string, values [2]string) {
	if t.v2 {
		return filepath.Join(t.dir("", place), "cgroup.freeze"), [2]string{"0", "1"}
	}
	return filepath.Join(t.dir(freezer, place), "freezer.state"), [2]string{"THAWED", "FROZEN"}
}

func (t cgroupTree) setFrozen(place string, on bool) error {
	file, values := t.freezeFile(place)
	value := values[0]
	if on {
		value = values[1]
	}
	return os.WriteFile(file, []byte(value), 0)
}

// hasStopped reports whether all processes of a frozen container have stopped.
func (t cgroupTree) hasStopped(place string) bool {
	if t.v2 {
		return t.key("", place, "cgroup.events", "frozen") == 1
	}
	state, err := os.ReadFile(filepath.Join(t.dir(freezer, place), "freezer.state"))
	return err == nil && strings.TrimSpace(string(state)) == "FROZEN"
}

func (t cgroupTree) frozen(place string) bool {
	controller, file := freezer, "freezer.self_freezing"
	if t.v2 {
		controller, file = "", "cgroup.freeze"
	} else if t.roots[freezer] == "" {
		return false
	}
	n, err := t.number(controller, place, file)
	return err == nil && n == 1
}
