package bbs

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"cupola/server/bbs/bbspb"
	"cupola/server/bbs/model"
	"cupola/store"
)

// ownLocks are what Diego's active components hold. This daemon does their work,
// as long as it runs.
var ownLocks = []string{"auctioneer", "bbs", "route-emitter"}

// own are the locks and presences that the daemon itself holds.
func (s *Server) own(kind int32) (all []*bbspb.LocketResource) {
	if kind == model.Lock {
		for _, key := range ownLocks {
			all = append(all, model.LocketResource(kind, key, s.owner, ""))
		}
		return all
	}
	for _, c := range s.Cells() {
		all = append(all, model.CellPresence(c, s.repURL(c.ID), s.owner))
	}
	return all
}

// ownKey returns what the daemon itself holds by a key; nil for nothing.
func (s *Server) ownKey(key string) *bbspb.LocketResource {
	all := append(s.own(model.Lock), s.own(model.Presence)...)
	if i := slices.IndexFunc(all, func(r *bbspb.LocketResource) bool { return r.Key == key }); i >= 0 {
		return all[i]
	}
	return nil
}

// maxLockTTL bounds how long a lock may be held without being renewed.
const maxLockTTL = 10 * 365 * 24 * time.Hour

// lock claims a key for an owner, or renews the claim (locket: handlers/handler.go
// and db/lock_db.go).
func (s *Server) lock(ctx context.Context, r *bbspb.LockRequest) (proto.Message, error) {
	of := r.GetResource()
	kind := model.LockType(of.GetTypeCode(), of.GetType())
	switch {
	case kind == 0:
		return nil, model.ErrLockType
	case r.TtlInSeconds <= 0:
		return nil, model.ErrLockTTL
	case of.GetOwner() == "":
		return nil, model.ErrLockOwner
	case s.ownKey(of.Key) != nil:
		return nil, model.ErrLockCollision
	}
	life := min(time.Duration(min(r.TtlInSeconds, int64(maxLockTTL/time.Second)))*time.Second, maxLockTTL)
	return &bbspb.Empty{}, s.Store.Write(ctx, func(tx *store.Tx) error {
		held, err := store.BBSLocks.Get(tx, of.Key)
		switch {
		case store.IsNotFound(err):
		case err != nil:
			return err
		case held.ExpiresAt.After(tx.Now) && held.Owner != of.Owner:
			return model.ErrLockCollision
		}
		if err := dropExpired(tx); err != nil {
			return err
		}
		return store.BBSLocks.Put(tx, &store.BBSLock{Key: of.Key, Owner: of.Owner, Value: of.Value, Type: kind, ExpiresAt: tx.Now.Add(life)})
	})
}

// dropExpired deletes locks and presences that have expired.
func dropExpired(tx *store.Tx) error {
	all, err := store.BBSLocks.All(tx)
	for _, l := range all {
		if err == nil && !l.ExpiresAt.After(tx.Now) {
			err = store.BBSLocks.Delete(tx, l.Key)
		}
	}
	return err
}

// release releases a key. Releasing one that has no owner is not an error.
func (s *Server) release(ctx context.Context, r *bbspb.ReleaseLockRequest) (proto.Message, error) {
	of := r.GetResource()
	if s.ownKey(of.GetKey()) != nil {
		return nil, model.ErrLockCollision
	}
	return &bbspb.Empty{}, s.Store.Write(ctx, func(tx *store.Tx) error {
		held, err := store.BBSLocks.Get(tx, of.GetKey())
		if store.IsNotFound(err) || err == nil && !held.ExpiresAt.After(tx.Now) {
			return nil
		}
		if err != nil {
			return err
		}
		if held.Owner != of.GetOwner() {
			return model.ErrLockCollision
		}
		return store.BBSLocks.Delete(tx, held.Key)
	})
}

func (s *Server) fetchLock(ctx context.Context, r *bbspb.FetchLockRequest) (proto.Message, error) {
	if own := s.ownKey(r.Key); own != nil {
		return &bbspb.FetchLockResponse{Resource: own}, nil
	}
	var held *store.BBSLock
	err := s.Store.Read(ctx, func(tx *store.Tx) (err error) {
		held, err = store.BBSLocks.Get(tx, r.Key)
		if store.IsNotFound(err) || err == nil && !held.ExpiresAt.After(tx.Now) {
			return model.ErrLockNotFound
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &bbspb.FetchLockResponse{Resource: model.LocketResource(held.Type, held.Key, held.Owner, held.Value)}, nil
}

func (s *Server) fetchLocks(ctx context.Context, r *bbspb.FetchLocksRequest) (proto.Message, error) {
	kind := model.LockType(r.TypeCode, r.Type)
	if kind == 0 {
		return nil, model.ErrLockType
	}
	res := &bbspb.FetchLocksResponse{Resources: s.own(kind)}
	err := s.Store.Read(ctx, func(tx *store.Tx) error {
		all, err := store.BBSLocks.All(tx)
		for _, l := range all {
			if l.Type == kind && l.ExpiresAt.After(tx.Now) {
				res.Resources = append(res.Resources, model.LocketResource(kind, l.Key, l.Owner, l.Value))
			}
		}
		return err
	})
	slices.SortFunc(res.Resources, func(a, b *bbspb.LocketResource) int { return strings.Compare(a.Key, b.Key) })
	return res, err
}
