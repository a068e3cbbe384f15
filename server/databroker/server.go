package databroker

import (
	"context"

	"cupola/store"
	"cupola/store/cf"
)

// Server describes the server of an instance.
type Server struct {
	Version *string `json:"version"` // like "PostgreSQL 15"; nil while it does not run, and of a directory
	TLS     *string `json:"tls"`     // the value of TLSParameter; nil where the service has no TLS
}

// Server asks which server an instance has.
func (s *Service) Server(ctx context.Context, instanceGUID string) (o Server, err error) {
	if s == nil {
		return o, cf.Unprocessable("%s", errOff)
	}
	var i *cf.DataInstance
	err = s.broker.Store.Read(ctx, func(tx *store.Tx) error {
		i, err = store.DataInstances.Find(tx, instanceGUID)
		return err
	})
	if err != nil {
		return o, err
	}
	if i == nil {
		return o, cf.Unprocessable("Only service instances of the built-in broker have a server.")
	}
	if tls := TLSOf(i); tls != "" {
		o.TLS = &tls
	}
	if svc, _, ok := known(i); ok && svc.engine != nil {
		o.Version, err = s.broker.versions.of(ctx, i.GUID, func(ctx context.Context) (*string, error) { return s.broker.version(ctx, i, svc.engine) })
	}
	return o, err
}
