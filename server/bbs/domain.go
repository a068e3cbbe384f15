package bbs

import (
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"cupola/runtime/lrp"
	"cupola/server/bbs/bbspb"
	"cupola/server/bbs/model"
	"cupola/store"
)

func (s *Server) ping(context.Context, *bbspb.Empty) (proto.Message, error) {
	return &bbspb.PingResponse{Available: true}, nil
}

// listDomains lists what is fresh. Cloud Foundry's domains always are: what they
// desire is derived.
func (s *Server) listDomains(ctx context.Context, _ *bbspb.Empty) (proto.Message, error) {
	res := &bbspb.DomainsResponse{Domains: []string{lrp.DomainApps, lrp.DomainTasks}}
	err := s.Store.Read(ctx, func(tx *store.Tx) error {
		fresh, err := store.BBSDomains.Fresh(tx)
		for _, name := range fresh {
			if !slices.Contains(res.Domains, name) {
				res.Domains = append(res.Domains, name)
			}
		}
		return err
	})
	return res, err
}

func (s *Server) upsertDomain(ctx context.Context, r *bbspb.UpsertDomainRequest) (proto.Message, error) {
	if err := model.ValidateGUID("domain", r.Domain); err != nil {
		return nil, err
	}
	return &bbspb.LifecycleResponse{}, s.Store.Write(ctx, func(tx *store.Tx) error {
		d := &store.BBSDomain{Name: r.Domain}
		if r.Ttl > 0 {
			d.ExpiresAt = tx.Now.Add(time.Duration(r.Ttl) * time.Second)
		}
		return store.BBSDomains.Put(tx, d)
	})
}

func (s *Server) listCells(context.Context, *bbspb.Empty) (proto.Message, error) {
	res := &bbspb.CellsResponse{}
	for _, c := range s.Cells() {
		res.Cells = append(res.Cells, model.Cell(c, s.repURL(c.ID)))
	}
	return res, nil
}
