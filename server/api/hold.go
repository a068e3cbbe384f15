package api

import "time"

// hold answers with what look gives. The CLI asks every 3 s while it waits for
// something: its answer is held until look says done, for a while at most. look
// is asked again when a row may have changed that its transaction read.
func hold(c *call, look func(*call) (res *response, done bool, err error)) (*response, error) {
	return holdUntil(c, time.Now().Add(holdFor), look)
}

// holdUntil is hold until a deadline.
func holdUntil(c *call, deadline time.Time, look func(*call) (res *response, done bool, err error)) (*response, error) {
	defer c.noteReads()()
	for {
		done := false
		res, err := inTx(func(c *call) (res *response, err error) {
			res, done, err = look(c)
			return res, err
		})(c)
		if err != nil || done || !c.fromCLI() || !c.wait(c.reads.Stale(), deadline) {
			return res, err
		}
	}
}

// noteReads notes from now on what the call's transactions read, until stop.
func (c *call) noteReads() (stop func()) {
	c.reads = c.s.Store.Reads()
	return c.reads.Close
}

// wait waits for a change, and reports whether one came before the deadline, the
// client's leaving and the daemon's end. A user who has very many answers held
// gets no more held.
func (c *call) wait(changed <-chan struct{}, deadline time.Time) bool {
	who := c.asker()
	if !c.s.held.Take(who) {
		return false
	}
	defer c.s.held.Put(who)
	t := time.NewTimer(time.Until(deadline))
	defer t.Stop()
	select {
	case <-changed:
		return true
	case <-t.C:
	case <-c.Context().Done():
	case <-c.s.stop.Done():
	}
	return false
}
