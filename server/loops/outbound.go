package loops

import (
	"crypto/x509"
	"strings"
	"sync"

	"cupola/server/broker"
	"cupola/server/executor"
	"cupola/server/outbound"
)

// openOutbound opens what connects to the addresses that developers name.
func (l *Loops) openOutbound(x *executor.Executor) error {
	roots, err := roots(x)
	if err != nil {
		return err
	}
	network := outbound.Network{Router: x.RouterAt, Where: x.Egress(), RootCAs: roots}
	l.Calls = outbound.NewCaller(x.Store, network)
	l.Brokers = broker.New(broker.Config{Store: x.Store, APIInfo: strings.TrimPrefix(x.APIURL(), "http://") + "/", Network: network, Log: x.Log})
	return nil
}

// roots are the authorities that certificates of brokers and of called URLs are trusted by:
// the machine's, and the daemon's own, since either may be an app. The machine's are read
// for the first connection with TLS: they take longer than most else of a start.
func roots(x *executor.Executor) (func() *x509.CertPool, error) {
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
