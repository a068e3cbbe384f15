package api

import (
	"cmp"
	"context"
	"runtime"

	"cupola/runtime/fairqueue"
	"cupola/server/bulkhead"
	"cupola/store/cf"
)

// takeSlot counts the request for its user, so that one who has many under way,
// which wait for news or send slowly, leaves room for others.
func (c *call) takeSlot() error {
	if c.s.Slots == nil {
		return nil
	}
	who := c.asker()
	if !c.s.Slots.Take(who) {
		return cf.Errorf(cf.ServiceUnavailable, "Too many requests of this user are under way: try again when some of them have been answered")
	}
	c.slotOf, c.slotted = who, true
	return nil
}

// putSlot gives back what the request has taken, once the answer was sent.
func (c *call) putSlot() {
	if c.slotted {
		c.s.Slots.Put(c.slotOf)
	}
	if c.uploading != nil {
		c.uploading.Release()
	}
}

// Uploads under way, and how many a user may have: each takes up to maxUpload of
// disk, and as much again while it is unpacked. Others wait for their turn before
// anything of them is read.
const (
	maxUploads     = 32
	maxUserUploads = 4
)

// newReads makes the slots of transactions that read. They take processor time
// alone: more of them at once than there are processors only make each slower.
// One slot is always left for another user. The store shares writes fairly.
func newReads() *fairqueue.Queue {
	processors := runtime.GOMAXPROCS(0)
	return fairqueue.New(processors+1, processors)
}

// maxTurns is how many transactions are under way or wait for the store. The
// store shares a commit among those that wait to write.
const maxTurns = 64

// enter waits until a user may have a transaction, and returns what ends it.
func (s *Server) enter(ctx context.Context, user string, write bool) (leave func(), err error) {
	turn, err := s.turns.Acquire(ctx, user)
	if err != nil {
		return nil, err
	}
	if write {
		return turn.Release, nil
	}
	slot, err := s.reads.Acquire(ctx, user)
	if err != nil {
		turn.Release()
		return nil, err
	}
	return func() { slot.Release(); turn.Release() }, nil
}

// awaitUpload waits for a turn to upload, which lasts as long as the request.
func (c *call) awaitUpload() error {
	slot, err := c.s.uploads.Acquire(c.Context(), c.asker())
	c.uploading = slot
	return err
}

// asker is the user of the request, or else the client or address.
func (c *call) asker() string {
	return cmp.Or(c.identity.Actor().GUID, bulkhead.AddressOf(c.Request.RemoteAddr).String())
}
