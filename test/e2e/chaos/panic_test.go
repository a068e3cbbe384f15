package chaos

import (
	"context"
	"debug/elf"
	"debug/gosym"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cupola/test/e2e"
)

// panickedFunctions is how many functions panic in one round of CI, one after
// the other. CUPOLA_CHAOS_FUNCTIONS asks for more; CUPOLA_CHAOS_PANICS is a
// regular expression of their names.
const panickedFunctions = 10

// panickedTime is how long each call of a function panics.
const panickedTime = 150 * time.Millisecond

// panics makes functions of the daemon dereference nil, whatever calls them,
// while tenants work and an app is pushed, restarted and deleted. The process
// goes on, and can do all that again once the functions are what they were.
func panics(c *chaos) {
	if runtime.GOARCH != "amd64" {
		c.t.Log("panics are made by amd64's instructions alone")
		return
	}
	pid := c.d.Cmd.Process.Pid
	all := slices.DeleteFunc(functionsOf(c.t, c.d.Binary), func(f function) bool {
		return !regexp.MustCompile(os.Getenv("CUPOLA_CHAOS_PANICS")).MatchString(f.name)
	})
	before, had := panicked(c.d), c.resources()
	var tried []string
	c.exercised(func() {
		for range environ(c.t, "CUPOLA_CHAOS_FUNCTIONS", panickedFunctions) {
			f := all[c.rand.IntN(len(all))]
			tried = append(tried, f.name)
			if err := f.panicsFor(pid, panickedTime); err != nil {
				c.t.Errorf("%s: %v", f.name, err)
			}
			if !e2e.Alive(pid) {
				c.t.Errorf("the daemon ended after a panic in %s", f.name)
				return
			}
		}
	})
	c.t.Logf("%d panics; %d functions would: %s", len(panicked(c.d))-len(before), len(tried), strings.Join(tried, " "))
	if c.t.Failed() {
		return
	}
	c.works()
	c.givesBack(had)
	c.t.Logf("the daemon had %+v and has %+v", had, c.resources())
}

// exercised does f while exercise works.
func (c *chaos) exercised(f func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup
	working.Go(func() { c.exercise(ctx) })
	f()
	cancel()
	working.Wait()
}

// exercise pushes an app, restarts it, runs a task and deletes it, again and
// again. Any of it may fail.
func (c *chaos) exercise(ctx context.Context) {
	for ctx.Err() == nil {
		cmd := exec.CommandContext(ctx, c.d.Binary, "push", "--name", victimApp, e2e.Example(c.t, "static"))
		cmd.Env = append(os.Environ(), "CUPOLA_API=http://"+c.d.Addr, "CUPOLA_PASSWORD="+e2e.AdminPassword)
		_ = cmd.Run()
		_, _, _ = c.d.Get(victimApp+".localhost", "/")
		api, err := e2e.Login(ctx, "http://"+c.d.Addr, "admin", e2e.AdminPassword)
		if err != nil {
			continue
		}
		app, err := api.First(ctx, "app", "/v3/apps?names="+victimApp)
		if err != nil {
			continue
		}
		for _, path := range []string{"/tasks", "/actions/restart"} {
			_ = api.Call(ctx, "POST", "/v3/apps/"+app+path, e2e.Doc{"command": "true"}, nil)
		}
		_ = api.LogLines(ctx, app)
		_ = api.Call(ctx, "DELETE", "/v3/apps/"+app, nil, nil)
	}
}

// victimApp is the app that faults are meant for.
const victimApp = "victim"

// works deletes what is left of the app that the fault was meant for, and pushes
// one and deletes it, which has to succeed.
func (c *chaos) works() {
	c.t.Helper()
	const name = "after"
	hung := time.AfterFunc(5*time.Minute, func() {
		_ = c.d.Cmd.Process.Signal(syscall.SIGQUIT) // it says where its goroutines are, and ends
	})
	left, err := e2e.List[appView](context.Background(), c.d.Client(), "/v3/apps?names="+victimApp)
	if err != nil {
		c.t.Error(err)
	}
	for _, app := range left {
		c.d.API("DELETE", "/v3/apps/"+app.GUID, nil, nil)
	}
	out, err := c.d.Run("push", "--name", name, e2e.Example(c.t, "static"))
	hung.Stop()
	if err != nil {
		c.t.Errorf("push after the fault: %v\n%s", err, out)
		return
	}
	c.d.Answers(name, "")
	c.d.API("DELETE", "/v3/apps/"+c.d.App(name), nil, nil)
}

var panicLine = regexp.MustCompile(`panicked and was ended alone.*`)

// panicked are the panics that the daemon logged.
func panicked(d *e2e.Daemon) []string { return panicLine.FindAllString(d.Log.String(), -1) }

// function is one of a Go program. Its first instruction compares the stack's
// end: before that, a panic finds the frame as Go's tables describe it.
type function struct {
	name  string
	entry uint64
	code  []byte // its first 4 bytes
}

// Where Go's linker puts the address of the program's text in moduledata, which
// is all of the section .go.module.
const textField = 176

