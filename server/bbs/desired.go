package bbs

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"cupola/runtime/lrp"
	"cupola/server/bbs/bbspb"
	"cupola/server/bbs/bbsrows"
	"cupola/server/bbs/model"
	"cupola/server/desire"
	"cupola/store"
)

// find returns the DesiredLRPs that a client asks for: those of the BBS in the
// order they were made, then those of apps.
func (s *Server) find(ctx context.Context, r *bbspb.DesiredLRPsRequest) (found []*bbsrows.Desired, err error) {
	where := map[string][]string{}
	if r.Domain != "" {
		where["domains"] = []string{r.Domain}
	}
	if len(r.ProcessGuids) > 0 {
		where["guids"] = r.ProcessGuids
	}
	err = s.Store.Read(ctx, func(tx *store.Tx) error {
		list, err := s.Rows.List(tx, where)
		for _, d := range list {
			if ofApp(d.Message.ProcessGuid, r.AppGuids) {
				found = append(found, d)
			}
		}
		return err
	})
	if err != nil || r.Domain != "" && r.Domain != lrp.DomainApps {
		return found, err
	}
	apps, err := s.apps.list(ctx)
	for _, d := range apps {
		if oneOf(d.ProcessGuid, r.ProcessGuids) && ofApp(d.ProcessGuid, r.AppGuids) {
			found = append(found, &bbsrows.Desired{Message: d})
		}
	}
	return found, err
}

func oneOf(s string, list []string) bool {
	if slices.Contains(list, s) {
		return true
	}
	return len(list) == 0
}

// ofApp reports whether a process GUID begins with one of the apps'.
func ofApp(processGUID string, apps []string) bool {
	for _, a := range apps {
		if strings.HasPrefix(processGUID, a) {
			return true
		}
	}
	return len(apps) == 0
}

// get returns the DesiredLRP of a GUID, or ErrNotFound.
func (s *Server) get(ctx context.Context, guid string) (*bbspb.DesiredLRP, error) {
	if err := model.ValidateGUID("process_guid", guid); err != nil {
		return nil, err
	}
	var row *store.BBSDesired
	err := s.Store.Read(ctx, func(tx *store.Tx) (err error) {
		row, err = store.BBSDesireds.Get(tx, guid)
		return err
	})
	if err == nil {
		d := &bbspb.DesiredLRP{}
		return d, proto.Unmarshal(row.Message, d)
	}
	if !store.IsNotFound(err) {
		return nil, err
	}
	apps, err := s.apps.list(ctx)
	if i := slices.IndexFunc(apps, func(d *bbspb.DesiredLRP) bool { return d.ProcessGuid == guid }); i >= 0 {
		return apps[i], nil
	}
	return nil, cmp.Or(err, error(model.ErrNotFound))
}

// project makes a list of other things of one.
func project[S, T any](list []S, to func(S) T) []T {
	out := make([]T, 0, len(list))
	for _, d := range list {
		out = append(out, to(d))
	}
	return out
}

// messages makes a list of messages of one of DesiredLRPs.
func messages(list []*bbsrows.Desired, to func(*bbspb.DesiredLRP) *bbspb.DesiredLRP) []*bbspb.DesiredLRP {
	return project(list, func(d *bbsrows.Desired) *bbspb.DesiredLRP { return to(d.Message) })
}

func same(d *bbspb.DesiredLRP) *bbspb.DesiredLRP { return d }

func (s *Server) listDesired(ctx context.Context, r *bbspb.DesiredLRPsRequest) (proto.Message, error) {
	found, err := s.find(ctx, r)
	return &bbspb.DesiredLRPsResponse{DesiredLrps: messages(found, same)}, err
}

func (s *Server) listDesired2(ctx context.Context, r *bbspb.DesiredLRPsRequest) (proto.Message, error) {
	found, err := s.find(ctx, r)
	return &bbspb.DesiredLRPsResponse{DesiredLrps: messages(found, model.DownTo2)}, err
}

func (s *Server) listRoutingInfos(ctx context.Context, r *bbspb.DesiredLRPsRequest) (proto.Message, error) {
	found, err := s.find(ctx, r)
	return &bbspb.DesiredLRPsResponse{DesiredLrps: messages(found, model.RoutingInfo)}, err
}

func (s *Server) listSchedulingInfos(ctx context.Context, r *bbspb.DesiredLRPsRequest) (proto.Message, error) {
	found, err := s.find(ctx, r)
	return &bbspb.DesiredLRPSchedulingInfosResponse{Infos: project(found, (*bbsrows.Desired).SchedulingInfo)}, err
}

func (s *Server) getSchedulingInfo(ctx context.Context, r *bbspb.ProcessGUIDRequest) (proto.Message, error) {
	d, err := s.get(ctx, r.ProcessGuid)
	if err != nil {
		return nil, err
	}
	return &bbspb.DesiredLRPSchedulingInfoResponse{Info: model.SchedulingInfo(d)}, nil
}

