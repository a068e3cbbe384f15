package databroker

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"cupola/runtime/contract"
	"cupola/runtime/lrp"
	"cupola/store"
	"cupola/store/cf"
)

// The certificate that a server shows its clients, and its key. The cell renews the files, which are in memory alone and which
// only root and the server's user can read.
const (
	tlsCertificate = contract.InstanceCredentials + "/" + contract.InstanceCertificate
	tlsKey         = contract.InstanceCredentials + "/" + contract.InstanceKey
)

// appTrust is the file by which apps verify the certificate: every container of an app has it.
const appTrust = contract.SystemCertificates + "/" + contract.TrustedAuthority

// TLSParameter is the parameter that says whether a new instance refuses connections without TLS.
const TLSParameter = "tls"

// The values of TLSParameter. optionalTLS is the default, but for an instance that is restored from one that requires TLS.
const (
	optionalTLS = "optional"
	requiredTLS = "required"
)

// TLSOf is the value of TLSParameter that an instance has; "" where its service has no TLS.
func TLSOf(i *cf.DataInstance) string {
	switch s, _, _ := known(i); {
	case s.tlsPort == 0:
		return ""
	case i.TLSRequired:
		return requiredTLS
	}
	return optionalTLS
}

// requiresTLS reports whether an instance with these parameters refuses connections without TLS; of is the one that it is restored from, or nil.
func (p parameters) requiresTLS(of *cf.DataInstance) bool {
	return p.TLS == requiredTLS || p.TLS == "" && of != nil && of.TLSRequired
}

// ports are those at which an instance listens, first the one that health checks connect to.
func (s service) ports(tlsRequired bool) []uint16 {
	switch {
	case s.tlsPort == 0 || s.tlsPort == s.port:
		return append([]uint16{s.port}, s.morePorts...)
	case tlsRequired:
		return []uint16{s.tlsPort}
	}
	return []uint16{s.port, s.tlsPort}
}

// serverNames are the names of the certificate of an instance; none: it has no certificate.
func (s service) serverNames(i *cf.DataInstance) []string {
	if s.tlsPort == 0 || s.tlsAlone && !i.TLSRequired {
		return nil
	}
	return []string{host(i.GUID)}
}

// changeTLS restarts an instance's container, with TLS optional or required.
func (b *broker) changeTLS(r *http.Request, i *cf.DataInstance, value string) (a answer, err error) {
	if err := acceptsAsync(r); err != nil {
		return a, err
	}
	err = b.Store.Write(r.Context(), func(tx *store.Tx) error {
		now, err := idle(tx, i.GUID)
		if err != nil {
			return err
		}
		now.State, now.Fault, now.Upgrade, now.TLSRequired = cf.DataMaking, "", cf.UpgradeStopping, value == requiredTLS
		return store.DataInstances.Update(tx, now)
	})
	return answer{Status: http.StatusAccepted, Body: object{"operation": "update"}}, err
}

// credentials are those of a binding: without TLS, unless the instance requires it. Clients of many languages verify servers only
// after they were given the CA, so TLS is what an app chooses: tls has all that it needs. trust is the CA.
func (s service) credentials(i *cf.DataInstance, n *cf.DataBinding, trust func() []byte) object {
	a := access{host: host(i.GUID), user: user(n.GUID), password: n.Password, port: s.port}
	plain := s.engine.credentials(a)
	if !n.TLS || s.serverNames(i) == nil {
		return plain
	}
	a.port, a.tls = s.tlsPort, true
	secure := s.engine.credentials(a)
	c := plain
	if i.TLSRequired {
		c = secure
	}
	how := object{"required": i.TLSRequired, "port": a.port, "uri": secure["uri"], "cert": object{"ca": string(trust())}}
	if url, ok := secure["jdbcUrl"]; ok {
		how["jdbcUrl"] = url
	}
	if s.tlsPort != s.port {
		c["tls_port"] = s.tlsPort
	}
	c["tls"] = how
	return c
}

// certified reports whether the container of an instance has a certificate: one that an earlier version of cupola started has none.
func (b *broker) certified(instanceGUID string) bool {
	return slices.ContainsFunc(b.Containers(), func(c lrp.ContainerStatus) bool {
		return c.ProcessGUID == processGUID(instanceGUID) && !c.ServerCertificateUntil.IsZero()
	})
}

// reloadAll makes servers read renewed certificates. A new daemon reloads each server once.
func (k *keeper) reloadAll(ctx context.Context) error {
	renewed := map[string]lrp.ContainerStatus{} // by the instance's GUID
	all := k.Containers()
	k.mu.Lock()
	maps.DeleteFunc(k.loaded, func(guid string, _ time.Time) bool {
		return !slices.ContainsFunc(all, func(c lrp.ContainerStatus) bool { return c.GUID == guid })
	})
	for _, c := range all {
		if guid, ok := instanceOf(c.ProcessGUID); ok && c.Phase == lrp.PhaseRunning && !c.ServerCertificateUntil.Equal(k.loaded[c.GUID]) {
			renewed[guid] = c
		}
	}
	k.mu.Unlock()
	if len(renewed) == 0 {
		return nil
	}
	var ready []*cf.DataInstance
	err := k.Store.Read(ctx, func(tx *store.Tx) (err error) {
		ready, err = store.DataInstances.By(tx, "states", string(cf.DataReady))
		return err
	})
	for _, i := range ready {
		if c, ok := renewed[i.GUID]; ok {
			k.begin(ctx, i, func(ctx context.Context, i *cf.DataInstance) error { return k.reload(ctx, i, c) })
		}
	}
	return err
}

// reload makes the server of a container read its certificate.
func (k *keeper) reload(ctx context.Context, i *cf.DataInstance, c lrp.ContainerStatus) error {
	release, err := k.turn(ctx, i.GUID)
	if err != nil {
		return err
	}
	defer release()
	s, _, ok := known(i)
	engine, is := s.engine.(builtIn)
	if !ok || !is {
		return nil
	}
	if statements := engine.reload(); statements != "" {
		if err := k.execute(ctx, i, statements); err != nil {
			return fmt.Errorf("read the renewed certificate: %w", err)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.loaded[c.GUID] = c.ServerCertificateUntil
	return nil
}
