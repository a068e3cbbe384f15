package executor

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"os"

	"cupola/runtime/cell"
	"cupola/server/certs"
	"cupola/server/config"
)

// tlsPorts says how the TLS ports of instances work; nil where there are none.
func (e *Executor) tlsPorts() (*cell.TLSPorts, error) {
	switch e.InstanceTLS {
	case config.InstanceTLSOff:
		return nil, nil
	case config.InstanceTLSOn:
		return &cell.TLSPorts{}, nil
	}
	others, err := readCAs(e.InstanceTLSCAs)
	if err != nil {
		return nil, err
	}
	p := &cell.TLSPorts{ClientNames: e.InstanceTLSNames, ClientCAs: func() []byte {
		own, err := e.Dir.Authority()
		if err != nil {
			e.Log.Error("certificate authority of the router was not read", "err", err)
			return others
		}
		return append(own.Trust(), others...)
	}}
	if len(e.InstanceTLSCAs) == 0 || len(e.InstanceTLSNames) > 0 { // then also the router has one of the names
		p.ClientNames = append([]string{certs.RouterName}, e.InstanceTLSNames...)
	}
	return p, nil
}

// readCAs reads the authorities of clients.
func readCAs(files []string) (all []byte, err error) {
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil && !x509.NewCertPool().AppendCertsFromPEM(text) {
			err = fmt.Errorf("%s has no certificate in PEM", file)
		}
		if err != nil {
			return nil, fmt.Errorf("invalid --instance-tls-ca: %w", err)
		}
		all = append(append(all, bytes.TrimSpace(text)...), '\n')
	}
	return all, nil
}
