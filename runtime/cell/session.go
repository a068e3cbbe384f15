package cell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"cupola/runtime/container"
	"cupola/runtime/contract"
	"cupola/runtime/lrp"
)

// errNotRunning says that there is no such container, or that its processes
// have not begun or have ended.
var errNotRunning = errors.New("instance is not running")

// Attach runs a further process in a running container, as the container's
// user, in its home, with the environment and limits of its action, and
// returns its standard input and output. Its standard error is dropped. The
// process should exit when its input ends; Close waits a while for that, then
// kills it. It also ends with the container; then Read returns io.EOF.
func (c *Cell) Attach(ctx context.Context, guid string, args ...string) (io.ReadWriteCloser, error) {
	<-c.adopted
	i := c.instance(guid)
	if i == nil {
		return nil, errNotRunning
	}
	login, err := i.entryProcess()
	if err != nil {
		return nil, err
	}
	login.Args = i.command(args)
	stdin, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, stdout, err := os.Pipe()
	if err != nil {
		closeAll(stdin, in)
		return nil, err
	}
	p, release, err := i.attach(ctx, login, container.Stdio{In: stdin, Out: stdout})
	closeAll(stdin, stdout)
	if err != nil {
		closeAll(in, out)
		return nil, err
	}
	return &attached{in: in, out: out, process: p, release: release}, nil
}

// attach starts a process in the container, which is not frozen until release is called.
func (i *instance) attach(ctx context.Context, p container.Process, stdio container.Stdio) (x Process, release func(), err error) {
	if release, err = i.stay(); err != nil {
		return nil, nil, err
	}
	if x, err = i.cell.cfg.Containers.Exec(ctx, i.guid(), p, stdio); err != nil {
		release()
	}
	return x, release, err
}

// command is args with the path that contract.Helper has in the container.
func (i *instance) command(args []string) []string {
	if len(args) == 0 || args[0] != contract.Helper || i.record().Programs != "" {
		return args
	}
	return append([]string{path.Join(contract.LifecycleDir, path.Base(contract.Helper))}, args[1:]...)
}

// attached is the daemon's end of a process that Attach started.
type attached struct {
	in, out *os.File
	process Process
	release func() // lets the container be frozen again
}

func (a *attached) Read(p []byte) (int, error)  { return a.out.Read(p) }
func (a *attached) Write(p []byte) (int, error) { return a.in.Write(p) }

// attachedGrace is how long a process has to end when its input has.
const attachedGrace = 8 * time.Second

func (a *attached) Close() error {
	defer a.release()
	closeAll(a.in, a.out)
	if a.wait(attachedGrace) == nil {
		return nil
	}
	if err := a.process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end a session's process: %w", err)
	}
	return a.wait(exitWait)
}

func (a *attached) wait(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	_, err := a.process.Wait(ctx)
	return err
}

// setEntry keeps what Attach needs of the container's own process.
func (b *build) setEntry(p container.Process) {
	p.Args, p.Cwd = nil, b.user.Home
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entry = p
}

// entryProcess is a process as a user of the container starts one: who it runs as,
// where, and with which environment.
func (i *instance) entryProcess() (container.Process, error) {
	i.mu.Lock()
	rec, p := i.rec, i.entry
	i.mu.Unlock()
	if rec.Phase != lrp.PhaseStarting && rec.Phase != lrp.PhaseRunning {
		return container.Process{}, errNotRunning
	}
	if p.Env != nil {
		return p, nil
	}
	env, err := i.environ()
	if err != nil {
		return container.Process{}, err
	}
	u := rec.User
	if u == (login{}) {
		u = loginOf(vcap)
	}
	return u.process(env), nil
}

// login is the part of a user that is kept on disk.
type login struct {
	UID, GID   uint32
	Groups     string // comma-separated, so that logins can be compared
	Name, Home string
}

func loginOf(u user) login {
	groups := make([]string, len(u.Groups))
	for n, g := range u.Groups {
		groups[n] = strconv.FormatUint(uint64(g), 10)
	}
	return login{UID: u.UID, GID: u.GID, Groups: strings.Join(groups, ","), Name: u.Name, Home: u.Home}
}

// process is a process of the user, with env but for what belongs to a user.
func (l login) process(env map[string]string) container.Process {
	p := container.Process{UID: l.UID, GID: l.GID, Cwd: l.Home, Nofile: defaultNofile}
	for g := range strings.SplitSeq(l.Groups, ",") {
		if n, err := strconv.ParseUint(g, 10, 32); err == nil {
			p.Groups = append(p.Groups, uint32(n))
		}
	}
	env = maps.Clone(env)
	env["HOME"], env["USER"] = l.Home, l.Name
	for _, name := range slices.Sorted(maps.Keys(env)) {
		p.Env = append(p.Env, name+"="+env[name])
	}
	return p
}

// environ is the environment of a container's first process, from the kernel:
// the cell that started it kept it, since it holds secrets, in memory alone.
func (i *instance) environ() (map[string]string, error) {
	states, err := i.cell.cfg.Containers.List()
	if err != nil {
		return nil, fmt.Errorf("find the container's process: %w", err)
	}
	at := slices.IndexFunc(states, func(s container.State) bool { return s.ID == i.guid() && s.Alive })
	if at < 0 {
		return nil, errNotRunning
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(states[at].PID) + "/environ")
	if err != nil {
		return nil, fmt.Errorf("read the app's environment: %w", err)
	}
	return parseEnviron(string(text)), nil
}

// parseEnviron reads /proc/PID/environ, which a process may have written over,
// and leaves out what belongs to a shell.
func parseEnviron(text string) map[string]string {
	env := map[string]string{}
	for kv := range strings.SplitSeq(text, "\x00") {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || name == "" || strings.ContainsAny(name, " \t\n") {
			continue
		}
		env[name] = value
	}
	for _, name := range []string{"PWD", "OLDPWD", "SHLVL", "_"} {
		delete(env, name)
	}
	return env
}
