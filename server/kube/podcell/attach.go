package podcell

import (
	"bufio"
	"context"
	"errors"
	"io"
	"time"

	"cupola/runtime/contract"
	"cupola/runtime/fault"
	"cupola/server/kube"
)

// errNoPrograms is of an image that is not of a droplet, and does not have the program that is asked for.
var errNoPrograms = errors.New("only the SSH server of cupola runs next to the process of a docker app on a Kubernetes cell")

// greetTime is how long a program may take until it says something.
const greetTime = 20 * time.Second

// Attach runs a further program in an instance, next to its process, and returns its standard input and output as
// cell.Cell's does. The program speaks first: what keeps it from that is the error. In a docker app it is the helper alone.
func (c *Cell) Attach(ctx context.Context, guid string, argv ...string) (io.ReadWriteCloser, error) {
	i := c.instance(guid)
	if i == nil || i.isOver() {
		return nil, errNotRunning
	}
	i.mu.Lock()
	packed, begun := i.record.Packed, !i.started.IsZero()
	i.mu.Unlock()
	switch {
	case !begun:
		return nil, errNotRunning
	case !packed && argv[0] == contract.Helper:
		return c.bring(ctx, guid, argv[1:])
	case !packed:
		return nil, errNoPrograms
	}
	stream, err := c.cfg.Cluster.Exec(ctx, guid, kube.ProcessContainer, argv...)
	if err != nil {
		return nil, err
	}
	return asStream(greeted(stream))
}

// asStream is what greeted returned, as an interface that is nil with an error.
func asStream(a *attached, err error) (io.ReadWriteCloser, error) {
	if err != nil {
		return nil, err
	}
	return a, nil
}

// greeted waits for the first words of a program.
func greeted(stream io.ReadWriteCloser) (*attached, error) {
	a := &attached{stream, bufio.NewReader(stream)}
	peeked := make(chan error, 1)
	fault.Go("podcell", func() {
		_, err := a.from.Peek(1)
		peeked <- err
	})
	late := time.NewTimer(greetTime)
	defer late.Stop()
	var err error
	select {
	case err = <-peeked:
	case <-late.C:
		err = errors.New("the program in the pod says nothing")
	}
	if err != nil {
		fault.Go("podcell", func() { _ = stream.Close() })
		return nil, err
	}
	return a, nil
}

// attached is a stream of which some was read ahead.
type attached struct {
	io.ReadWriteCloser
	from *bufio.Reader
}

func (a *attached) Read(p []byte) (int, error) { return a.from.Read(p) }
