package loops

import (
	"crypto/x509"
	"strings"

	"cupola/server/broker"
	"cupola/server/executor"
	"cupola/server/osb"
)

// newBrokers makes the loop that asks service brokers.
func newBrokers(x *executor.Executor) (*broker.Loop, error) {
	roots, err := brokerRoots(x)
	if err != nil {
		return nil, err
	}
	client := osb.New(osb.Config{APIInfo: strings.TrimPrefix(x.APIURL(), "http://") + "/", RootCAs: roots})
	return broker.New(broker.Config{Store: x.Store, Client: client, Log: x.Log, Front: x.RouterAt, Where: x.Egress()}), nil
}

// brokerRoots are the authorities that certificates of brokers are trusted by:
// the machine's, and the daemon's own, since a broker may be an app.
func brokerRoots(x *executor.Executor) (*x509.CertPool, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if x.HTTPS == "off" {
		return roots, nil
	}
	ca, err := x.Dir.Authority()
	if err != nil {
		return nil, err
	}
	roots.AppendCertsFromPEM(ca.Trust())
	return roots, nil
}
