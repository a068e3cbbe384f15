package bbs

import (
	"context"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	"cupola/runtime/lrp"
	"cupola/server/bbs/bbspb"
	"cupola/server/bbs/model"
	"cupola/store"
)

// actuals returns the ActualLRPs that filters of the table choose.
func (s *Server) actuals(ctx context.Context, where map[string][]string) (found []*bbspb.ActualLRP, err error) {
	zones := s.hub.zones()
	err = s.Store.Read(ctx, func(tx *store.Tx) error {
		list, err := s.Rows.Actuals(tx, where)
		found = make([]*bbspb.ActualLRP, 0, len(list))
		for _, a := range list {
			found = append(found, model.Actual(a, s.tagged(a.ProcessGUID), zones[a.CellID]))
		}
		return err
	})
	return found, err
}

// tagged is the DesiredLRP that has the metric tags of an instance.
func (s *Server) tagged(processGUID string) *bbspb.DesiredLRP {
	if d := s.Rows.Message(processGUID); d != nil {
		return d
	}
	return s.apps.message(processGUID)
}

func (s *Server) listActuals(ctx context.Context, r *bbspb.ActualLRPsRequest) (proto.Message, error) {
	where := map[string][]string{}
	for filter, value := range map[string]string{"domains": r.Domain, "cell_ids": r.CellId, "process_guids": r.ProcessGuid} {
		if value != "" {
			where[filter] = []string{value}
		}
	}
	if r.Index != nil {
		where["indices"] = []string{strconv.Itoa(int(*r.Index))}
	}
	found, err := s.actuals(ctx, where)
	return &bbspb.ActualLRPsResponse{ActualLrps: found}, err
}

func (s *Server) listActualsByGUIDs(ctx context.Context, r *bbspb.ActualLRPsByProcessGUIDsRequest) (proto.Message, error) {
	if len(r.ProcessGuids) == 0 {
		return nil, &model.Error{Type: model.InvalidRequest, Message: "process_guids must not be empty"}
	}
	found, err := s.actuals(ctx, map[string][]string{"process_guids": r.ProcessGuids})
	return &bbspb.ActualLRPsResponse{ActualLrps: found}, err
}

// retireActual ends an instance, also one of an app: it is replaced.
func (s *Server) retireActual(ctx context.Context, r *bbspb.RetireActualLRPRequest) (proto.Message, error) {
	if err := model.ValidateKey(r.Key); err != nil {
		return nil, err
	}
	defer s.Wake()
	return &bbspb.LifecycleResponse{}, s.Store.Write(ctx, func(tx *store.Tx) error {
		ok, err := store.ActualLRPs.Retire(tx, lrp.Key{ProcessGUID: r.Key.ProcessGuid, Index: int(r.Key.Index)})
		if err == nil && !ok {
			err = model.ErrNotFound
		}
		return err
	})
}

// groups makes one of each ActualLRP: nothing is ever evacuating.
func groups(list []*bbspb.ActualLRP) (all []*bbspb.ActualLRPGroup) {
	for _, a := range list {
		all = append(all, &bbspb.ActualLRPGroup{Instance: a})
	}
	return all
}

func (s *Server) listGroups(ctx context.Context, r *bbspb.ActualLRPGroupsRequest) (proto.Message, error) {
	where := map[string][]string{}
	if r.Domain != "" {
		where["domains"] = []string{r.Domain}
	}
	if r.CellId != "" {
		where["cell_ids"] = []string{r.CellId}
	}
	found, err := s.actuals(ctx, where)
	return &bbspb.ActualLRPGroupsResponse{Groups: groups(found)}, err
}

func (s *Server) listGroupsByGUID(ctx context.Context, r *bbspb.ProcessGUIDRequest) (proto.Message, error) {
	if err := model.ValidateGUID("process_guid", r.ProcessGuid); err != nil {
		return nil, err
	}
	found, err := s.actuals(ctx, map[string][]string{"process_guids": {r.ProcessGuid}})
	return &bbspb.ActualLRPGroupsResponse{Groups: groups(found)}, err
}

func (s *Server) getGroup(ctx context.Context, r *bbspb.ActualLRPGroupRequest) (proto.Message, error) {
	if err := model.ValidateGUID("process_guid", r.ProcessGuid); err != nil {
		return nil, err
	}
	found, err := s.actuals(ctx, map[string][]string{"process_guids": {r.ProcessGuid}})
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(found, func(a *bbspb.ActualLRP) bool { return a.Key.Index == r.Index })
	if i < 0 {
		return nil, model.ErrNotFound
	}
	return &bbspb.ActualLRPGroupResponse{Group: groups(found[i : i+1])[0]}, nil
}
