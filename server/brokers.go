package server

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"strings"

	"cupola/server/api"
	"cupola/server/broker"
	"cupola/server/osb"
	"cupola/store/cf"
)

// newBrokers makes the loop that asks service brokers.
func (d *daemon) newBrokers() (*broker.Loop, error) {
	roots, err := d.brokerRoots()
	if err != nil {
		return nil, err
	}
	client := osb.New(osb.Config{APIInfo: strings.TrimPrefix(d.apiURL(), "http://") + "/", RootCAs: roots})
	return broker.New(broker.Config{Store: d.store, Client: client, Log: d.Log, Front: d.frontOf, Where: d.egress()}), nil
}

// parameters asks a broker for the parameters of what it has.
func (d *daemon) parameters(ctx context.Context, q api.ParameterQuery) (json.RawMessage, error) {
	text, err := d.brokers.Parameters(ctx, q.InstanceGUID, q.BindingGUID, q.Actor)
	if e, ok := errors.AsType[*osb.Error](err); ok {
		err = cf.Errorf(cf.BrokerFailed, "%s", e.Detail)
	}
	return text, err
}

// brokerRoots are the authorities that certificates of brokers are trusted by:
// the machine's, and our own, since a broker may be an app.
func (d *daemon) brokerRoots() (*x509.CertPool, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if d.HTTPS == "off" {
		return roots, nil
	}
	ca, err := d.dir.Authority()
	if err != nil {
		return nil, err
	}
	roots.AppendCertsFromPEM(ca.Trust())
	return roots, nil
}

// frontOf is the address at which the router listens on a port; "" for none.
func (d *daemon) frontOf(port string) string {
	for _, listens := range []string{d.HTTP, d.HTTPS} {
		host, p, err := net.SplitHostPort(listens)
		if err != nil || p != port {
			continue
		}
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			host = "127.0.0.1"
		}
		return net.JoinHostPort(host, p)
	}
	return ""
}
