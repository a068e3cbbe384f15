package loops

import (
	"crypto/x509"
	"strings"
	"sync"

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
// the machine's, and the daemon's own, since a broker may be an app. The machine's are
// read for the first broker with TLS: they take longer than most else of a start.
func brokerRoots(x *executor.Executor) (func() *x509.CertPool, error) {
	var own []byte
	if x.HTTPS != "off" {
		ca, err := x.Dir.Authority()
		if err != nil {
			return nil, err
		}
		own = ca.Trust()
	}
	return sync.OnceValue(func() *x509.CertPool {
		roots, err := x509.SystemCertPool()
		if err != nil {
			roots = x509.NewCertPool()
		}
		roots.AppendCertsFromPEM(own)
		return roots
	}), nil
}
