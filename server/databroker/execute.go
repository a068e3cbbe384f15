package databroker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"cupola/runtime/fault"
	"cupola/store/cf"
)

// How long statements may take, how often they are tried while the database
// does not answer, and what of an answer is read.
const (
	patience    = 20 * time.Second
	betweenTry  = 200 * time.Millisecond
	maxSaid     = 64 << 10
	statementsT = 30 * time.Second
)

// insist executes statements, and does so again while the database is just
// starting.
func (b *broker) insist(ctx context.Context, i *cf.DataInstance, statements string) error {
	until := time.Now().Add(patience)
	for {
		err := b.execute(ctx, i, statements)
		if err == nil || ctx.Err() != nil || time.Now().After(until) {
			return err
		}
		select {
		case <-time.After(betweenTry):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// execute runs the client of a database in its container, with statements.
func (b *broker) execute(ctx context.Context, i *cf.DataInstance, statements string) error {
	s, _, ok := known(i)
	if !ok || s.engine == nil {
		return fmt.Errorf("%s has no database", i.Service)
	}
	if statements == "" {
		_, err := b.container(ctx, i)
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, statementsT)
	defer cancel()
	var said string
	err := b.attached(ctx, i, func(session io.ReadWriter) (err error) {
		said, err = converse(session, statements)
		return err
	}, s.engine.client())
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	refused := s.complaint(said)
	switch {
	case refused != "":
		return s.withhold(errors.New("the server refused: "+refused), statements)
	case strings.Contains(said, done):
		return nil
	case err == nil:
		err = errors.New("the server's client ended too soon")
	}
	return err
}

// attached runs a program of the shell in the container of an instance, with which do
// talks. The end of ctx ends both, and is the error then.
func (b *broker) attached(ctx context.Context, i *cf.DataInstance, do func(io.ReadWriter) error, program string, args ...string) error {
	guid, err := b.container(ctx, i)
	if err != nil {
		return err
	}
	session, err := b.Attach(ctx, guid, append([]string{"/bin/sh", "-c", program, "sh"}, args...)...)
	if err != nil {
		return fmt.Errorf("run the server's client: %w", err)
	}
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, fault.Func("databroker", func() {
		defer close(closed)
		session.Close()
	}))
	err = do(session)
	if stop() {
		session.Close()
		return err
	}
	<-closed
	return context.Cause(ctx)
}

func converse(s io.ReadWriter, statements string) (string, error) {
	_, werr := io.WriteString(s, statements)
	said, err := io.ReadAll(io.LimitReader(s, maxSaid))
	return string(said), errors.Join(werr, err)
}

// complaint is the first error that a client prints. What it prints besides may
// be the statement, which has a password.
func (s service) complaint(said string) string {
	for line := range strings.Lines(said) {
		for _, mark := range s.complaints {
			if _, text, ok := strings.Cut(line, mark); ok {
				return strings.TrimSpace(text)
			}
		}
	}
	return ""
}
