package broker

import (
	"context"
	"encoding/json"

	"cupola/server/osb"
	"cupola/server/outbound"
	"cupola/store"
	"cupola/store/cf"
)

// Parameters asks the broker of an instance for the instance's parameters, or
// for those of a binding of it, if its GUID is given. nil is none.
func (l *Loop) Parameters(ctx context.Context, instanceGUID, bindingGUID string, actor cf.Actor) (json.RawMessage, error) {
	s := &step{work: cf.ServiceWork{Actor: actor}}
	err := l.Store.Read(ctx, func(tx *store.Tx) (err error) {
		if err := s.loadInstance(tx, instanceGUID); err != nil {
			return err
		}
		s.rules, err = outbound.Of(tx, s.broker.SpaceGUID)
		return err
	})
	if err != nil {
		return nil, err
	}
	if bindingGUID == "" {
		f, err := l.Client.FetchInstance(ctx, l.target(s, s.broker), s.named())
		return f.Parameters, err
	}
	f, err := l.Client.FetchBinding(ctx, l.target(s, s.broker), osb.Binding{Instance: s.named(), GUID: bindingGUID}, s.offering.Requires)
	return f.Parameters, err
}
