package bbs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"cupola/runtime/egress"
	"cupola/runtime/fault"
	"cupola/runtime/lrp"
	"cupola/server/bbs/bbsrows"
	"cupola/server/bbs/model"
	"cupola/store"
)

// Diego's times of a task that has ended.
const (
	callAttempts   = 3
	kickInterval   = 30 * time.Second  // after which a callback is retried
	completedLimit = 120 * time.Second // after which an unresolved task is deleted
)

// cupola's own bounds of callbacks.
const (
	maxCalls    = 20
	callTimeout = 10 * time.Second // of one attempt
)

// callbacks report the ends of tasks to their owners.
type callbacks struct {
	Config
	http *http.Client

	mu    sync.Mutex
	calls map[string]bool // run GUIDs of tasks whose callback is under way
}

func newCallbacks(c Config) *callbacks {
	// Clients of the BBS are operators: they may run anything anywhere.
	client := &http.Client{Timeout: callTimeout, Transport: egress.Guard{Operator: true}.Transport(callTimeout), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &callbacks{Config: c, http: client, calls: map[string]bool{}}
}

// run looks after tasks that have ended, until ctx ends.
func (c *callbacks) run(ctx context.Context) error {
	var group fault.Group
	defer group.Wait() //nolint:errcheck // calls tell errors themselves
	return store.Derive(ctx, c.Store, store.Derivation[[]*store.BBSTask]{Name: "ended tasks", Read: endedTasks, Log: c.Log,
		Use: func(ctx context.Context, ended []*store.BBSTask) (time.Time, error) {
			next, err := c.look(ctx, &group, ended)
			return time.Now().Add(next), err
		}})
}

func endedTasks(tx *store.Tx) ([]*store.BBSTask, error) {
	return store.BBSTasks.By(tx, "states", string(lrp.TaskCompleted), string(lrp.TaskResolving))
}

// look does what is due, and tells when to look again.
func (c *callbacks) look(ctx context.Context, group *fault.Group, ended []*store.BBSTask) (next time.Duration, err error) {
	next = kickInterval
	soonest := func(d time.Duration) { next = min(next, max(d, 0)+time.Millisecond) }
	for _, t := range ended {
		age, rest := time.Since(t.FirstCompletedAt), time.Since(t.UpdatedAt)
		switch {
		case c.calling(t.RunGUID): // the row will show its end
		case t.State == lrp.TaskResolving && rest > kickInterval:
			_, fault := c.change(ctx, t, demote)
			err = errors.Join(err, fault)
		case t.State == lrp.TaskResolving:
			soonest(kickInterval - rest)
		case age > completedLimit:
			_, fault := c.change(ctx, t, store.BBSTasks.Delete)
			err = errors.Join(err, fault)
		case t.Callback:
			c.start(ctx, group, t)
		default:
			soonest(completedLimit - age)
		}
	}
	return next, err
}

// demote makes an undeleted task COMPLETED again.
func demote(tx *store.Tx, t *store.BBSTask) error {
	return store.BBSTasks.Change(tx, t, func(t *store.BBSTask) { t.State = lrp.TaskCompleted })
}

// change changes a task that still is in the state it was seen in, and tells
// whether it was.
func (c *callbacks) change(ctx context.Context, seen *store.BBSTask, change func(*store.Tx, *store.BBSTask) error) (ok bool, err error) {
	err = c.Store.Write(ctx, func(tx *store.Tx) error {
		t, err := store.BBSTasks.Get(tx, seen.GUID)
		if store.IsNotFound(err) {
			return nil
		}
		if err != nil || t.RunGUID != seen.RunGUID || t.State != seen.State {
			return err
		}
		ok = true
		return change(tx, t)
	})
	return ok, err
}

func (c *callbacks) calling(runGUID string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[runGUID]
}

// start calls the owner of a task, unless the limit of concurrent calls is reached: then
// one of those wakes the next look.
func (c *callbacks) start(ctx context.Context, group *fault.Group, t *store.BBSTask) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.calls) >= maxCalls {
		return
	}
	c.calls[t.RunGUID] = true
	group.Go(fault.ErrFunc("bbs", func() error {
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.calls, t.RunGUID)
		}()
		if err := c.tell(ctx, t); err != nil && ctx.Err() == nil {
			c.Log.InfoContext(ctx, "callback of a task failed", "task_guid", t.GUID, "err", err)
		}
		return nil
	}))
}

// tell calls the owner of a task, and then deletes it. The task of an owner who
// does not answer stays resolving for a while.
func (c *callbacks) tell(ctx context.Context, t *store.BBSTask) error {
	if ok, err := c.change(ctx, t, resolve); !ok || err != nil {
		return err
	}
	d, err := bbsrows.DecodeTask(t)
	if err != nil {
		return err
	}
	body, err := model.Callback(t, d)
	if err != nil {
		return err
	}
	for range callAttempts {
		if err = c.post(ctx, d.CompletionCallbackUrl, body); err == nil {
			t.State = lrp.TaskResolving
			_, err = c.change(ctx, t, store.BBSTasks.Delete)
			return err
		}
	}
	return err
}

// post makes one attempt. Any answer will do, but 503 and 504: those come of a
// router whose backend is away.
func (c *callbacks) post(ctx context.Context, to string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return withoutURL(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := c.http.Do(req)
	if err != nil {
		return withoutURL(err)
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, 64<<10) // so that the connection can be used again
	if res.StatusCode == http.StatusServiceUnavailable || res.StatusCode == http.StatusGatewayTimeout {
		return fmt.Errorf("the callback answered %s", res.Status)
	}
	return nil
}

// withoutURL leaves out a URL, which may hold a secret: the error is logged.
func withoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
