package databroker

import (
	"bufio"
	"context"
	"errors"
	"io"
	"maps"
	"sync"
	"time"

	"cupola/runtime/fault"
	"cupola/store/cf"
)

// versionAge is how long an answer is good for further callers.
const versionAge = 2 * time.Second

// versions shares the version of an instance's server among those who ask at the same time, or shortly after: each answer takes
// a program in the instance's container.
type versions struct {
	mu    sync.Mutex
	asked map[string]*sharedVersion // by the instance's GUID
}

type sharedVersion struct {
	begun   time.Time
	done    chan struct{} // closed when the rest is set
	version *string
	err     error
}

// of returns the version of an instance's server. ask goes on when the caller leaves: others may wait for it.
func (v *versions) of(ctx context.Context, instanceGUID string, ask func(context.Context) (*string, error)) (*string, error) {
	s := v.join(ctx, instanceGUID, ask)
	select {
	case <-s.done:
		return s.version, s.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (v *versions) join(ctx context.Context, instanceGUID string, ask func(context.Context) (*string, error)) *sharedVersion {
	v.mu.Lock()
	defer v.mu.Unlock()
	maps.DeleteFunc(v.asked, func(_ string, s *sharedVersion) bool { return s.isOld() })
	if s := v.asked[instanceGUID]; s != nil {
		return s
	}
	s := &sharedVersion{begun: time.Now(), done: make(chan struct{})}
	v.asked[instanceGUID] = s
	fault.Go("databroker", func() {
		defer close(s.done)
		s.version, s.err = ask(context.WithoutCancel(ctx))
	})
	return s
}

// isOld reports whether an answer has come that is of no use to further callers: a server that does not run may do so at once.
func (s *sharedVersion) isOld() bool {
	select {
	case <-s.done:
		return s.version == nil || time.Since(s.begun) > versionAge
	default:
		return false
	}
}

// version asks in the container of an instance what its server is; nil while it does not run.
func (b *broker) version(ctx context.Context, i *cf.DataInstance, e engine) (*string, error) {
	ctx, cancel := context.WithTimeout(ctx, statementsT)
	defer cancel()
	var version string
	err := b.attached(ctx, i, func(session io.ReadWriter) (err error) {
		version, err = readVersion(bufio.NewReader(session))
		return err
	}, e.version())
	if IsNotRunning(err) || errors.Is(err, errCut) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &version, nil
}
