package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"runtime"
	"time"

	"cupola/runtime/fault"
)

// keptWrites and keptReads are how many statements the writer and each reader
// keep. What writes is the larger by far: more would take megabytes.
const (
	keptWrites = 64
	keptReads  = 32
)

// driverConn is what a connection of the driver does.
type driverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// maxRun is how long a transaction computes before it lets other goroutines run,
// while several users compete. Go takes the processor from a goroutine only after
// 10 ms: the transactions of a user who keeps the processors busy would each delay
// another's short request.
const maxRun = 500 * time.Microsecond

// keeper opens connections that keep their statements.
type keeper struct {
	driver.Connector
	most   int         // statements of a connection
	pauses func() bool // whether its transactions let others run
}

func (k keeper) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := k.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{driverConn: c.(driverConn), idle: map[string]*statement{}, most: k.most, pauses: k.pauses}, nil
}

// conn is a connection that keeps what it has prepared: to compile a statement,
// with the triggers and foreign keys that it sets off, takes SQLite longer than
// to run most of them. A statement is used by one query at a time; who asks the
// same while it runs gets another. database/sql uses no connection twice at once.
//
// It is a fault boundary: database/sql holds locks while it calls the driver, and
// the writer's connection is the only one.
type conn struct {
	driverConn
	broken bool                  // the driver has panicked: its state is unknown
	idle   map[string]*statement // by text
	most   int
	uses   int64
	pauses func() bool
	ran    time.Time // since when it has not paused, nor asked whether it should
}

type statement struct {
	driver.Stmt
	text string
	used int64 // the connection's uses by then
}

// take returns a statement that nothing else uses.
func (c *conn) take(ctx context.Context, text string) (*statement, error) {
	if c.broken {
		return nil, driver.ErrBadConn
	}
	c.uses++
	if s := c.idle[text]; s != nil {
		delete(c.idle, text)
		s.used = c.uses
		return s, nil
	}
	s, err := c.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	return &statement{s, text, c.uses}, nil
}

// giveBack keeps a statement for the next who asks for it, but for one that failed.
func (c *conn) giveBack(s *statement, failed error) error {
	if failed != nil || c.idle[s.text] != nil {
		return s.Close()
	}
	c.idle[s.text] = s
	if len(c.idle) <= c.most {
		return nil
	}
	for _, other := range c.idle {
		if other.used < s.used {
			s = other
		}
	}
	delete(c.idle, s.text)
	return s.Close()
}

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (r driver.Result, err error) {
	err = c.guard(func() error {
		s, err := c.take(ctx, text)
		if err != nil {
			return err
		}
		r, err = s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
		if closing := c.giveBack(s, err); err == nil {
			err = closing
		}
		return err
	})
	return r, err
}

// ResetSession implements driver.SessionResetter: a transaction begins.
func (c *conn) ResetSession(ctx context.Context) error {
	c.ran = time.Now()
	return c.driverConn.ResetSession(ctx)
}

// pause lets other goroutines run, after maxRun, if it should. It asks no more often, as
// each row of a query comes here.
func (c *conn) pause() (paused bool) {
	if time.Since(c.ran) < maxRun {
		return false
	}
	if paused = c.pauses(); paused {
		runtime.Gosched()
	}
	c.ran = time.Now()
	return paused
}

// guard makes a panic of f an error, after which the connection is not used again.
func (c *conn) guard(f func() error) error {
	c.pause()
	err := fault.Guard("database", f)
	if _, panicked := errors.AsType[*fault.Panic](err); panicked {
		c.broken = true
	}
	return err
}

// IsValid implements driver.Validator.
func (c *conn) IsValid() bool { return !c.broken && c.driverConn.IsValid() }

// QueryContext implements driver.QueryerContext.
func (c *conn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (rows driver.Rows, err error) {
	err = c.guard(func() error {
		s, err := c.take(ctx, text)
		if err != nil {
			return err
		}
		r, err := s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
		if err != nil {
			_ = c.giveBack(s, err)
			return err
		}
		rows = &keptRows{Rows: r, conn: c, s: s}
		return nil
	})
	return rows, err
}

// Close closes the connection.
func (c *conn) Close() error {
	var errs []error
	for _, s := range c.idle {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.driverConn.Close())...)
}

// keptRows are rows that give their statement back.
type keptRows struct {
	driver.Rows
	conn   *conn
	s      *statement
	failed error
}

func (r *keptRows) Next(values []driver.Value) error {
	err := r.conn.guard(func() error { return r.Rows.Next(values) })
	if err != nil && !errors.Is(err, io.EOF) {
		r.failed = err
	}
	return err
}

func (r *keptRows) Close() error {
	if r.s == nil {
		return nil
	}
	err := r.Rows.Close()
	s := r.s
	r.s = nil
	return errors.Join(err, r.conn.giveBack(s, errors.Join(r.failed, err)))
}
