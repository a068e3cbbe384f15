package databroker

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"cupola/rootfs/volume"
	"cupola/runtime/lrp"
	"cupola/server/logcache"
	"cupola/store"
	"cupola/store/cf"
)

// Volumes keeps directories that outlive containers. Create, Remove and Replace may be
// asked again.
type Volumes interface {
	Create(name string, v volume.Spec) error
	Remove(name string) error
	Save(ctx context.Context, name string, within time.Duration, w io.Writer) error
	Replace(ctx context.Context, name string, v volume.Spec, archive *os.File) error
	Used(name string) (int64, error)
	Read(name string, f func(*os.Root) error) error
}

// Config is what a broker is made of.
type Config struct {
	Store *store.Store
	// Services are what is offered: Names, and files and directories of the operator's.
	Services []string
	Volumes  Volumes
	// Attach runs a command in a running container, and gives its standard input
	// and output.
	Attach func(ctx context.Context, containerGUID string, args ...string) (io.ReadWriteCloser, error)
	// Containers lists what runs, and what is on its way out.
	Containers func() []lrp.ContainerStatus
	// Connections counts the connections that containers have at ports, by the containers' GUIDs.
	Connections func(ports map[string][]uint16) (map[string]int, error)
	// Gauge keeps what was measured of an instance.
	Gauge func(logcache.Envelope)
	// Dashboard is the URL of a page that shows a service instance; "": there is none.
	Dashboard func(instanceGUID string) string
	// Pull brings the image of a service file into the cache.
	Pull func(ctx context.Context, reference string, as cf.Credential) (Image, error)
	// Trust is the certificates, in PEM, by which clients verify those of instances.
	Trust   func() []byte
	HasFile HasFile
	// Content is a directory for content from which service instances will be created.
	Content string
	// Temp makes a file without a name, on the file system of the volumes.
	Temp func() (*os.File, error)
	Log  *slog.Logger
}

// broker is the broker. run does what handler promises.
type broker struct {
	Config
	offer     atomic.Pointer[Offer] // of Services
	scrubbers atomic.Pointer[map[string]scrubber]
	versions  versions

	mu    sync.Mutex
	turns map[string]chan struct{} // who changes an instance holds its turn
}

// newBroker makes a broker.
func newBroker(c Config) *broker {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	b := &broker{Config: c, turns: map[string]chan struct{}{}, versions: versions{asked: map[string]*sharedVersion{}}}
	b.offer.Store(&Offer{})
	b.scrubbers.Store(&map[string]scrubber{})
	return b
}

// turn waits until nothing else changes an instance.
func (b *broker) turn(ctx context.Context, instanceGUID string) (release func(), err error) {
	b.mu.Lock()
	t := b.turns[instanceGUID]
	if t == nil {
		t = make(chan struct{}, 1)
		b.turns[instanceGUID] = t
	}
	b.mu.Unlock()
	select {
	case t <- struct{}{}:
		return func() { <-t }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// errNotRunning says that a database is not there now.
var errNotRunning = errors.New("the server does not run at the moment")

// container finds the container of an instance.
func (b *broker) container(ctx context.Context, i *cf.DataInstance) (guid string, err error) {
	err = b.Store.Read(ctx, func(tx *store.Tx) error {
		rows, err := store.ActualLRPs.By(tx, "process_guids", processGUID(i.GUID))
		for _, a := range rows {
			if a.State == lrp.Running && !a.Stopping {
				guid = a.InstanceGUID
			}
		}
		return err
	})
	if err == nil && guid == "" {
		err = errNotRunning
	}
	return guid, err
}