// ours are the parts that panic. Left out are package fault, which has to
// recover, what runs in commands alone, slots, which are like locks: nothing else
// gives them back, what Prometheus calls in its own goroutines, and what the
// compiler makes of methods and of defer and go statements.
var ours = regexp.MustCompile(`^cupola/(store|rootfs|server|runtime)(/[a-z/]+)?\.`)

var notOurs = regexp.MustCompile(`^cupola/(runtime/fault|runtime/lifecycle|server/doctor|server/simulate|server/kube|server/bosh|server/systemd|rootfs/debian)|^cupola/server\.open\.func1|\.(defer|go)wrap[0-9]+$|^cupola/(runtime/fairqueue|server/bulkhead)\.|^cupola/server/metrics\..*\.(Collect|Describe)$`)

// functionsOf reads the tables that each Go binary has for its panics, a stripped
// one too.
func functionsOf(t testing.TB, binaryFile string) (all []function) {
	t.Helper()
	f, err := elf.Open(binaryFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data := map[string][]byte{}
	for _, name := range []string{".go.module", ".gopclntab", ".text"} {
		s := f.Section(name)
		if s == nil {
			t.Fatalf("%s has no section %s", binaryFile, name)
		}
		if data[name], err = s.Data(); err != nil {
			t.Fatal(err)
		}
	}
	text := binary.LittleEndian.Uint64(data[".go.module"][textField:])
	table, err := gosym.NewTable(nil, gosym.NewLineTable(data[".gopclntab"], text))
	if err != nil {
		t.Fatal(err)
	}
	for _, fn := range table.Funcs {
		code := data[".text"][fn.Entry-f.Section(".text").Addr:][:4]
		file, _, _ := table.PCToLine(fn.Entry)
		if ours.MatchString(fn.Name) && !notOurs.MatchString(fn.Name) && file != "<autogenerated>" && !strings.Contains(file, "runtime/fault/") && checksStack(code) {
			all = append(all, function{fn.Name, fn.Entry, slices.Clone(code)})
		}
	}
	if len(all) < 1000 {
		t.Fatalf("found %d functions in %s; want the daemon's", len(all), binaryFile)
	}
	return all
}

// checksStack reports whether code begins with CMPQ SP, 16(R14) or, for a large
// frame, with LEAQ -x(SP), R12.
func checksStack(code []byte) bool {
	return slices.Contains([]string{"\x49\x3b\x66\x10", "\x4c\x8d\x64\x24", "\x4c\x8d\xa4\x24"}, string(code))
}

// dereferencesNil is XORL AX, AX; MOVL (AX), AX.
const dereferencesNil = "\x31\xc0\x8b\x00"

// panicsFor makes each call of the function panic for a while.
func (f function) panicsFor(pid int, while time.Duration) error {
	if err := f.write(pid, []byte(dereferencesNil)); err != nil {
		return err
	}
	<-time.After(while)
	return f.write(pid, f.code)
}

// write changes the code while the process is stopped and no thread is between
// the two instructions.
func (f function) write(pid int, code []byte) error {
	between := fmt.Sprintf(" %#x\n", f.entry+2)
	for deadline := time.Now().Add(time.Minute); ; {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			return err
		}
		busy, err := stoppedWithin(pid, between)
		wrote := err == nil && !busy
		if wrote {
			err = poke(pid, f.entry, code)
		}
		if cerr := syscall.Kill(pid, syscall.SIGCONT); wrote || cerr != nil || time.Now().After(deadline) {
			return errors.Join(err, cerr)
		}
	}
}

// poke overwrites code of a stopped process. It does so as a debugger (ptrace): by default
// Linux 7.2 lets nobody else write to read-only memory, not even through /proc/PID/mem.
func poke(pid int, at uint64, data []byte) error {
	runtime.LockOSThread() // to the kernel, a thread is the debugger
	defer runtime.UnlockOSThread()
	if err := unix.PtraceSeize(pid); err != nil {
		return fmt.Errorf("ptrace: %w", err)
	}
	_, err := unix.Wait4(pid, nil, unix.WALL, nil) // until it has stopped for the debugger, too
	if err == nil {
		_, err = unix.PtracePokeText(pid, uintptr(at), data)
	}
	return errors.Join(err, unix.PtraceDetach(pid))
}

// stoppedWithin waits until all threads of a process have stopped, and reports
// whether the line that tells where one was ends in suffix.
func stoppedWithin(pid int, suffix string) (within bool, err error) {
	for deadline := time.Now().Add(time.Second); ; <-time.After(time.Millisecond) {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
		if err != nil {
			return false, err
		}
		running := slices.IndexFunc(tasks, func(task string) bool { return !strings.Contains("TZX", e2e.StateOf(task)) })
		if running < 0 {
			for _, task := range tasks {
				at, _ := os.ReadFile(filepath.Join(task, "syscall")) // a thread that has ended is nowhere
				within = within || strings.HasSuffix(string(at), suffix)
			}
			return within, nil
		}
		if time.Now().After(deadline) {
			at, _ := os.ReadFile(filepath.Join(tasks[running], "stack"))
			return false, fmt.Errorf("thread %s is in state %s and did not stop within a second: %s", tasks[running], e2e.StateOf(tasks[running]), at)
		}
	}
}
