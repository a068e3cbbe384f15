package cell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"cupola/runtime/container"
	"cupola/runtime/fault"
	"cupola/runtime/lrp"
)

// monitor does the monitor action once.
func (p *performer) monitor(ctx context.Context) error { return p.ask(ctx, p.full.Monitor) }

// exec runs the program of a check.
func (p *performer) exec(ctx context.Context, r lrp.Run) error { return p.ask(ctx, r.Action()) }

// ask does an action that looks at the container. Its failure is what its
// processes have written, in Diego's way.
func (p *performer) ask(ctx context.Context, a lrp.Action) error {
	q := *p
	q.captured = &capture{}
	err := q.do(ctx, "monitor", a, p.spec.Log.Source)
	if err == nil {
		return nil
	}
	if said := q.captured.text(); said != "" {
		return errors.New(said)
	}
	return err
}

// maxCapture is how much of what a monitor writes is kept.
const maxCapture = 1024

// capture keeps the beginning of what processes write.
type capture struct {
	mu   sync.Mutex
	kept bytes.Buffer
}

func (c *capture) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept.Write(b[:min(len(b), maxCapture-c.kept.Len())])
	return len(b), nil
}

func (c *capture) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.TrimSpace(c.kept.String())
}

// startCaptured starts a process of a monitor, whose output goes to p.captured.
func (p *performer) startCaptured(ctx context.Context, r *lrp.Run) (running, error) {
	u, err := p.lookUp(r.User)
	if err != nil {
		return running{}, err
	}
	out, in, err := os.Pipe()
	if err != nil {
		return running{}, fmt.Errorf("make output pipe: %w", err)
	}
	defer in.Close()
	proc, err := p.cell.cfg.Containers.Exec(ctx, p.guid(), p.processOf(u, r), container.Stdio{Out: in, Err: in})
	if err != nil {
		out.Close()
		return running{}, err
	}
	c := &capturing{from: out}
	c.reading.Go(fault.Func("cell", func() { _, _ = io.Copy(p.captured, out) })) // until Close, at the latest
	return running{proc, c}, nil
}

// capturing is the output of a monitor's process.
type capturing struct {
	from    *os.File
	reading sync.WaitGroup
}

func (*capturing) Start() {}

func (c *capturing) Close() {
	c.from.Close()
	c.reading.Wait()
}

// lateOutput is how long output may come of a process that a monitor's process
// has left behind.
const lateOutput = 100 * time.Millisecond

func (c *capturing) Drain() {
	_ = c.from.SetReadDeadline(time.Now().Add(lateOutput))
	c.reading.Wait()
	c.from.Close()
}