func (s *Server) getDesired(ctx context.Context, r *bbspb.ProcessGUIDRequest) (proto.Message, error) {
	d, err := s.get(ctx, r.ProcessGuid)
	return &bbspb.DesiredLRPResponse{DesiredLrp: d}, err
}

func (s *Server) getDesired2(ctx context.Context, r *bbspb.ProcessGUIDRequest) (proto.Message, error) {
	d, err := s.get(ctx, r.ProcessGuid)
	if err != nil {
		return nil, err
	}
	return &bbspb.DesiredLRPResponse{DesiredLrp: model.DownTo2(d)}, nil
}

// maxInstances is how many instances the loop looks at.
const maxInstances = 5000

func (s *Server) desire(ctx context.Context, r *bbspb.DesireLRPRequest) (proto.Message, error) {
	if err := model.ValidateDesired(r.DesiredLrp); err != nil {
		return nil, err
	}
	d := r.DesiredLrp
	if lrp.Derived(d.Domain) {
		return nil, model.ErrOwned("domain " + d.Domain)
	}
	return &bbspb.LifecycleResponse{}, s.Store.Write(ctx, func(tx *store.Tx) error {
		app, err := ofCloudFoundry(tx, d.ProcessGuid)
		if err != nil {
			return err
		}
		if app {
			return model.ErrExists
		}
		row := &store.BBSDesired{ProcessGUID: d.ProcessGuid, Domain: d.Domain, Instances: int(d.Instances)}
		if err := store.BBSDesireds.Insert(tx, row, encoded(d)); err != nil {
			if store.IsTaken(err) {
				return model.ErrExists
			}
			return err
		}
		return addInstances(tx, row, 0)
	})
}

// encoded encodes a DesiredLRP once its tag is known.
func encoded(d *bbspb.DesiredLRP) func(lrp.Tag) ([]byte, error) {
	return func(t lrp.Tag) ([]byte, error) {
		d.ModificationTag = model.Tag(t)
		return proto.Marshal(d)
	}
}

// addInstances adds the rows of instances, from an index on, at once: a client
// that asks right away finds them UNCLAIMED.
func addInstances(tx *store.Tx, d *store.BBSDesired, from int) error {
	for i := from; i < min(d.Instances, maxInstances); i++ {
		a := lrp.Actual{Key: lrp.Key{ProcessGUID: d.ProcessGUID, Index: i}, Domain: d.Domain, State: lrp.Unclaimed, Since: tx.Now}
		if err := store.ActualLRPs.Insert(tx, a); err != nil && !store.IsTaken(err) {
			return err
		}
	}
	return nil
}

// ofCloudFoundry reports whether a process GUID is one of an app's process.
func ofCloudFoundry(tx *store.Tx, processGUID string) (bool, error) {
	_, err := store.Processes.Get(tx, desire.CFProcess(processGUID))
	if store.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// row returns the row of a DesiredLRP that a client wants to change.
func row(tx *store.Tx, processGUID string) (*store.BBSDesired, error) {
	d, err := store.BBSDesireds.Get(tx, processGUID)
	if !store.IsNotFound(err) {
		return d, err
	}
	app, err := ofCloudFoundry(tx, processGUID)
	if err != nil {
		return nil, err
	}
	if app {
		return nil, model.ErrOwned("desired LRP " + processGUID)
	}
	return nil, model.ErrNotFound
}

func (s *Server) updateDesired(ctx context.Context, r *bbspb.UpdateDesiredLRPRequest) (proto.Message, error) {
	if err := model.ValidateUpdate(r); err != nil {
		return nil, err
	}
	return &bbspb.LifecycleResponse{}, s.Store.Write(ctx, func(tx *store.Tx) error {
		was, err := row(tx, r.ProcessGuid)
		if err != nil {
			return err
		}
		d := &bbspb.DesiredLRP{}
		if err := proto.Unmarshal(was.Message, d); err != nil {
			return err
		}
		d = model.Updated(d, r.Update)
		next := *was
		next.Instances = int(d.Instances)
		if err := store.BBSDesireds.Update(tx, was, &next, encoded(d)); err != nil {
			return err
		}
		if next.Instances < was.Instances {
			return store.ActualLRPs.RetireFrom(tx, was.ProcessGUID, next.Instances)
		}
		return addInstances(tx, &next, was.Instances)
	})
}

func (s *Server) removeDesired(ctx context.Context, r *bbspb.ProcessGUIDRequest) (proto.Message, error) {
	if err := model.ValidateGUID("process_guid", r.ProcessGuid); err != nil {
		return nil, err
	}
	return &bbspb.LifecycleResponse{}, s.Store.Write(ctx, func(tx *store.Tx) error {
		if _, err := row(tx, r.ProcessGuid); err != nil {
			return err
		}
		if _, err := store.BBSDesireds.Delete(tx, r.ProcessGuid); err != nil {
			return err
		}
		return store.ActualLRPs.RetireFrom(tx, r.ProcessGuid, 0)
	})
}
