package faces

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"cupola/server/admin/stack"
	"cupola/server/api"
	"cupola/server/loops"
	"cupola/server/osb"
	"cupola/store/cf"
)

// apiConfig connects the API to what it shows and asks.
func (f *Faces) apiConfig(l *loops.Loops) api.Config {
	x := f.Executor
	c := api.Config{
		Store: x.Store, Blobs: x.Blobs, Log: x.Log, Authenticate: f.UAA.Verify, Slots: f.slots, Stats: x.Stats,
		Asleep:   f.Router.Asleep,
		Routed:   func(ctx context.Context) { _ = l.Ingress.Current(ctx) }, // its only error is ctx's
		LogShown: x.Logs.Cache.Shown, WhyCrashed: x.Logs.WhyCrashed,
		Retire: l.Retire, SSH: f.sshInfo(), PackedLayer: x.Images.OpenLayer,
		PackDroplet: func(ctx context.Context, d *cf.Droplet, command string, progress func(api.PackStep)) (any, error) {
			return x.Images.PackDroplet(ctx, d, command, progress)
		},
		Gauges: x.Logs.WebGauges, Requests: f.Metrics.OfApp, Call: l.Calls.Call,
		RenderBOSH:   l.RenderBOSH,
		ReadBackup:   func(b *cf.DataBackup, to io.Writer) error { return l.Backups.Open(b, to) },
		BackupEnding: l.DataBroker.FileEnding, CheckBackup: l.DataBroker.CheckBackup,
		Mails: func(ctx context.Context, instanceGUID string) (any, error) {
			return l.DataBroker.Mails(ctx, instanceGUID)
		},
		Mail: func(ctx context.Context, instanceGUID, id string) ([]byte, error) {
			return l.DataBroker.Mail(ctx, instanceGUID, id)
		},
		Points: func(ctx context.Context, instanceGUID string) (any, error) {
			return l.DataBroker.Points(ctx, instanceGUID)
		},
		DataServer: func(ctx context.Context, instanceGUID string) (any, error) {
			return l.DataBroker.Server(ctx, instanceGUID)
		},
		Parameters: func(ctx context.Context, q api.ParameterQuery) (json.RawMessage, error) {
			text, err := l.Brokers.Parameters(ctx, q.InstanceGUID, q.BindingGUID, q.Actor)
			if e, ok := errors.AsType[*osb.Error](err); ok {
				err = cf.Errorf(cf.BrokerFailed, "%s", e.Detail)
			}
			return text, err
		},
	}
	c.Releases, c.QuotaAwakeOnly = l.Releases, x.QuotaAwakeOnly
	c.URL, c.Cells, c.Note, c.StackWarning, c.Stacks = x.APIURL(), x.CellUse, x.Logs.API, x.Images.Warning, stack.ForAPI{Library: x.Stacks}
	c.BindingsPerInstance, c.MountsFor, c.TCPPorts, c.PortUsable = func() int { return x.Current.Get().MaxBindings }, func(brokerGUID string) bool { return l.DataBroker.Mounts(brokerGUID) }, f.tcpPorts, f.portUsable
	return c
}

// portUsable is nil when this machine listens at a port for routes, or can.
func (f *Faces) portUsable(port int) error {
	if f.ports == nil {
		return nil
	}
	return f.ports.Usable(port)
}
